update WF_TOKENS set REVOKED_ON_UTC = ?, REVOKED_BY = ? where TOKEN_ID = ? and REVOKED_ON_UTC is null
