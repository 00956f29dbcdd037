select R.INSTANCE_ID, R.RUNTIME_STATUS || ' for a ' || R.WAITING_KIND || ' that is not there'
from WF_RUNTIME_STATES R
where R.RUNTIME_STATUS in ('waiting', 'running') and (
    R.WAITING_KIND = 'Command' and not exists (select 1 from WF_STREAM S not indexed
      where S.ENTRY_NO between R.INSTANCE_NO << 24 and (R.INSTANCE_NO + 1 << 24) - 1 and S.PROCESSED = 0)
    or R.WAITING_KIND = 'Task' and not exists (select 1 from WF_TASKS T
      where T.INSTANCE_NO = R.INSTANCE_NO and T.WAITING_TOKEN = R.WAITING_TOKEN and T.STATUS in ('ready', 'reserved'))
    or R.WAITING_KIND = 'Event' and not exists (select 1 from WF_WAITS W where W.INSTANCE_NO = R.INSTANCE_NO and W.WAITING_TOKEN = R.WAITING_TOKEN))
limit ?
