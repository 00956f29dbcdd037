delete from WF_INFLIGHT where RUN_ID = :RUN_ID
