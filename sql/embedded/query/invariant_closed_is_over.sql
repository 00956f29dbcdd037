select R.INSTANCE_ID, (R.STATE_TEXT ->> '$.status') || ', and its snapshot waits' from WF_DOCUMENTS R
where R.STATE_TEXT ->> '$.status' in ('completed', 'cancelled', 'compensated')
  and (R.STATE_TEXT ->> '$.waiting.token' is not null or json_array_length(R.STATE_TEXT, '$.waits') > 0)
union all
select R.INSTANCE_ID, R.RUNTIME_STATUS || ', and it waits for an event' from WF_RUNTIME_STATES R
where R.RUNTIME_STATUS in ('completed', 'cancelled', 'compensated') and exists (select 1 from WF_WAITS W where W.INSTANCE_NO = R.INSTANCE_NO)
union all
select R.INSTANCE_ID, R.RUNTIME_STATUS || ', and task ' || T.TASK_ID || ' is ' || T.STATUS
from WF_TASKS T
join WF_RUNTIME_STATES R on R.INSTANCE_NO = T.INSTANCE_NO
where T.STATUS in ('ready', 'reserved') and R.RUNTIME_STATUS in ('completed', 'cancelled', 'compensated')
limit ?
