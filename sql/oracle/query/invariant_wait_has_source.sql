select R.INSTANCE_ID, R.RUNTIME_STATUS || ' for a ' || R.WAITING_KIND || ' that is not there'
from WF_RUNTIME_STATES R
where R.RUNTIME_STATUS in ('waiting', 'running') and (
    R.WAITING_KIND = 'Command' and not exists (select 1 from WF_STREAM S where S.INSTANCE_ID = R.INSTANCE_ID and S.PROCESSED = 0
      and JSON_VALUE(S.DATA FORMAT JSON, '$.token') = R.WAITING_TOKEN)
    or R.WAITING_KIND = 'Task' and not exists (select 1 from WF_TASKS T
      where T.INSTANCE_ID = R.INSTANCE_ID and T.WAITING_TOKEN = R.WAITING_TOKEN and T.STATUS in ('ready', 'reserved'))
    or R.WAITING_KIND = 'Event' and not exists (select 1 from WF_WAITS W where W.INSTANCE_ID = R.INSTANCE_ID and W.WAITING_TOKEN = R.WAITING_TOKEN))
fetch first :ROWS_MAX rows only
