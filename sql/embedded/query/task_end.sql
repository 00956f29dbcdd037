update WF_TASKS set STATUS = ?, ENDED_BY = ?, ENDED_ON_UTC = ?, OUTCOME = ?, OUTPUT = ?, END_CHECKSUM = ?, TASK_VERSION = TASK_VERSION + 1
where TASK_ID = ? and STATUS in ('ready', 'reserved') and ? in (0, TASK_VERSION)
