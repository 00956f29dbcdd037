-- CRC-32C of what else is written of a task; null where nobody made one.
alter table WF_TASKS add column ASSIGNED_CHECKSUM integer; -- of who has it, and its version then
alter table WF_TASKS add column CANDIDATES_CHECKSUM integer; -- of who may have it
alter table WF_TASK_EVENTS add column CHECKSUM integer;
