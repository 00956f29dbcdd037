select R.INSTANCE_ID, count(S.POSITION) || ' entries from ' || min(S.POSITION) || ' to ' || max(S.POSITION)
from WF_RUNTIME_STATES R
left join WF_STREAM S on S.INSTANCE_ID = R.INSTANCE_ID
group by R.INSTANCE_ID
having count(S.POSITION) = 0 or count(S.POSITION) <> max(S.POSITION) or min(S.POSITION) <> 1
fetch first :ROWS_MAX rows only
