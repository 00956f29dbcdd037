select V.ABOUT, V.FOUND from (
  select S.INSTANCE_ID ABOUT, 'it has a stream and no snapshot' FOUND from WF_STREAM S
  where not exists (select 1 from WF_RUNTIME_STATES R where R.INSTANCE_ID = S.INSTANCE_ID)
  union all
  select T.TASK_ID, 'its instance is not there' from WF_TASKS T
  where not exists (select 1 from WF_RUNTIME_STATES R where R.INSTANCE_ID = T.INSTANCE_ID)
  union all
  select W.INSTANCE_ID, 'it has a wait and no snapshot' from WF_WAITS W
  where not exists (select 1 from WF_RUNTIME_STATES R where R.INSTANCE_ID = W.INSTANCE_ID)
  union all
  select A.INSTANCE_ID, 'it has a search attribute and no snapshot' from WF_ATTRIBUTES A
  where not exists (select 1 from WF_RUNTIME_STATES R where R.INSTANCE_ID = A.INSTANCE_ID)
  union all
  select E.TASK_ID, 'it has an event and is not there' from WF_TASK_EVENTS E
  where not exists (select 1 from WF_TASKS T where T.TASK_ID = E.TASK_ID)
) V
fetch first :ROWS_MAX rows only
