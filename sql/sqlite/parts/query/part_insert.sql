insert into WF_STATE_PARTS (PART_ID, BODY) values (?, ?)
