delete from WF_LETTER_EDITS where DEAD_LETTER_ID = ?
