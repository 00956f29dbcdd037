select T.TASK_ID, T.STATUS || ', and its last event is ' || coalesce(E.EVENT, 'none')
from WF_TASKS T
left join WF_TASK_EVENTS E on E.EVENT_NO = (select max(L.EVENT_NO) from WF_TASK_EVENTS L where L.TASK_NO = T.TASK_NO)
where T.STATUS in ('completed', 'cancelled', 'expired') and T.STATUS is not E.EVENT
  or T.STATUS in ('ready', 'reserved') and coalesce(E.EVENT, 'completed') in ('completed', 'cancelled', 'expired')
  or T.STATUS = 'reserved' and T.ASSIGNEE is null
  or T.STATUS = 'ready' and T.ASSIGNEE is not null
  or (T.STATUS in ('ready', 'reserved')) <> (T.ENDED_ON_UTC is null)
limit ?
