select V.ABOUT, V.FOUND from (
  select R.INSTANCE_ID ABOUT, R.RUNTIME_STATUS || ', and its snapshot waits' FOUND from WF_RUNTIME_STATES R
  where R.RUNTIME_STATUS in ('completed', 'cancelled', 'compensated') and R.WAITING_TOKEN is not null
  union all
  select R.INSTANCE_ID, R.RUNTIME_STATUS || ', and it waits for an event' from WF_RUNTIME_STATES R
  where R.RUNTIME_STATUS in ('completed', 'cancelled', 'compensated') and exists (select 1 from WF_WAITS W where W.INSTANCE_ID = R.INSTANCE_ID)
  union all
  select R.INSTANCE_ID, R.RUNTIME_STATUS || ', and task ' || T.TASK_ID || ' is ' || T.STATUS
  from WF_TASKS T
  join WF_RUNTIME_STATES R on R.INSTANCE_ID = T.INSTANCE_ID
  where T.STATUS in ('ready', 'reserved') and R.RUNTIME_STATUS in ('completed', 'cancelled', 'compensated')
) V
fetch first :ROWS_MAX rows only
