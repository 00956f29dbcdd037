select INSTANCE_NO from WF_STATES where INSTANCE_ID = ?
