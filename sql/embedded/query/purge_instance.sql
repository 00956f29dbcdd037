delete from WF_INSTANCES where INSTANCE_NO = ?
