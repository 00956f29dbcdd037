select R.INSTANCE_ID, S.POSITION, S.KIND, S.DIRECTION, S.TYPE,
  case when length(S.DATA) = 0 then cast(R.STATE_TEXT -> '$.workflowState.input' as blob) else S.DATA end as DATA,
  S.METADATA, S.SIGNAL_ID, S.CREATED_ON_UTC, S.PROCESSED,
  S.PROCESSED_ON_UTC, (select N.NODE from WF_NODES N where N.NODE_NO = S.CLAIMED_BY) as CLAIMED_BY, S.ATTEMPTS, S.NEXT_ATTEMPT_ON_UTC, S.LAST_ERROR,
  S.DELIVERED_ON_UTC, S.DELIVERIES,
  case when S.PROCESSED is not null and json_valid(cast(S.DATA as text)) then json_extract(cast(S.DATA as text), '$.key') end as EFFECT_KEY,
  S.OUTCOME_UNKNOWN, S.GIVEN_UP_ON_UTC,
  S.CHECKSUM, length(S.DATA) = 0 as ELSEWHERE
from WF_STREAM S
join WF_DOCUMENTS R on R.INSTANCE_NO = S.INSTANCE_NO
