delete from WF_STATE_PIECES where PIECE_ID between ?1 << 20 and ((?1 + 1) << 20) - 1
