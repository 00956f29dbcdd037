select T.TASK_ID, T.TASK_VERSION, R.INSTANCE_ID, T.CANDIDATE_USERS, T.CANDIDATE_GROUPS, T.EXCLUDED_USERS
from WF_TASKS T
join WF_STATES R on R.INSTANCE_NO = T.INSTANCE_NO
where T.STATUS in ('ready', 'reserved') and T.STATUS = 'ready'
  and (coalesce(T.CANDIDATE_USERS, '[]') = '[]' and coalesce(T.CANDIDATE_GROUPS, '[]') = '[]'
    or exists (select 1 from json_each(T.CANDIDATE_USERS) where VALUE = ?)
    or exists (select 1 from json_each(T.CANDIDATE_GROUPS) where VALUE in (select G.VALUE from json_each(?) G)))
  and not exists (select 1 from json_each(T.EXCLUDED_USERS) where VALUE = ?)
order by T.PRIORITY, T.TASK_NO
limit ?
