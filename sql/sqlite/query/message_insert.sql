insert into WF_MESSAGES (QUEUE, STATE, PRIORITY, VISIBLE_AT, ENQ_AT, LEASE_OWNER, PAYLOAD) values (?, ?, ?, ?, ?, ?, ?)
