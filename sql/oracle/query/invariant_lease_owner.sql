select S.INSTANCE_ID, 'command ' || S.POSITION || ' is claimed by ' || S.CLAIMED_BY || ', run ' || S.CLAIMED_RUN
from WF_STREAM S
where S.CLAIMED_BY is not null and S.CLAIMED_RUN is null or S.CLAIMED_BY is null and S.CLAIMED_RUN is not null
fetch first :ROWS_MAX rows only
