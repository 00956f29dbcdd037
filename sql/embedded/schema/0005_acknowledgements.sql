-- Acknowledgements: a command's row says when it was delivered, and how often.
alter table WF_STREAM add column DELIVERED_ON_UTC integer;
alter table WF_STREAM add column DELIVERIES integer not null default 0;

drop view WF_V_STREAM;
create view WF_V_STREAM as
select R.INSTANCE_ID, S.POSITION, S.KIND, S.DIRECTION, S.TYPE, S.SIGNAL_ID, S.CREATED_ON_UTC, S.PROCESSED,
       S.PROCESSED_ON_UTC, N.NODE as CLAIMED_BY, S.ATTEMPTS, S.NEXT_ATTEMPT_ON_UTC, S.LAST_ERROR, S.DELIVERED_ON_UTC, S.DELIVERIES,
       case when length(S.DATA) = 0 then cast(R.STATE_JSON -> '$.workflowState.input' as blob) else S.DATA end as DATA,
       S.METADATA
from WF_STREAM S
join WF_RUNTIME_STATES R on R.INSTANCE_NO = S.INSTANCE_NO
left join WF_NODES N on N.NODE_NO = S.CLAIMED_BY;
