update WF_TOKENS set LAST_USED_ON_UTC = ? where TOKEN_ID = ?
