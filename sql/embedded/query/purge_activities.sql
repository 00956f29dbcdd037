delete from WF_ACTIVITIES where INSTANCE_NO = ?
