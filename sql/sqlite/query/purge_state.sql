delete from WF_RUNTIME_STATES where INSTANCE_NO = ?
