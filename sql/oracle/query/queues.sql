select 'signal' QUEUE, count(case when M1.MSG_STATE = 'READY' then 1 end) READY, count(case when M1.MSG_STATE = 'WAIT' then 1 end) DELAYED,
  min(case when M1.MSG_STATE = 'READY' then M1.ENQ_TIME end) OLDEST_ON_UTC
from (select A.MSG_STATE, A.ENQ_TIME from AQ$WF_SIGNAL_QTAB A where A.QUEUE = 'WF_SIGNAL_Q' fetch first :MAX_1 rows only) M1
union all
select 'schedule', count(case when M2.MSG_STATE = 'READY' then 1 end), count(case when M2.MSG_STATE = 'WAIT' then 1 end),
  min(case when M2.MSG_STATE = 'READY' then M2.ENQ_TIME end)
from (select A.MSG_STATE, A.ENQ_TIME from AQ$WF_SCHEDULE_QTAB A where A.QUEUE = 'WF_SCHEDULE_Q' fetch first :MAX_2 rows only) M2
union all
select 'command', count(case when M3.MSG_STATE = 'READY' then 1 end), count(case when M3.MSG_STATE = 'WAIT' then 1 end),
  min(case when M3.MSG_STATE = 'READY' then M3.ENQ_TIME end)
from (select A.MSG_STATE, A.ENQ_TIME from AQ$WF_COMMAND_QTAB A where A.QUEUE = 'WF_COMMAND_Q' fetch first :MAX_3 rows only) M3
