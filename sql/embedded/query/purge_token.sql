delete from WF_TOKENS where TOKEN_ID = ?
