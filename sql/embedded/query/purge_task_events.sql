delete from WF_TASK_EVENTS where TASK_NO in (select TASK_NO from WF_TASKS where INSTANCE_NO = ?)
