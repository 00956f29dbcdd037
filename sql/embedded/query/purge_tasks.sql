delete from WF_TASKS where INSTANCE_NO = ?
