-- Aqueduct: from version 1 of the schema to 2. Run by upgrade_2.sql and engine-node migrate, as the owner, while no
-- node runs. WF_DLQ_Q had one consumer, and nodes did not write to it: what it holds is somebody's, who takes it first.
-- engine-node migrate goes on where it was broken off. With SQL*Plus run this file first then, by itself and without
-- WHENEVER: ORA-06550, ORA-24010 and ORA-24002 say that the old queue or table is gone already.
PROMPT Aqueduct: WF_DLQ_Q gets several consumers
BEGIN
  FOR M IN (SELECT COUNT(*) MESSAGES FROM AQ$WF_DLQ_QTAB A WHERE A.MSG_STATE IN ('READY', 'WAIT')) LOOP
    IF M.MESSAGES > 0 THEN
      RAISE_APPLICATION_ERROR(-20800, 'AQUEDUCT: WF_DLQ_Q holds ' || M.MESSAGES || ' messages, which would be lost: dequeue them first');
    END IF;
  END LOOP;
END;
/
BEGIN
  DBMS_AQADM.STOP_QUEUE(queue_name => 'WF_DLQ_Q');
END;
/
BEGIN
  DBMS_AQADM.DROP_QUEUE(queue_name => 'WF_DLQ_Q');
END;
/
BEGIN
  DBMS_AQADM.DROP_QUEUE_TABLE(queue_table => 'WF_DLQ_QTAB', force => TRUE);
END;
/
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

-- The key of this index was too long to be rebuilt online: a digest stands in it for what is long. ORA-01418 says that
-- the old one is gone already.
PROMPT Aqueduct: WF_WAITS_KEY gets a shorter key
DROP INDEX WF_WAITS_KEY
/
CREATE INDEX WF_WAITS_KEY ON WF_WAITS (EVENT_TYPE, STANDARD_HASH(SPEC, 'SHA256'), KEY_HASH, WAITING_TOKEN)
/

-- Instances are found by values of their data. ORA-00955 says that the table is there already.
PROMPT Aqueduct: WF_ATTRIBUTES is made
CREATE TABLE WF_ATTRIBUTES (
  INSTANCE_ID VARCHAR2(128 CHAR) NOT NULL,
  NAME VARCHAR2(64 CHAR) NOT NULL,
  KIND VARCHAR2(8 CHAR) NOT NULL,
  VALUE VARCHAR2(256 CHAR),
  VALUE_KEY RAW(1025) NOT NULL,
  CONSTRAINT WF_ATTRIBUTES_PK PRIMARY KEY (INSTANCE_ID, NAME)
)
INITRANS 8
/
CREATE INDEX WF_ATTRIBUTES_VALUE ON WF_ATTRIBUTES (NAME, VALUE_KEY, INSTANCE_ID)
/
