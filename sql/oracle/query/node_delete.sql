delete from WF_NODES where RUN_ID = :RUN_ID
