-- Aqueduct: queue tables and queues. Run as the owner of the schema, who needs
-- EXECUTE on DBMS_AQADM. It may be run again: ORA-24001, ORA-24006 and ORA-24034
-- say that a table, queue or subscriber is there already.
-- Classic queues of one consumer with RAW payload: one JSON envelope, UTF-8. A
-- table of its own for each queue keeps purging, counting and statistics apart.
-- MAX_RETRIES is a safety net only: retries are the engine's own.
-- Their rows live for seconds, and many sessions lock rows of one block: places for
-- eight transactions, and payloads that are too long for their rows in the cache.
PROMPT Aqueduct: queues

BEGIN
  DBMS_AQADM.CREATE_QUEUE_TABLE(queue_table => 'WF_SIGNAL_QTAB', queue_payload_type => 'RAW', storage_clause => 'INITRANS 8 LOB (USER_DATA) STORE AS (CACHE)', sort_list => 'PRIORITY,ENQ_TIME', multiple_consumers => FALSE, comment => 'Aqueduct: signals that are due at once');
END;
/
BEGIN
  DBMS_AQADM.CREATE_QUEUE(queue_name => 'WF_SIGNAL_Q', queue_table => 'WF_SIGNAL_QTAB', max_retries => 10000, retry_delay => 0, retention_time => 0, comment => 'Aqueduct: signals that are due at once');
END;
/
BEGIN
  DBMS_AQADM.START_QUEUE(queue_name => 'WF_SIGNAL_Q');
END;
/
BEGIN
  DBMS_AQADM.START_QUEUE(queue_name => 'AQ$_WF_SIGNAL_QTAB_E', enqueue => FALSE, dequeue => TRUE);
END;
/

BEGIN
  DBMS_AQADM.CREATE_QUEUE_TABLE(queue_table => 'WF_SCHEDULE_QTAB', queue_payload_type => 'RAW', storage_clause => 'INITRANS 8 LOB (USER_DATA) STORE AS (CACHE)', sort_list => 'PRIORITY,ENQ_TIME', multiple_consumers => FALSE, comment => 'Aqueduct: signals that are due at a time');
END;
/
BEGIN
  DBMS_AQADM.CREATE_QUEUE(queue_name => 'WF_SCHEDULE_Q', queue_table => 'WF_SCHEDULE_QTAB', max_retries => 10000, retry_delay => 0, retention_time => 0, comment => 'Aqueduct: signals that are due at a time');
END;
/
BEGIN
  DBMS_AQADM.START_QUEUE(queue_name => 'WF_SCHEDULE_Q');
END;
/
BEGIN
  DBMS_AQADM.START_QUEUE(queue_name => 'AQ$_WF_SCHEDULE_QTAB_E', enqueue => FALSE, dequeue => TRUE);
END;
/

BEGIN
  DBMS_AQADM.CREATE_QUEUE_TABLE(queue_table => 'WF_COMMAND_QTAB', queue_payload_type => 'RAW', storage_clause => 'INITRANS 8 LOB (USER_DATA) STORE AS (CACHE)', sort_list => 'PRIORITY,ENQ_TIME', multiple_consumers => FALSE, comment => 'Aqueduct: commands announced to every node');
END;
/
BEGIN
  DBMS_AQADM.CREATE_QUEUE(queue_name => 'WF_COMMAND_Q', queue_table => 'WF_COMMAND_QTAB', max_retries => 10000, retry_delay => 0, retention_time => 0, comment => 'Aqueduct: commands announced to every node');
END;
/
BEGIN
  DBMS_AQADM.START_QUEUE(queue_name => 'WF_COMMAND_Q');
END;
/
BEGIN
  DBMS_AQADM.START_QUEUE(queue_name => 'AQ$_WF_COMMAND_QTAB_E', enqueue => FALSE, dequeue => TRUE);
END;
/

-- Notices are for several consumers: the nodes are one together, and applications and
-- tools subscribe as others. Without any subscriber no notice can be sent.
BEGIN
  DBMS_AQADM.CREATE_QUEUE_TABLE(queue_table => 'WF_DLQ_QTAB', queue_payload_type => 'RAW', storage_clause => 'INITRANS 8 LOB (USER_DATA) STORE AS (CACHE)', sort_list => 'PRIORITY,ENQ_TIME', multiple_consumers => TRUE, comment => 'Aqueduct: notices of dead letters, for nodes, applications and tools');
END;
/
BEGIN
  DBMS_AQADM.CREATE_QUEUE(queue_name => 'WF_DLQ_Q', queue_table => 'WF_DLQ_QTAB', max_retries => 10000, retry_delay => 0, retention_time => 0, comment => 'Aqueduct: notices of dead letters, for nodes, applications and tools');
END;
/
BEGIN
  DBMS_AQADM.ADD_SUBSCRIBER(queue_name => 'WF_DLQ_Q', subscriber => SYS.AQ$_AGENT('NODES', NULL, NULL));
END;
/
BEGIN
  DBMS_AQADM.START_QUEUE(queue_name => 'WF_DLQ_Q');
END;
/
BEGIN
  DBMS_AQADM.START_QUEUE(queue_name => 'AQ$_WF_DLQ_QTAB_E', enqueue => FALSE, dequeue => TRUE);
END;
/
