with WANTED (TOKEN) as materialized (select value from json_each(?)),
MESSAGES (BODY) as (
  select cast(PAYLOAD as text) from WF_MESSAGES indexed by WF_MESSAGES_READY where QUEUE = 'schedule' and STATE = 0
  union all
  select cast(PAYLOAD as text) from WF_MESSAGES indexed by WF_MESSAGES_READY where QUEUE = 'signal' and STATE = 0
  union all
  select cast(PAYLOAD as text) from WF_MESSAGES indexed by WF_MESSAGES_LEASE where STATE = 10
  union all
  select cast(PAYLOAD as text) from WF_MESSAGES indexed by WF_MESSAGES_WAIT where STATE = 1 and VISIBLE_AT <= ?
  union all
  select cast(PAYLOAD as text) from WF_MESSAGES indexed by WF_MESSAGES_LATER where STATE = 1 and QUEUE = 'signal'
),
NAMED (ONE, ALL_OF) as (
  select json_extract(M.BODY, '$.waitingToken'), coalesce(json_extract(M.BODY, '$.payload.tokens'), '[]') from MESSAGES M where json_valid(M.BODY)
)
select N.ONE as TOKEN from NAMED N where N.ONE in (select TOKEN from WANTED)
union
select T.value from NAMED N, json_each(N.ALL_OF) T where T.value in (select TOKEN from WANTED)
