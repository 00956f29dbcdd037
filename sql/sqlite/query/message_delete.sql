delete from WF_MESSAGES where MSG_ID = ? and ENQ_AT = ? and LEASE_OWNER = ? and STATE = 10
