insert into WF_INBOX (EVENT_KEY, EVENT_TYPE, RECEIVED_ON_UTC, EXPIRES_ON_UTC, BODY)
values (?, ?, ?, ?, ?)
on conflict (EVENT_KEY) do nothing
