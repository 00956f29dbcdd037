select 1 as FOUND from WF_TASKS where TASK_ID = ?
