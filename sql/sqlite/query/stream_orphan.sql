update WF_STREAM set CLAIMED_BY = null where ENTRY_NO = ? and PROCESSED = 0 and CLAIMED_BY = ?
