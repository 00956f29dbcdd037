update WF_MESSAGES set STATE = 0, LEASE_OWNER = null
where MSG_ID in (select MSG_ID from WF_MESSAGES indexed by WF_MESSAGES_LEASE where STATE = 10 and LEASE_OWNER = ? limit ?)
