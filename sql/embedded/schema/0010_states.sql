-- What a snapshot says itself is shown by a view. As virtual columns of the table
-- it was computed with every write of a snapshot, a twentieth of a step's work.
create table WF_STATES (
  INSTANCE_NO          integer primary key,
  INSTANCE_ID          text not null,
  STATE_VERSION        integer not null,
  WAITING_UNTIL_UTC    integer,
  ACTIVE_TASK_ID       text,
  LAST_SIGNAL_ID       text,
  LAST_EXECUTED_BY     text,
  LAST_EXECUTED_ON_UTC integer,
  CREATED_ON_UTC       integer not null,
  UPDATED_ON_UTC       integer not null,
  STATE_CHECKSUM       integer not null, -- CRC-32C of STATE_JSON
  STATE_JSON           blob not null
);
insert into WF_STATES
select INSTANCE_NO, INSTANCE_ID, STATE_VERSION, WAITING_UNTIL_UTC, ACTIVE_TASK_ID, LAST_SIGNAL_ID, LAST_EXECUTED_BY,
       LAST_EXECUTED_ON_UTC, CREATED_ON_UTC, UPDATED_ON_UTC, STATE_CHECKSUM, STATE_JSON
from WF_RUNTIME_STATES;
create unique index WF_STATES_ID on WF_STATES (INSTANCE_ID);
drop table WF_RUNTIME_STATES;

create view WF_RUNTIME_STATES as
select INSTANCE_NO, INSTANCE_ID, STATE_VERSION, WAITING_UNTIL_UTC, ACTIVE_TASK_ID, LAST_SIGNAL_ID, LAST_EXECUTED_BY,
       LAST_EXECUTED_ON_UTC, CREATED_ON_UTC, UPDATED_ON_UTC, STATE_CHECKSUM, STATE_JSON,
       json_extract(cast(STATE_JSON as text), '$.businessReference') as BUSINESS_REFERENCE,
       'aqueduct' as RUNTIME_PROVIDER,
       INSTANCE_ID as RUNTIME_INSTANCE_ID,
       json_extract(cast(STATE_JSON as text), '$.status') as RUNTIME_STATUS,
       json_extract(cast(STATE_JSON as text), '$.engineSchemaVersion') as SNAPSHOT_SCHEMA_VERSION,
       json_extract(cast(STATE_JSON as text), '$.waiting.kind') as WAITING_KIND,
       json_extract(cast(STATE_JSON as text), '$.waiting.token') as WAITING_TOKEN,
       json_extract(cast(STATE_JSON as text), '$.resume') as RESUME_POINTER_JSON,
       json_extract(cast(STATE_JSON as text), '$.error.type') as LAST_ERROR_CODE,
       json_extract(cast(STATE_JSON as text), '$.error') as LAST_ERROR_JSON
from WF_STATES;
