delete from WF_ATTRIBUTES where INSTANCE_NO = ?
