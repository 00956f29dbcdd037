delete from WF_STATE_PIECES where PIECE_ID >= ? and PIECE_ID < ?
