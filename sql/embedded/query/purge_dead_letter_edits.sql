delete from WF_LETTER_EDITS where INSTANCE_ID = (select INSTANCE_ID from WF_STATES where INSTANCE_NO = ?)
