delete from WF_WAITS where INSTANCE_NO = ?
