insert into WF_TASK_EVENTS (TASK_NO, EVENT, ACTOR, OCCURRED_ON_UTC, DATA, CHECKSUM)
select TASK_NO, ?, ?, ?, ?, ? from WF_TASKS where TASK_ID = ?
