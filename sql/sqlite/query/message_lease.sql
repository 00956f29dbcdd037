update WF_MESSAGES set STATE = 10, LEASE_OWNER = ? where MSG_ID = ?
