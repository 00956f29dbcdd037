-- The first moment that an instance waits for, of any of its waits; null: none, or it is stopped.
update WF_STATES set WAITING_UNTIL_UTC = iif(json_valid(cast(STATE_JSON as text)) and cast(STATE_JSON as text) ->> '$.status' in ('waiting', 'running'), (
  select min(cast(1000 * unixepoch(iif(W.value ->> '$.kind' = 'Continue', cast(STATE_JSON as text) ->> '$.updatedAtUtc', W.value ->> '$.untilUtc'), 'subsec') as integer) * 1000)
  from json_each(json_insert(coalesce(cast(STATE_JSON as text) -> '$.waits', '[]'), '$[#]', json(coalesce(cast(STATE_JSON as text) -> '$.waiting', '{}')))) W), null);
create index WF_STATES_DUE on WF_STATES (WAITING_UNTIL_UTC) where WAITING_UNTIL_UTC is not null;
create index WF_MESSAGES_LATER on WF_MESSAGES (MSG_ID) where STATE = 1 and QUEUE = 'signal';
