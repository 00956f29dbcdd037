insert into WF_WAITS (INSTANCE_NO, SPEC_NO, KEY_HASH, WAITING_TOKEN, CREATED_ON_UTC) values (?, ?, ?, ?, ?)
