delete from WF_STREAM where ENTRY_NO between ? and ?
