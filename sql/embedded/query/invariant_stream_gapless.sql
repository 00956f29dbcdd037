select R.INSTANCE_ID, count(S.ENTRY_NO) || ' entries from ' || coalesce(min(S.POSITION), 0) || ' to ' || coalesce(max(S.POSITION), 0)
  || ', the snapshot is at ' || json_extract(R.STATE_TEXT, '$.position')
from WF_DOCUMENTS R
left join WF_STREAM S on S.ENTRY_NO between R.INSTANCE_NO << 24 and (R.INSTANCE_NO + 1 << 24) - 1
group by R.INSTANCE_NO
having count(S.ENTRY_NO) <> coalesce(max(S.POSITION), 0) or coalesce(min(S.POSITION), 1) <> 1
  or coalesce(max(S.POSITION), 0) <> json_extract(R.STATE_TEXT, '$.position')
limit ?
