update WF_TASKS set STATUS = ?, ASSIGNEE = ?, ASSIGNED_AS = ?, ASSIGNED_CHECKSUM = ?, TASK_VERSION = TASK_VERSION + 1
where TASK_ID = ? and TASK_VERSION = ? and STATUS in ('ready', 'reserved')
