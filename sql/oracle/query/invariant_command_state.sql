select S.INSTANCE_ID, S.KIND || ' ' || S.POSITION || ': processed ' || S.PROCESSED || ', claimed by ' || S.CLAIMED_BY
from WF_STREAM S
where S.KIND = 'command' and (S.PROCESSED is null or S.PROCESSED = 0 and S.PROCESSED_ON_UTC is not null
    or S.PROCESSED = 1 and (S.PROCESSED_ON_UTC is null or S.CLAIMED_BY is not null))
  or S.KIND <> 'command' and (S.PROCESSED is not null or S.CLAIMED_BY is not null)
fetch first :ROWS_MAX rows only
