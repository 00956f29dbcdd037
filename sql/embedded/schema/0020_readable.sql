-- A damaged snapshot is one row that cannot be read, not all: STATE_TEXT is the document
-- where it is JSON, and null else.
drop view WF_DOCUMENTS;
create view WF_DOCUMENTS as
select D.*, iif(json_valid(cast(D.STATE_JSON as text)), cast(D.STATE_JSON as text), null) as STATE_TEXT
from (
  select S.INSTANCE_NO, S.INSTANCE_ID, S.STATE_VERSION, S.WAITING_UNTIL_UTC, S.ACTIVE_TASK_ID, S.LAST_SIGNAL_ID, S.LAST_EXECUTED_BY,
         S.LAST_EXECUTED_ON_UTC, S.CREATED_ON_UTC, S.UPDATED_ON_UTC, S.STATE_CHECKSUM,
         case when S.STATE_CUTS is null or not json_valid(S.STATE_CUTS) then S.STATE_JSON else cast((
           select group_concat(cast(substr(S.STATE_JSON, (C.value ->> 0) + 1, C.value ->> 1) as text)
             || iif(C.value ->> 2 is null, '', cast(substr((select P.BODY from WF_STATE_PIECES P where P.PIECE_ID = S.INSTANCE_NO * 1048576 + (C.value ->> 2)),
                  (C.value ->> 3) + 1, C.value ->> 4) as text)), '')
           from json_each(S.STATE_CUTS) C where C.type = 'array') as blob) end as STATE_JSON
  from WF_STATES S) D;
drop view WF_RUNTIME_STATES;
create view WF_RUNTIME_STATES as
select INSTANCE_NO, INSTANCE_ID, STATE_VERSION, WAITING_UNTIL_UTC, ACTIVE_TASK_ID, LAST_SIGNAL_ID, LAST_EXECUTED_BY,
       LAST_EXECUTED_ON_UTC, CREATED_ON_UTC, UPDATED_ON_UTC, STATE_CHECKSUM, STATE_JSON,
       json_extract(STATE_TEXT, '$.businessReference') as BUSINESS_REFERENCE,
       'aqueduct' as RUNTIME_PROVIDER,
       INSTANCE_ID as RUNTIME_INSTANCE_ID,
       json_extract(STATE_TEXT, '$.status') as RUNTIME_STATUS,
       json_extract(STATE_TEXT, '$.engineSchemaVersion') as SNAPSHOT_SCHEMA_VERSION,
       json_extract(STATE_TEXT, '$.waiting.kind') as WAITING_KIND,
       json_extract(STATE_TEXT, '$.waiting.token') as WAITING_TOKEN,
       json_extract(STATE_TEXT, '$.resume') as RESUME_POINTER_JSON,
       json_extract(STATE_TEXT, '$.error.type') as LAST_ERROR_CODE,
       json_extract(STATE_TEXT, '$.error') as LAST_ERROR_JSON
from WF_DOCUMENTS;
drop view WF_V_STATES;
create view WF_V_STATES as
select INSTANCE_ID, STATE_VERSION,
       STATE_TEXT -> '$.workflowState' as WORKFLOW_STATE_JSON,
       STATE_TEXT -> '$.branches[0].data' as DATA_JSON,
       (select json_group_array(json(F.value -> '$.vars')) from json_each(STATE_TEXT, '$.branches') B, json_each(B.value, '$.frames') F
        where F.value -> '$.vars' is not null having count(*) > 0) as VARIABLES_JSON
from WF_DOCUMENTS;
drop view WF_V_STREAM;
create view WF_V_STREAM as
select R.INSTANCE_ID, S.POSITION, S.KIND, S.DIRECTION, S.TYPE,
       case
         when S.TYPE in ('ExternalSignal', 'EventEmitted', 'StateChanged') then
           case when json_valid(cast(S.DATA as text)) then json_extract(cast(S.DATA as text),
             case S.TYPE when 'ExternalSignal' then '$.type' when 'EventEmitted' then '$.input.type' else '$.event' end) end
         else (
           select replace(replace(replace(P.PTR, rtrim(P.PTR, replace(P.PTR, '/', '')), ''), '~1', '/'), '~0', '~')
           from (select json_extract(cast(S.METADATA as text), '$.ptr') as PTR where json_valid(cast(S.METADATA as text))) P)
       end as NAME,
       S.SIGNAL_ID, S.CREATED_ON_UTC, case when S.GIVEN_UP_ON_UTC is null then S.PROCESSED else 0 end as PROCESSED,
       S.PROCESSED_ON_UTC, N.NODE as CLAIMED_BY, S.ATTEMPTS, S.NEXT_ATTEMPT_ON_UTC, S.LAST_ERROR, S.DELIVERED_ON_UTC, S.DELIVERIES,
       case when S.PROCESSED is not null and json_valid(cast(S.DATA as text)) then json_extract(cast(S.DATA as text), '$.key') end as EFFECT_KEY,
       S.OUTCOME_UNKNOWN,
       case when length(S.DATA) = 0 then cast(R.STATE_TEXT -> '$.workflowState.input' as blob) else S.DATA end as DATA,
       S.METADATA, S.GIVEN_UP_ON_UTC,
       case when S.GIVEN_UP_ON_UTC is not null then case S.PROCESSED when 1 then 'discarded' else 'given-up' end
            when S.PROCESSED = 1 then 'processed' when S.DELIVERED_ON_UTC is not null then 'delivered' when S.CLAIMED_BY is not null then 'claimed'
            when S.PROCESSED = 0 then 'open' end as STATUS
from WF_STREAM S
join WF_DOCUMENTS R on R.INSTANCE_NO = S.INSTANCE_NO
left join WF_NODES N on N.NODE_NO = S.CLAIMED_BY;
