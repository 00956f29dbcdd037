select F.MESSAGE_ID, count(*) CRASHES from WF_INFLIGHT F where F.RUN_ID <> :RUN_ID group by F.MESSAGE_ID
