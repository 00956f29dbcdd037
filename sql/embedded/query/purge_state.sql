delete from WF_STATES where INSTANCE_NO = ?
