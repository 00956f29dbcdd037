select MSG_ID, ENQ_AT, QUEUE from WF_MESSAGES indexed by WF_MESSAGES_LEASE where STATE = 10 and LEASE_OWNER = ? limit ?
