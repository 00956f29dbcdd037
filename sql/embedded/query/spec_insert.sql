insert into WF_WAIT_SPECS (EVENT_TYPE, SPEC) values (?, ?)
