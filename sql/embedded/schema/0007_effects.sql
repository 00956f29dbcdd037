-- Effects: a command's row says under which key it is performed, and whether
-- nobody knows what came of it. The key is in DATA; a virtual column for it would
-- be computed with every write of a row.
alter table WF_STREAM add column OUTCOME_UNKNOWN integer not null default 0;

drop view WF_V_STREAM;
create view WF_V_STREAM as
select R.INSTANCE_ID, S.POSITION, S.KIND, S.DIRECTION, S.TYPE, S.SIGNAL_ID, S.CREATED_ON_UTC, S.PROCESSED,
       S.PROCESSED_ON_UTC, N.NODE as CLAIMED_BY, S.ATTEMPTS, S.NEXT_ATTEMPT_ON_UTC, S.LAST_ERROR, S.DELIVERED_ON_UTC, S.DELIVERIES,
       case when S.PROCESSED is not null and json_valid(cast(S.DATA as text)) then json_extract(cast(S.DATA as text), '$.key') end as EFFECT_KEY,
       S.OUTCOME_UNKNOWN,
       case when length(S.DATA) = 0 then cast(R.STATE_JSON -> '$.workflowState.input' as blob) else S.DATA end as DATA,
       S.METADATA
from WF_STREAM S
join WF_RUNTIME_STATES R on R.INSTANCE_NO = S.INSTANCE_NO
left join WF_NODES N on N.NODE_NO = S.CLAIMED_BY;
