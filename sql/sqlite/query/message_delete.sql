delete from WF_MESSAGES where MSG_ID = ? and LEASE_OWNER = ? and STATE = 10
