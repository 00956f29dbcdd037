insert into WF_INBOX (EVENT_KEY, EVENT_TYPE, RECEIVED_ON_UTC, EXPIRES_ON_UTC, BODY)
values (?, ?, ?, ?, ?)
on conflict (EVENT_KEY) do update set EVENT_TYPE = excluded.EVENT_TYPE, RECEIVED_ON_UTC = excluded.RECEIVED_ON_UTC, EXPIRES_ON_UTC = excluded.EXPIRES_ON_UTC, BODY = excluded.BODY, RULE_HASH = null, KEY_HASH = null
where EXPIRES_ON_UTC <= excluded.RECEIVED_ON_UTC
