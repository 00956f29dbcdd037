select coalesce(max(EDIT_NO), 0) from WF_LETTER_EDITS where DEAD_LETTER_ID = ?
