select 1 from WF_STREAM indexed by WF_STREAM_PENDING where PROCESSED = 0 and CLAIMED_BY = ? limit 1
