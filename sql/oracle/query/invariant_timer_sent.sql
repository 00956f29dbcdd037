with SENT as (
  select JSON_VALUE(A.USER_DATA FORMAT JSON, '$.waitingToken') TOKEN from AQ$WF_SCHEDULE_QTAB A
  union all
  select JSON_VALUE(A.USER_DATA FORMAT JSON, '$.waitingToken') from AQ$WF_SIGNAL_QTAB A
  union all
  select JSON_VALUE(L.ENVELOPE FORMAT JSON, '$.waitingToken') from WF_DEAD_LETTERS L
)
select R.INSTANCE_ID, R.WAITING_KIND || ' of the token ' || R.WAITING_TOKEN || ' has no message'
from WF_RUNTIME_STATES R
where R.RUNTIME_STATUS in ('waiting', 'running') and R.WAITING_KIND in ('Timer', 'Retry', 'Continue')
  and R.WAITING_TOKEN not in (select N.TOKEN from SENT N where N.TOKEN is not null)
  and not exists (select 1 from AQ$WF_SIGNAL_QTAB Q where INSTR(JSON_QUERY(Q.USER_DATA FORMAT JSON, '$.payload.tokens' RETURNING CLOB), '"' || R.WAITING_TOKEN || '"') > 0)
  and not exists (select 1 from AQ$WF_SCHEDULE_QTAB Q where INSTR(JSON_QUERY(Q.USER_DATA FORMAT JSON, '$.payload.tokens' RETURNING CLOB), '"' || R.WAITING_TOKEN || '"') > 0)
  and not exists (select 1 from WF_DEAD_LETTERS D where INSTR(JSON_QUERY(D.ENVELOPE FORMAT JSON, '$.payload.tokens' RETURNING CLOB), '"' || R.WAITING_TOKEN || '"') > 0)
fetch first :ROWS_MAX rows only
