with SENT as materialized (
  select json_extract(cast(M.PAYLOAD as text), '$.waitingToken') as TOKEN from WF_MESSAGES M where json_valid(cast(M.PAYLOAD as text))
  union all
  select json_extract(cast(L.ENVELOPE as text), '$.waitingToken') from WF_DEAD_LETTERS L where json_valid(cast(L.ENVELOPE as text))
  union all
  select T.value from WF_MESSAGES M, json_each(iif(json_valid(cast(M.PAYLOAD as text)), cast(M.PAYLOAD as text), '{}'), '$.payload.tokens') T
  union all
  select T.value from WF_DEAD_LETTERS L, json_each(iif(json_valid(cast(L.ENVELOPE as text)), cast(L.ENVELOPE as text), '{}'), '$.payload.tokens') T
)
select R.INSTANCE_ID, (W.value ->> '$.kind') || ' at ' || (W.value ->> '$.ptr') || ' until ' || coalesce(W.value ->> '$.untilUtc', 'the next turn') || ' has no message'
from WF_DOCUMENTS R, json_each(json_insert(coalesce(R.STATE_TEXT -> '$.waits', '[]'), '$[#]', json(coalesce(R.STATE_TEXT -> '$.waiting', '{}')))) W
where W.value ->> '$.kind' in ('Timer', 'Retry', 'Timeout', 'Due', 'Continue')
  and W.value ->> '$.token' not in (select TOKEN from SENT where TOKEN is not null)
  and not exists (select 1 from json_each(R.STATE_TEXT, '$.continuationBuffer') B where B.value ->> '$.waitingToken' = W.value ->> '$.token'
    or W.value ->> '$.token' in (select T.value from json_each(B.value, '$.payload.tokens') T))
limit ?
