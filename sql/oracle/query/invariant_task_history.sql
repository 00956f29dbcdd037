select T.TASK_ID, T.STATUS || ', and its last event is ' || E.EVENT
from WF_TASKS T
left join WF_TASK_EVENTS E on E.TASK_ID = T.TASK_ID and E.EVENT_NO = (select max(L.EVENT_NO) from WF_TASK_EVENTS L where L.TASK_ID = T.TASK_ID)
where T.STATUS in ('completed', 'cancelled', 'expired') and (E.EVENT is null or T.STATUS <> E.EVENT or T.ENDED_ON_UTC is null)
  or T.STATUS in ('ready', 'reserved') and (E.EVENT is null or E.EVENT in ('completed', 'cancelled', 'expired') or T.ENDED_ON_UTC is not null)
  or T.STATUS = 'reserved' and T.ASSIGNEE is null
  or T.STATUS = 'ready' and T.ASSIGNEE is not null
fetch first :ROWS_MAX rows only
