delete from WF_WAITS indexed by WF_WAITS_INSTANCE where INSTANCE_NO = ? and WAITING_TOKEN = ?
