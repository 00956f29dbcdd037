update WF_MESSAGES set STATE = 0, LEASE_OWNER = null, ATTEMPTS = ATTEMPTS + ? where MSG_ID = ? and ENQ_AT = ? and LEASE_OWNER = ? and STATE = 10
