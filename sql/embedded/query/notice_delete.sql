delete from WF_NOTICES where NOTICE_NO = ?
