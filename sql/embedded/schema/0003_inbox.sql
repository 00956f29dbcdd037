-- Events that nobody waited for when they came, until they expire.
create table WF_INBOX (
  EVENT_NO        integer primary key,
  EVENT_KEY       text not null, -- of source and id
  EVENT_TYPE      text not null,
  RECEIVED_ON_UTC integer not null,
  EXPIRES_ON_UTC  integer not null,
  BODY            blob not null
);
create unique index WF_INBOX_KEY on WF_INBOX (EVENT_KEY);
create index WF_INBOX_TYPE on WF_INBOX (EVENT_TYPE, RECEIVED_ON_UTC, EVENT_KEY);
create index WF_INBOX_EXPIRES on WF_INBOX (EXPIRES_ON_UTC);
