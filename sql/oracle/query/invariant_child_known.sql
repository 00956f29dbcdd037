with SENT as (
  select JSON_VALUE(A.USER_DATA FORMAT JSON, '$.waitingToken') TOKEN, JSON_VALUE(A.USER_DATA FORMAT JSON, '$.workflowInstanceId') TARGET from AQ$WF_SIGNAL_QTAB A
  union all
  select JSON_VALUE(L.ENVELOPE FORMAT JSON, '$.waitingToken'), JSON_VALUE(L.ENVELOPE FORMAT JSON, '$.workflowInstanceId') from WF_DEAD_LETTERS L
), ASKED as (
  select S.INSTANCE_ID PARENT, JSON_VALUE(S.DATA FORMAT JSON, '$.instanceId') CHILD from WF_STREAM S where S.TYPE = 'ChildStarted'
)
select V.ABOUT, V.FOUND from (
  select R.INSTANCE_ID ABOUT, 'it waits for a child, has asked for none that goes on, and nothing is on its way' FOUND
  from WF_RUNTIME_STATES R
  where R.RUNTIME_STATUS in ('waiting', 'running') and R.WAITING_KIND = 'SubWorkflow'
    and not exists (select 1 from ASKED A
      left join WF_INSTANCES C on C.INSTANCE_ID = A.CHILD
      where A.PARENT = R.INSTANCE_ID and (C.STATUS not in ('completed', 'cancelled', 'compensated')
        or C.STATUS is null and A.CHILD in (select N.TARGET from SENT N where N.TARGET is not null)))
    and R.WAITING_TOKEN not in (select N.TOKEN from SENT N where N.TOKEN is not null)
  union all
  select C.INSTANCE_ID, 'its parent ' || C.PARENT_ID || ' has not asked for it'
  from WF_INSTANCES C
  join WF_RUNTIME_STATES R on R.INSTANCE_ID = C.PARENT_ID
  where C.PARENT_ID not like 'schedule.%' and not exists (select 1 from ASKED A where A.PARENT = C.PARENT_ID and A.CHILD = C.INSTANCE_ID)
) V
fetch first :ROWS_MAX rows only
