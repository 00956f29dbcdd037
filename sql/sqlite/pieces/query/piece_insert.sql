insert into WF_STATE_PIECES (PIECE_ID, BODY) values (?, ?)
