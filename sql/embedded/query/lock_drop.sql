delete from WF_HOST_LOCKS where NAME = ? and OWNER = ?
