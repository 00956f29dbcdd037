select count(case when M.MSG_STATE = 'READY' then 1 end) READY, count(case when M.MSG_STATE = 'WAIT' then 1 end) DELAYED,
  min(case when M.MSG_STATE = 'READY' then M.ENQ_TIME end) OLDEST_ON_UTC
from (select A.MSG_STATE, A.ENQ_TIME from AQ$WF_COMMAND_QTAB A where A.QUEUE = 'WF_COMMAND_Q' fetch first :ROWS_MAX rows only) M
