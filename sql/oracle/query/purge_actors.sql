delete from WF_TASK_ACTORS A where A.TASK_ID in (select T.TASK_ID from WF_TASKS T where T.INSTANCE_ID = :INSTANCE_ID)
