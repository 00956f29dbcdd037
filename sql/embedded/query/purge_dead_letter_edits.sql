delete from WF_LETTER_EDITS where INSTANCE_ID = (select INSTANCE_ID from WF_STATES where INSTANCE_NO = ?)
and not exists (select 1 from WF_DEAD_LETTERS L where L.DEAD_LETTER_ID = WF_LETTER_EDITS.DEAD_LETTER_ID)
