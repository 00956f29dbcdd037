select 1 as FOUND from WF_STREAM
where INSTANCE_NO = (select R.INSTANCE_NO from WF_STATES R where R.INSTANCE_ID = ?) and SIGNAL_ID = ?
