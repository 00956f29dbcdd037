select coalesce(max(E.EDIT_NO), 0) EDIT_NO from WF_LETTER_EDITS E where E.DEAD_LETTER_ID = :DEAD_LETTER_ID
