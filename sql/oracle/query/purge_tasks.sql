delete from WF_TASKS where INSTANCE_ID = :INSTANCE_ID
