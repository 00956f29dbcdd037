with SENT as materialized (
  select json_extract(cast(M.PAYLOAD as text), '$.waitingToken') as TOKEN, json_extract(cast(M.PAYLOAD as text), '$.workflowInstanceId') as TARGET
  from WF_MESSAGES M where json_valid(cast(M.PAYLOAD as text))
  union all
  select json_extract(cast(L.ENVELOPE as text), '$.waitingToken'), json_extract(cast(L.ENVELOPE as text), '$.workflowInstanceId')
  from WF_DEAD_LETTERS L where json_valid(cast(L.ENVELOPE as text))
), ASKED as materialized (
  select S.INSTANCE_NO as PARENT_NO, json_extract(cast(S.DATA as text), '$.instanceId') as CHILD from WF_STREAM S
  where S.TYPE = 'ChildStarted' and json_valid(cast(S.DATA as text))
)
select R.INSTANCE_ID, 'it waits at ' || (W.value ->> '$.ptr') || ' for a child that it has not asked for'
from WF_DOCUMENTS R, json_each(json_insert(coalesce(R.STATE_TEXT -> '$.waits', '[]'), '$[#]', json(coalesce(R.STATE_TEXT -> '$.waiting', '{}')))) W
where W.value ->> '$.kind' = 'SubWorkflow' and not exists (
    select 1 from json_each(R.STATE_TEXT, '$.subWorkflowFrames') F
    where F.value ->> '$.token' = W.value ->> '$.token' and (R.INSTANCE_NO, F.value ->> '$.instanceId') in (select PARENT_NO, CHILD from ASKED))
union all
select R.INSTANCE_ID, 'it waits for the child ' || (F.value ->> '$.instanceId') || ', which is ' || coalesce(C.STATUS, 'not there') || ', and nothing is on its way'
from WF_DOCUMENTS R, json_each(R.STATE_TEXT, '$.subWorkflowFrames') F
left join WF_INSTANCES C on C.INSTANCE_ID = F.value ->> '$.instanceId'
where (C.STATUS is null or C.STATUS in ('completed', 'cancelled', 'compensated'))
  and F.value ->> '$.token' not in (select TOKEN from SENT where TOKEN is not null)
  and (C.STATUS is not null or F.value ->> '$.instanceId' not in (select TARGET from SENT where TARGET is not null))
  and not exists (select 1 from json_each(R.STATE_TEXT, '$.continuationBuffer') B where B.value ->> '$.waitingToken' = F.value ->> '$.token')
union all
select C.INSTANCE_ID, 'its parent ' || C.PARENT_ID || ' has not asked for it'
from WF_INSTANCES C
join WF_STATES R on R.INSTANCE_ID = C.PARENT_ID
where C.PARENT_ID not like 'schedule.%' and (R.INSTANCE_NO, C.INSTANCE_ID) not in (select PARENT_NO, CHILD from ASKED where CHILD is not null)
limit ?
