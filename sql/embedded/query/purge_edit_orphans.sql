delete from WF_LETTER_EDITS where EDITED_ON_UTC < ?
and not exists (select 1 from WF_DEAD_LETTERS L where L.DEAD_LETTER_ID = WF_LETTER_EDITS.DEAD_LETTER_ID)
and not exists (select 1 from WF_STATES R where R.INSTANCE_ID = WF_LETTER_EDITS.INSTANCE_ID)
