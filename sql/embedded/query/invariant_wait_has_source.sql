select R.INSTANCE_ID, (R.STATE_TEXT ->> '$.status') || ' at ' || (W.value ->> '$.ptr') || ' for a ' || (W.value ->> '$.kind') || ' that is not there'
from WF_DOCUMENTS R, json_each(json_insert(coalesce(R.STATE_TEXT -> '$.waits', '[]'), '$[#]', json(coalesce(R.STATE_TEXT -> '$.waiting', '{}')))) W
where (W.value ->> '$.kind' = 'Command' and not exists (select 1 from WF_STREAM S not indexed
      where S.ENTRY_NO = (R.INSTANCE_NO << 24) + (W.value ->> '$.command') and S.PROCESSED = 0)
    or W.value ->> '$.kind' = 'Task' and not exists (select 1 from WF_TASKS T
      where T.INSTANCE_NO = R.INSTANCE_NO and T.WAITING_TOKEN = W.value ->> '$.token' and T.STATUS in ('ready', 'reserved'))
    or W.value ->> '$.kind' = 'Event' and not exists (select 1 from WF_WAITS E where E.INSTANCE_NO = R.INSTANCE_NO and E.WAITING_TOKEN = W.value ->> '$.token'))
limit ?
