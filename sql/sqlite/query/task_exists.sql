select 1 from WF_TASKS where TASK_ID = ?
