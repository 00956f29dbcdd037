select L.QUEUE, L.ENVELOPE from WF_DEAD_LETTERS L where L.DEAD_LETTER_ID = :DEAD_LETTER_ID for update nowait
