select R.INSTANCE_ID, S.KIND || ' ' || S.POSITION || ': processed ' || coalesce(S.PROCESSED, 'null') || ', claimed by ' || coalesce(S.CLAIMED_BY, 'nobody')
  || ', ended ' || coalesce(S.PROCESSED_ON_UTC, 'never')
from WF_STREAM S
join WF_STATES R on R.INSTANCE_NO = S.INSTANCE_NO
where S.KIND = 'command' and (S.PROCESSED is null or S.PROCESSED = 0 and S.PROCESSED_ON_UTC is not null
    or S.PROCESSED = 1 and (S.PROCESSED_ON_UTC is null or S.CLAIMED_BY is not null))
  or S.KIND <> 'command' and (S.PROCESSED is not null or S.CLAIMED_BY is not null)
limit ?
