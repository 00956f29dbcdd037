update WF_MESSAGES set STATE = 0
where MSG_ID in (select MSG_ID from WF_MESSAGES indexed by WF_MESSAGES_WAIT where STATE = 1 and VISIBLE_AT <= ? order by VISIBLE_AT limit ?)
