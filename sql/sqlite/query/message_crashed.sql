update WF_MESSAGES set CRASHES = CRASHES + 1 where MSG_ID = ? and ENQ_AT = ? and LEASE_OWNER = ? and STATE = 10
