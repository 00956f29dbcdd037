select count(*) CRASHES from WF_INFLIGHT F where F.MESSAGE_ID = :MESSAGE_ID and F.RUN_ID <> :RUN_ID
