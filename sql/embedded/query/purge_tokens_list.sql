select TOKEN_ID as KEY, TOKEN_ID as TARGET from WF_TOKENS
where min(EXPIRES_ON_UTC, coalesce(REVOKED_ON_UTC, EXPIRES_ON_UTC)) < ?
order by TOKEN_ID
limit ?
