-- CRC-32C of what is written once in a row and stays; null where nobody made one.
alter table WF_STREAM add column CHECKSUM integer;
alter table WF_TASKS add column CHECKSUM integer;
alter table WF_TASKS add column END_CHECKSUM integer; -- of how the task has ended
