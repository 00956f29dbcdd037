select T.TASK_ID from WF_TASKS T where T.TASK_ID = :TASK_ID
