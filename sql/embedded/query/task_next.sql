select T.TASK_ID, R.INSTANCE_ID, T.DEFINITION, T.BUSINESS_KEY, T.NAME, T.TITLE, T.STATUS, T.ASSIGNEE, T.ASSIGNED_AS, T.CANDIDATE_USERS, T.CANDIDATE_GROUPS,
  T.EXCLUDED_USERS, T.OUTCOMES, T.PRIORITY, T.WAITING_TOKEN, T.TASK_VERSION, T.CREATED_ON_UTC, T.DUE_ON_UTC, T.ESCALATE_TO, T.ESCALATED_ON_UTC, T.ENDED_ON_UTC,
  T.ENDED_BY, T.OUTCOME, T.CHECKSUM, T.ASSIGNED_CHECKSUM, T.CANDIDATES_CHECKSUM, T.END_CHECKSUM, T.PAYLOAD, T.FORM, T.OUTPUT, T.TASK_NO
from WF_TASKS T join WF_STATES R on R.INSTANCE_NO = T.INSTANCE_NO
where T.STATUS in ('ready', 'reserved') and T.STATUS = 'ready'
  and (coalesce(T.CANDIDATE_USERS, '[]') = '[]' and coalesce(T.CANDIDATE_GROUPS, '[]') = '[]'
    or exists (select 1 from json_each(T.CANDIDATE_USERS) where VALUE = ?)
    or exists (select 1 from json_each(T.CANDIDATE_GROUPS) where VALUE in (select G.VALUE from json_each(?) G)))
  and not exists (select 1 from json_each(T.EXCLUDED_USERS) where VALUE = ?)
  and (? is null or substr(T.DEFINITION, 1, instr(T.DEFINITION, '/') - 1) in (select S.VALUE from json_each(?) S))
order by T.PRIORITY, T.TASK_NO
limit ?
