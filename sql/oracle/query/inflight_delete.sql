delete from WF_INFLIGHT where MESSAGE_ID = :MESSAGE_ID and RUN_ID = :RUN_ID
