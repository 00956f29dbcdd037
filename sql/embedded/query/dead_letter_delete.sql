delete from WF_DEAD_LETTERS where DEAD_LETTER_ID = ?
