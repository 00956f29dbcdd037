-- What operators do to many instances or dead letters at once: plans, and the items that were found for each. A plan is over with its window.
create table WF_BULK_PLANS (
  PLAN_ID        text not null primary key,
  OPERATION      text not null,
  STATUS         text not null, -- planning, planned, running, stopped, done
  PLAN_VERSION   integer not null,
  HAS_MORE       integer not null,
  REASON         text,
  CREATED_ON_UTC integer not null,
  CREATED_BY     text,
  UPDATED_ON_UTC integer not null,
  RUN_BY         text,
  ENDED_ON_UTC   integer,
  ASKED          blob not null
);
create index WF_BULK_PLANS_AGE on WF_BULK_PLANS (CREATED_ON_UTC, PLAN_ID);
create table WF_BULK_ITEMS (
  PLAN_ID        text not null,
  ITEM_NO        integer not null,
  TARGET_ID      text not null,
  TARGET_VERSION integer not null,
  TARGET_KIND    text,
  OUTCOME        text, -- done, skipped, failed; null: open
  CODE           text,
  DETAIL         text,
  ENDED_ON_UTC   integer,
  primary key (PLAN_ID, ITEM_NO)
) without rowid;

-- What operators put in the place of a dead letter's bytes, the newest of them. Number 0
-- is what died: it is there when the letter is not any more.
create table WF_LETTER_EDITS (
  DEAD_LETTER_ID text not null,
  EDIT_NO        integer not null,
  INSTANCE_ID    text,
  WHAT           text not null,
  EDITED_ON_UTC  integer not null,
  EDITED_BY      text,
  REASON         text,
  BODY           blob,
  primary key (DEAD_LETTER_ID, EDIT_NO)
);
create index WF_LETTER_EDITS_INSTANCE on WF_LETTER_EDITS (INSTANCE_ID) where INSTANCE_ID is not null;

-- With which priority a replay sends a message; null or 0: the usual one.
alter table WF_DEAD_LETTERS add column PRIORITY integer;

-- A command that is given up is not processed: since when its dead letter waits, or,
-- where PROCESSED is 1, that it was discarded with it.
alter table WF_STREAM add column GIVEN_UP_ON_UTC integer;
update WF_STREAM set GIVEN_UP_ON_UTC = coalesce(NEXT_ATTEMPT_ON_UTC, CREATED_ON_UTC) where PROCESSED = 0 and CLAIMED_BY is null and LAST_ERROR like 'AckGivenUp: %';
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
       case when length(S.DATA) = 0 then cast(R.STATE_JSON -> '$.workflowState.input' as blob) else S.DATA end as DATA,
       S.METADATA, S.GIVEN_UP_ON_UTC,
       case when S.GIVEN_UP_ON_UTC is not null then case S.PROCESSED when 1 then 'discarded' else 'given-up' end
            when S.PROCESSED = 1 then 'processed' when S.DELIVERED_ON_UTC is not null then 'delivered' when S.CLAIMED_BY is not null then 'claimed'
            when S.PROCESSED = 0 then 'open' end as STATUS
from WF_STREAM S
join WF_STATES R on R.INSTANCE_NO = S.INSTANCE_NO
left join WF_NODES N on N.NODE_NO = S.CLAIMED_BY;
drop view WF_V_MOMENTS;
create view WF_V_MOMENTS as
select I.INSTANCE_NO, I.BUSINESS_KEY, I.DEFINITION, I.INSTANCE_ID, S.CREATED_ON_UTC as OCCURRED_ON_UTC, printf('%020d', S.ENTRY_NO & 16777215) as PLACE, S.KIND,
       S.DIRECTION, S.ENTRY_NO & 16777215 as POSITION, null as REF_ID, S.TYPE as NAME,
       case when S.GIVEN_UP_ON_UTC is not null then case S.PROCESSED when 1 then 'discarded' else 'given-up' end
            when S.PROCESSED = 1 then 'processed' when S.DELIVERED_ON_UTC is not null then 'delivered' when S.CLAIMED_BY is not null then 'claimed'
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

-- Which program a node runs.
alter table WF_NODES add column ENGINE_VERSION text;

-- What a node performs, so that it is known which function no node has: a list as JSON.
alter table WF_NODES add column FUNCTIONS text;


-- Instances that have an error: a text is looked for in the words of these alone.
create index WF_INSTANCES_ERROR on WF_INSTANCES (INSTANCE_NO) where ERROR_TYPE is not null;

-- By which key of which correlation a kept event is found, once one who listens for its type has looked.
alter table WF_INBOX add column RULE_HASH text;
alter table WF_INBOX add column KEY_HASH text;
create index WF_INBOX_FILED on WF_INBOX (EVENT_TYPE, RULE_HASH, KEY_HASH, RECEIVED_ON_UTC, EVENT_KEY);
