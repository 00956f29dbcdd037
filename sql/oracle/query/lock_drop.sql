delete from WF_HOST_LOCKS where NAME = :NAME and OWNER = :OWNER
