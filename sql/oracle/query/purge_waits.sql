delete from WF_WAITS where INSTANCE_ID = :INSTANCE_ID
