-- Aqueduct on SQLite. Times are integers: microseconds since 1970, UTC. An
-- empty text is stored as null. INSTANCE_NO and NODE_NO stand for the long
-- names in every other table, so that rows and indexes stay short; the views
-- at the end show the names.

create table WF_META (
  NAME  text not null primary key,
  VALUE blob not null
) without rowid;

create table WF_NODES (
  NODE_NO        integer primary key autoincrement, -- one run of a node
  NODE           text not null,
  STARTED_ON_UTC integer not null
);

-- The engine's snapshots. What the document says itself is a virtual column:
-- readable here, and stored once.
create table WF_RUNTIME_STATES (
  INSTANCE_NO             integer primary key,
  INSTANCE_ID             text not null,
  STATE_VERSION           integer not null,
  WAITING_UNTIL_UTC       integer,
  ACTIVE_TASK_ID          text,
  LAST_SIGNAL_ID          text,
  LAST_EXECUTED_BY        text,
  LAST_EXECUTED_ON_UTC    integer,
  CREATED_ON_UTC          integer not null,
  UPDATED_ON_UTC          integer not null,
  STATE_CHECKSUM          integer not null, -- CRC-32C of STATE_JSON
  STATE_JSON              blob not null,
  BUSINESS_REFERENCE      text as (json_extract(cast(STATE_JSON as text), '$.businessReference')) virtual,
  RUNTIME_PROVIDER        text as ('aqueduct') virtual,
  RUNTIME_INSTANCE_ID     text as (INSTANCE_ID) virtual,
  RUNTIME_STATUS          text as (json_extract(cast(STATE_JSON as text), '$.status')) virtual,
  SNAPSHOT_SCHEMA_VERSION integer as (json_extract(cast(STATE_JSON as text), '$.engineSchemaVersion')) virtual,
  WAITING_KIND            text as (json_extract(cast(STATE_JSON as text), '$.waiting.kind')) virtual,
  WAITING_TOKEN           text as (json_extract(cast(STATE_JSON as text), '$.waiting.token')) virtual,
  RESUME_POINTER_JSON     text as (json_extract(cast(STATE_JSON as text), '$.resume')) virtual,
  LAST_ERROR_CODE         text as (json_extract(cast(STATE_JSON as text), '$.error.type')) virtual,
  LAST_ERROR_JSON         text as (json_extract(cast(STATE_JSON as text), '$.error')) virtual
);
create unique index WF_RUNTIME_STATES_ID on WF_RUNTIME_STATES (INSTANCE_ID);

create table WF_INSTANCES (
  INSTANCE_NO        integer primary key, -- of WF_RUNTIME_STATES
  INSTANCE_ID        text not null,
  DEFINITION         text,
  DEFINITION_VERSION text,
  BUSINESS_KEY       text,
  START_KEY          text,
  STATUS             text,
  STATE              text,
  PARENT_ID          text,
  CORRELATION_ID     text,
  STATE_VERSION      integer not null,
  ERROR_TYPE         text,
  ERROR_DETAIL       text,
  STARTED_ON_UTC     integer,
  UPDATED_ON_UTC     integer,
  ENDED_ON_UTC       integer
);
create unique index WF_INSTANCES_START on WF_INSTANCES (START_KEY, coalesce(BUSINESS_KEY, ''), coalesce(DEFINITION, ''))
  where START_KEY is not null;
create index WF_INSTANCES_BUSINESS on WF_INSTANCES (BUSINESS_KEY) where BUSINESS_KEY is not null;
create index WF_INSTANCES_STATUS on WF_INSTANCES (STATUS);
create index WF_INSTANCES_ENDED on WF_INSTANCES (ENDED_ON_UTC) where ENDED_ON_UTC is not null;

-- ENTRY_NO = INSTANCE_NO * 2^24 + POSITION: an instance's entries lie together
-- and need no second index.
create table WF_STREAM (
  ENTRY_NO            integer primary key,
  KIND                text,
  DIRECTION           text,
  TYPE                text,
  SIGNAL_ID           text,
  CREATED_ON_UTC      integer,
  PROCESSED           integer,
  PROCESSED_ON_UTC    integer,
  CLAIMED_BY          integer, -- NODE_NO
  ATTEMPTS            integer not null default 0,
  NEXT_ATTEMPT_ON_UTC integer,
  LAST_ERROR          text,
  DATA                blob, -- empty: the instance's input, which STATE_JSON has
  METADATA            blob,
  INSTANCE_NO         integer as (ENTRY_NO >> 24) virtual,
  POSITION            integer as (ENTRY_NO & 16777215) virtual
);
create unique index WF_STREAM_SIGNAL on WF_STREAM (INSTANCE_NO, SIGNAL_ID) where SIGNAL_ID is not null;
create index WF_STREAM_PENDING on WF_STREAM (CLAIMED_BY) where PROCESSED = 0;

create table WF_TASKS (
  TASK_NO          integer primary key,
  TASK_ID          text not null,
  INSTANCE_NO      integer not null,
  DEFINITION       text,
  BUSINESS_KEY     text,
  NAME             text,
  TITLE            text,
  STATUS           text not null,
  ASSIGNEE         text,
  CANDIDATE_USERS  text,
  CANDIDATE_GROUPS text,
  EXCLUDED_USERS   text,
  OUTCOMES         text,
  PRIORITY         integer not null,
  WAITING_TOKEN    text,
  TASK_VERSION     integer not null,
  CREATED_ON_UTC   integer,
  DUE_ON_UTC       integer,
  ENDED_ON_UTC     integer,
  ENDED_BY         text,
  OUTCOME          text,
  PAYLOAD          blob,
  FORM             blob,
  OUTPUT           blob
);
create unique index WF_TASKS_ID on WF_TASKS (TASK_ID);
create index WF_TASKS_INSTANCE on WF_TASKS (INSTANCE_NO);
create index WF_TASKS_OPEN on WF_TASKS (PRIORITY) where STATUS in ('ready', 'reserved');
create index WF_TASKS_ASSIGNEE on WF_TASKS (ASSIGNEE, PRIORITY) where ASSIGNEE is not null;

create table WF_TASK_EVENTS (
  EVENT_NO        integer primary key,
  TASK_NO         integer not null,
  EVENT           text,
  ACTOR           text,
  OCCURRED_ON_UTC integer,
  DATA            blob
);
create index WF_TASK_EVENTS_TASK on WF_TASK_EVENTS (TASK_NO);

-- Specs are few and long, waits are many: a wait names its spec by number.
create table WF_WAIT_SPECS (
  SPEC_NO    integer primary key,
  EVENT_TYPE text not null,
  SPEC       text not null
);
create unique index WF_WAIT_SPECS_NAME on WF_WAIT_SPECS (EVENT_TYPE, SPEC);

create table WF_WAITS (
  WAIT_NO        integer primary key,
  INSTANCE_NO    integer not null,
  SPEC_NO        integer not null,
  KEY_HASH       blob,
  WAITING_TOKEN  text not null,
  CREATED_ON_UTC integer
);
create index WF_WAITS_KEY on WF_WAITS (SPEC_NO, KEY_HASH, WAITING_TOKEN);
create index WF_WAITS_INSTANCE on WF_WAITS (INSTANCE_NO);

create table WF_DEFINITIONS (
  DEFINITION_NO    integer primary key,
  NAME             text not null,
  VERSION          text not null,
  DIGEST           text not null,
  KIND             text,
  TITLE            text,
  PUBLISHED_ON_UTC integer,
  SOURCE           blob,
  DOCUMENT         blob
);
create unique index WF_DEFINITIONS_NAME on WF_DEFINITIONS (NAME, VERSION);

-- STATE: 0 ready, 1 waiting for VISIBLE_AT, 10 with a worker of LEASE_OWNER.
create table WF_MESSAGES (
  MSG_ID      integer primary key, -- order within a priority
  QUEUE       text not null,
  STATE       integer not null,
  PRIORITY    integer not null,
  VISIBLE_AT  integer,
  ENQ_AT      integer not null,
  ATTEMPTS    integer not null default 0,
  CRASHES     integer not null default 0,
  LEASE_OWNER integer, -- NODE_NO
  PAYLOAD     blob not null
);
create index WF_MESSAGES_READY on WF_MESSAGES (QUEUE, PRIORITY, MSG_ID) where STATE = 0;
create index WF_MESSAGES_WAIT on WF_MESSAGES (VISIBLE_AT) where STATE = 1;
create index WF_MESSAGES_LEASE on WF_MESSAGES (LEASE_OWNER) where STATE = 10;

create table WF_DEAD_LETTERS (
  LETTER_NO       integer primary key,
  DEAD_LETTER_ID  text not null,
  QUEUE           text,
  INSTANCE_ID     text,
  REASON          text,
  DETAIL          text,
  ATTEMPTS        integer not null default 0,
  NODE            text,
  ENQUEUED_ON_UTC integer,
  DIED_ON_UTC     integer,
  ENVELOPE        blob not null
);
create unique index WF_DEAD_LETTERS_ID on WF_DEAD_LETTERS (DEAD_LETTER_ID);
create index WF_DEAD_LETTERS_INSTANCE on WF_DEAD_LETTERS (INSTANCE_ID) where INSTANCE_ID is not null;

create table WF_HOST_LOCKS (
  NAME      text not null primary key,
  OWNER     text not null,
  UNTIL_UTC integer not null
) without rowid;

create view WF_V_STREAM as
select R.INSTANCE_ID, S.POSITION, S.KIND, S.DIRECTION, S.TYPE, S.SIGNAL_ID, S.CREATED_ON_UTC, S.PROCESSED,
       S.PROCESSED_ON_UTC, N.NODE as CLAIMED_BY, S.ATTEMPTS, S.NEXT_ATTEMPT_ON_UTC, S.LAST_ERROR,
       case when length(S.DATA) = 0 then cast(R.STATE_JSON -> '$.workflowState.input' as blob) else S.DATA end as DATA,
       S.METADATA
from WF_STREAM S
join WF_RUNTIME_STATES R on R.INSTANCE_NO = S.INSTANCE_NO
left join WF_NODES N on N.NODE_NO = S.CLAIMED_BY;

create view WF_V_WAITS as
select W.WAITING_TOKEN, R.INSTANCE_ID, P.EVENT_TYPE, P.SPEC, lower(hex(W.KEY_HASH)) as KEY_HASH, W.CREATED_ON_UTC
from WF_WAITS W
join WF_WAIT_SPECS P on P.SPEC_NO = W.SPEC_NO
join WF_RUNTIME_STATES R on R.INSTANCE_NO = W.INSTANCE_NO;
