-- Aqueduct: partitions, for Enterprise Edition with the Partitioning option
-- only (ORA-00439 elsewhere). Optional: nothing else changes, and neither
-- migrate nor a node runs or needs this. Run as the owner of the schema, with
-- every node stopped: each table is written anew.
--   sqlplus owner@service @60_partitions.sql
-- ORA-14427 says that a table is partitioned already. Afterwards gather the
-- statistics of the three tables, and run engine-node doctor.
PROMPT Aqueduct: partitions

-- By instance: inserts of many instances meet in sixteen blocks and not in one,
-- and what an instance reads and writes is in one partition.
ALTER TABLE WF_RUNTIME_STATES MODIFY
  PARTITION BY HASH (INSTANCE_ID) PARTITIONS 16
  UPDATE INDEXES (WF_RUNTIME_STATES_PK LOCAL, WF_RUNTIME_STATES_DUE GLOBAL)
/
ALTER TABLE WF_STREAM MODIFY
  PARTITION BY HASH (INSTANCE_ID) PARTITIONS 16
  UPDATE INDEXES (WF_STREAM_PK LOCAL, WF_STREAM_SIGNAL GLOBAL, WF_STREAM_PENDING GLOBAL, WF_STREAM_CLAIMED GLOBAL)
/
-- By month: what is older than anybody wants is dropped as a partition, in no
-- time. A key of an interval is never null. The indexes stay global, for
-- questions name a task or an instance and no month.
ALTER TABLE WF_TASK_EVENTS MODIFY (OCCURRED_ON_UTC NOT NULL)
/
ALTER TABLE WF_TASK_EVENTS MODIFY
  PARTITION BY RANGE (OCCURRED_ON_UTC) INTERVAL (NUMTOYMINTERVAL(1, 'MONTH'))
  (PARTITION WF_TASK_EVENTS_FIRST VALUES LESS THAN (TO_DATE('2026-01-01', 'YYYY-MM-DD')))
  UPDATE INDEXES (WF_TASK_EVENTS_PK GLOBAL, WF_TASK_EVENTS_TASK GLOBAL, WF_TASK_EVENTS_INSTANCE GLOBAL)
/
