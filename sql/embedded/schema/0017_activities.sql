-- What applications note of instances: nothing that a node decides looks there.
create table WF_ACTIVITIES (
  INSTANCE_NO      integer not null,
  ACTIVITY_ID      text not null,
  NAME             text not null,
  STATUS           text,
  ACTIVITY_VERSION integer not null,
  CREATED_ON_UTC   integer not null,
  CREATED_BY       text,
  UPDATED_ON_UTC   integer not null,
  UPDATED_BY       text,
  FROZEN_ON_UTC    integer, -- null: it may change
  DATA             blob,
  primary key (INSTANCE_NO, ACTIVITY_ID)
);
create index WF_ACTIVITIES_ORDER on WF_ACTIVITIES (INSTANCE_NO, CREATED_ON_UTC, ACTIVITY_ID);
create view WF_V_ACTIVITIES as
select R.INSTANCE_ID, A.ACTIVITY_ID, A.NAME, A.STATUS, A.ACTIVITY_VERSION, A.CREATED_ON_UTC, A.CREATED_BY, A.UPDATED_ON_UTC, A.UPDATED_BY, A.FROZEN_ON_UTC,
       cast(A.DATA as text) as DATA_JSON
from WF_ACTIVITIES A
join WF_STATES R on R.INSTANCE_NO = A.INSTANCE_NO;

-- Names: an entry is shown with what the author of its definition calls it, as the API
-- does: the event that came, was emitted or led to a state, else the task.
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
       S.SIGNAL_ID, S.CREATED_ON_UTC, S.PROCESSED,
       S.PROCESSED_ON_UTC, N.NODE as CLAIMED_BY, S.ATTEMPTS, S.NEXT_ATTEMPT_ON_UTC, S.LAST_ERROR, S.DELIVERED_ON_UTC, S.DELIVERIES,
       case when S.PROCESSED is not null and json_valid(cast(S.DATA as text)) then json_extract(cast(S.DATA as text), '$.key') end as EFFECT_KEY,
       S.OUTCOME_UNKNOWN,
       case when length(S.DATA) = 0 then cast(R.STATE_JSON -> '$.workflowState.input' as blob) else S.DATA end as DATA,
       S.METADATA
from WF_STREAM S
join WF_STATES R on R.INSTANCE_NO = S.INSTANCE_NO
left join WF_NODES N on N.NODE_NO = S.CLAIMED_BY;
-- What has happened to instances, in time: order by OCCURRED_ON_UTC, INSTANCE_ID, PLACE. What nodes do is read from the stream and the tasks.
create view WF_V_MOMENTS as
select I.INSTANCE_NO, I.BUSINESS_KEY, I.DEFINITION, I.INSTANCE_ID, S.CREATED_ON_UTC as OCCURRED_ON_UTC, printf('%020d', S.ENTRY_NO & 16777215) as PLACE, S.KIND,
       S.DIRECTION, S.ENTRY_NO & 16777215 as POSITION, null as REF_ID, S.TYPE as NAME,
       case when S.PROCESSED = 1 then 'processed' when S.DELIVERED_ON_UTC is not null then 'delivered' when S.CLAIMED_BY is not null then 'claimed'
            when S.PROCESSED = 0 then 'open' end as STATUS,
       S.PROCESSED_ON_UTC as ENDED_ON_UTC,
       case when json_valid(cast(S.METADATA as text)) then json_extract(cast(S.METADATA as text), '$.actor') end as ACTOR,
       case when json_valid(cast(S.METADATA as text)) then json_extract(cast(S.METADATA as text), '$.ptr') end as POINTER,
       (select case
          when Q.P glob '/states/*' then case
            when substr(Q.P, 8 + instr(substr(Q.P, 9), '/')) glob '/onEnter/*' then 'onEnter'
            when substr(Q.P, 8 + instr(substr(Q.P, 9), '/')) glob '/onExit/*' then 'onExit' end
          when Q.P glob '/transitions/*' and substr(Q.P, 13 + instr(substr(Q.P, 14), '/')) glob '/hooks/*' then 'hooks' end
        from (select case when cast(S.METADATA as text) ->> '$.ptr' glob '/policy/*'
                then substr(cast(S.METADATA as text) ->> '$.ptr', 8 + instr(substr(cast(S.METADATA as text) ->> '$.ptr', 9), '/'))
                else cast(S.METADATA as text) ->> '$.ptr' end as P
              where json_valid(cast(S.METADATA as text))) Q) as HOOK,
       I.CORRELATION_ID, S.ATTEMPTS, S.LAST_ERROR
from WF_INSTANCES I
join WF_STREAM S on S.ENTRY_NO > (I.INSTANCE_NO << 24) and S.ENTRY_NO < ((I.INSTANCE_NO + 1) << 24)
union all
select I.INSTANCE_NO, I.BUSINESS_KEY, I.DEFINITION, I.INSTANCE_ID, T.CREATED_ON_UTC, 'task/' || T.TASK_ID, 'task',
       null, null, T.TASK_ID, T.NAME, T.STATUS, T.ENDED_ON_UTC, coalesce(T.ENDED_BY, T.ASSIGNEE), null, null, I.CORRELATION_ID, null, null
from WF_INSTANCES I
join WF_TASKS T on T.INSTANCE_NO = I.INSTANCE_NO
union all
select I.INSTANCE_NO, I.BUSINESS_KEY, I.DEFINITION, I.INSTANCE_ID, A.CREATED_ON_UTC, 'activity/' || A.ACTIVITY_ID, 'activity',
       null, null, A.ACTIVITY_ID, A.NAME, A.STATUS, A.FROZEN_ON_UTC, A.UPDATED_BY, null, null, I.CORRELATION_ID, null, null
from WF_INSTANCES I
join WF_ACTIVITIES A on A.INSTANCE_NO = I.INSTANCE_NO;

-- Versions that live: which ones instances run that have not ended.
create index WF_INSTANCES_LIVE on WF_INSTANCES (DEFINITION, DEFINITION_VERSION) where ENDED_ON_UTC is null;
