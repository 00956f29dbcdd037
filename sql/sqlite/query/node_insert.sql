insert into WF_NODES (NODE, STARTED_ON_UTC) values (?, ?)
