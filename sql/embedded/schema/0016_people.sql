-- Who has done what, and was refused what: written by the commit of the act.
create table WF_AUDIT (
  AUDIT_ID          text not null primary key,
  OCCURRED_ON_UTC   integer not null,
  ACTION            text not null,
  OBJECT_ID         text not null,
  INSTANCE_ID       text,
  USER_NAME         text,
  CLIENT_IDENTIFIER text,
  KIND              text,
  VIA               text,
  VERSION_BEFORE    integer,
  VERSION_AFTER     integer,
  RESULT            text,
  REASON            text,
  REQUEST_ID        text
) without rowid;
create index WF_AUDIT_AGE on WF_AUDIT (OCCURRED_ON_UTC, AUDIT_ID);
create index WF_AUDIT_INSTANCE on WF_AUDIT (INSTANCE_ID) where INSTANCE_ID is not null;
create index WF_AUDIT_OBJECT on WF_AUDIT (OBJECT_ID);
-- By which programs and people are known to nodes. The secret of a token is not kept.
create table WF_TOKENS (
  TOKEN_ID         text not null primary key,
  NAME             text not null,
  ROLES            text not null,
  MEMBER_OF        text,
  HASH             blob not null,
  CREATED_ON_UTC   integer not null,
  CREATED_BY       text,
  EXPIRES_ON_UTC   integer not null,
  REVOKED_ON_UTC   integer,
  REVOKED_BY       text,
  LAST_USED_ON_UTC integer
) without rowid;
create index WF_TOKENS_AGE on WF_TOKENS (CREATED_ON_UTC, TOKEN_ID);
