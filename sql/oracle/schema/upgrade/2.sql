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

-- Pages of the audit are read in the order of this index, without sorting. ORA-01418 says that the old one is gone
-- already.
PROMPT Aqueduct: WF_AUDIT_AGE gets the identity
DROP INDEX WF_AUDIT_AGE
/
CREATE INDEX WF_AUDIT_AGE ON WF_AUDIT (OCCURRED_ON_UTC, AUDIT_ID)
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

-- ORA-01430 says that the columns are there already, and ORA-01451 that they may be null.
PROMPT Aqueduct: WF_AUDIT has what nodes do, too, and WF_TOKENS who may ask them
ALTER TABLE WF_AUDIT ADD (
  KIND VARCHAR2(16 CHAR),
  VIA VARCHAR2(16 CHAR),
  VERSION_BEFORE NUMBER(18),
  VERSION_AFTER NUMBER(18),
  RESULT VARCHAR2(256 CHAR),
  REQUEST_ID VARCHAR2(64 CHAR)
)
/
ALTER TABLE WF_AUDIT MODIFY (USER_NAME NULL)
/
ALTER TABLE WF_AUDIT MODIFY (REASON NULL)
/
UPDATE WF_AUDIT SET KIND = 'database', VIA = 'plsql' WHERE KIND IS NULL
/
CREATE TABLE WF_TOKENS (
  TOKEN_ID VARCHAR2(32 CHAR) NOT NULL,
  NAME VARCHAR2(128 CHAR) NOT NULL,
  ROLES VARCHAR2(1000 CHAR) NOT NULL,
  MEMBER_OF VARCHAR2(4000),
  HASH RAW(32) NOT NULL,
  CREATED_ON_UTC TIMESTAMP(6) NOT NULL,
  CREATED_BY VARCHAR2(128 CHAR),
  EXPIRES_ON_UTC TIMESTAMP(6) NOT NULL,
  REVOKED_ON_UTC TIMESTAMP(6),
  REVOKED_BY VARCHAR2(128 CHAR),
  LAST_USED_ON_UTC TIMESTAMP(6),
  CONSTRAINT WF_TOKENS_PK PRIMARY KEY (TOKEN_ID)
)
/
COMMENT ON TABLE WF_TOKENS IS 'By which programs and people are known to nodes, sessions of browsers too, whose identity begins with s. The secret is not kept'
/
COMMENT ON COLUMN WF_TOKENS.TOKEN_ID IS 'identity, which is part of the token'
/
COMMENT ON COLUMN WF_TOKENS.NAME IS 'who bears it'
/
COMMENT ON COLUMN WF_TOKENS.ROLES IS 'JSON array: what they may do'
/
COMMENT ON COLUMN WF_TOKENS.MEMBER_OF IS 'JSON array: groups, as tasks name them'
/
COMMENT ON COLUMN WF_TOKENS.HASH IS 'SHA-256 of the secret'
/
COMMENT ON COLUMN WF_TOKENS.CREATED_ON_UTC IS 'when it was made'
/
COMMENT ON COLUMN WF_TOKENS.CREATED_BY IS 'by whom'
/
COMMENT ON COLUMN WF_TOKENS.EXPIRES_ON_UTC IS 'until when it is valid'
/
COMMENT ON COLUMN WF_TOKENS.REVOKED_ON_UTC IS 'when it was revoked'
/
COMMENT ON COLUMN WF_TOKENS.REVOKED_BY IS 'by whom'
/
COMMENT ON COLUMN WF_TOKENS.LAST_USED_ON_UTC IS 'about when it was used last'
/
CREATE INDEX WF_TOKENS_AGE ON WF_TOKENS (CREATED_ON_UTC, TOKEN_ID)
/

-- ORA-00955 says that the table is there already.
PROMPT Aqueduct: WF_ACTIVITIES has what applications note of instances
CREATE TABLE WF_ACTIVITIES (
  INSTANCE_ID VARCHAR2(128 CHAR) NOT NULL,
  ACTIVITY_ID VARCHAR2(128 CHAR) NOT NULL,
  NAME VARCHAR2(256 CHAR) NOT NULL,
  STATUS VARCHAR2(64 CHAR),
  ACTIVITY_VERSION NUMBER(18) NOT NULL,
  CREATED_ON_UTC TIMESTAMP(6) NOT NULL,
  CREATED_BY VARCHAR2(128 CHAR),
  UPDATED_ON_UTC TIMESTAMP(6) NOT NULL,
  UPDATED_BY VARCHAR2(128 CHAR),
  FROZEN_ON_UTC TIMESTAMP(6),
  DATA BLOB,
  CONSTRAINT WF_ACTIVITIES_PK PRIMARY KEY (INSTANCE_ID, ACTIVITY_ID)
)
LOB (DATA) STORE AS (CACHE)
/
COMMENT ON TABLE WF_ACTIVITIES IS 'What applications note of instances: nothing that a node decides looks there; gone with the instance'
/
COMMENT ON COLUMN WF_ACTIVITIES.INSTANCE_ID IS 'instance'
/
COMMENT ON COLUMN WF_ACTIVITIES.ACTIVITY_ID IS 'identity within the instance, of the application'
/
COMMENT ON COLUMN WF_ACTIVITIES.NAME IS 'what it is'
/
COMMENT ON COLUMN WF_ACTIVITIES.STATUS IS 'how it stands, in words of the application'
/
COMMENT ON COLUMN WF_ACTIVITIES.ACTIVITY_VERSION IS 'counts its changes, from 1; guards each'
/
COMMENT ON COLUMN WF_ACTIVITIES.CREATED_ON_UTC IS 'when it was attached'
/
COMMENT ON COLUMN WF_ACTIVITIES.CREATED_BY IS 'by whom'
/
COMMENT ON COLUMN WF_ACTIVITIES.UPDATED_ON_UTC IS 'when it was changed last'
/
COMMENT ON COLUMN WF_ACTIVITIES.UPDATED_BY IS 'by whom'
/
COMMENT ON COLUMN WF_ACTIVITIES.FROZEN_ON_UTC IS 'since when nobody can change it; null: it may change'
/
COMMENT ON COLUMN WF_ACTIVITIES.DATA IS 'data of the application, UTF-8 JSON'
/
CREATE INDEX WF_ACTIVITIES_ORDER ON WF_ACTIVITIES (INSTANCE_ID, CREATED_ON_UTC, ACTIVITY_ID)
/

-- ORA-00955 says that the index is there already.
PROMPT Aqueduct: versions that live are found in an index
CREATE INDEX WF_INSTANCES_LIVE ON WF_INSTANCES ((CASE WHEN ENDED_ON_UTC IS NULL THEN DEFINITION END), (CASE WHEN ENDED_ON_UTC IS NULL THEN DEFINITION_VERSION END))
/

-- ORA-00955 says that the index is there already.
PROMPT Aqueduct: a text is looked for in the instances that have an error
CREATE INDEX WF_INSTANCES_ERROR ON WF_INSTANCES ((CASE WHEN ERROR_TYPE IS NOT NULL THEN STARTED_ON_UTC END))
/

-- ORA-00955 says that the table is there already.
PROMPT Aqueduct: WF_BULK_PLANS has what operators do to many at once
CREATE TABLE WF_BULK_PLANS (
  PLAN_ID VARCHAR2(64 CHAR) NOT NULL,
  OPERATION VARCHAR2(32 CHAR) NOT NULL,
  STATUS VARCHAR2(16 CHAR) NOT NULL,
  PLAN_VERSION NUMBER(18) NOT NULL,
  HAS_MORE NUMBER(1) NOT NULL,
  REASON VARCHAR2(1000 CHAR),
  CREATED_ON_UTC TIMESTAMP(6) NOT NULL,
  CREATED_BY VARCHAR2(128 CHAR),
  UPDATED_ON_UTC TIMESTAMP(6) NOT NULL,
  RUN_BY VARCHAR2(128 CHAR),
  ENDED_ON_UTC TIMESTAMP(6),
  ASKED BLOB NOT NULL,
  CONSTRAINT WF_BULK_PLANS_PK PRIMARY KEY (PLAN_ID)
)
LOB (ASKED) STORE AS (CACHE)
/
COMMENT ON TABLE WF_BULK_PLANS IS 'What operators do to many instances or dead letters at once; gone with retention'
/
COMMENT ON COLUMN WF_BULK_PLANS.PLAN_ID IS 'identity'
/
COMMENT ON COLUMN WF_BULK_PLANS.OPERATION IS 'what is done to each item'
/
COMMENT ON COLUMN WF_BULK_PLANS.STATUS IS 'planning, planned, running, stopped, done'
/
COMMENT ON COLUMN WF_BULK_PLANS.PLAN_VERSION IS 'counts its changes, from 1; guards each'
/
COMMENT ON COLUMN WF_BULK_PLANS.HAS_MORE IS '1: more was found than it may have'
/
COMMENT ON COLUMN WF_BULK_PLANS.REASON IS 'why it was made'
/
COMMENT ON COLUMN WF_BULK_PLANS.CREATED_ON_UTC IS 'when it was made'
/
COMMENT ON COLUMN WF_BULK_PLANS.CREATED_BY IS 'by whom'
/
COMMENT ON COLUMN WF_BULK_PLANS.UPDATED_ON_UTC IS 'since when it has its status'
/
COMMENT ON COLUMN WF_BULK_PLANS.RUN_BY IS 'who has it run'
/
COMMENT ON COLUMN WF_BULK_PLANS.ENDED_ON_UTC IS 'since when nothing of it is open'
/
COMMENT ON COLUMN WF_BULK_PLANS.ASKED IS 'operation and filter, UTF-8 JSON'
/

-- ORA-00955 says that the table is there already.
PROMPT Aqueduct: WF_BULK_ITEMS has what plans are of
CREATE TABLE WF_BULK_ITEMS (
  PLAN_ID VARCHAR2(64 CHAR) NOT NULL,
  ITEM_NO NUMBER(18) NOT NULL,
  TARGET_ID VARCHAR2(128 CHAR) NOT NULL,
  TARGET_VERSION NUMBER(18) NOT NULL,
  TARGET_KIND VARCHAR2(512 CHAR),
  OUTCOME VARCHAR2(16 CHAR),
  CODE VARCHAR2(128 CHAR),
  DETAIL VARCHAR2(1000 CHAR),
  ENDED_ON_UTC TIMESTAMP(6),
  CONSTRAINT WF_BULK_ITEMS_PK PRIMARY KEY (PLAN_ID, ITEM_NO)
)
/
COMMENT ON TABLE WF_BULK_ITEMS IS 'Items of such plans: what was found when they were made, and what has become of it'
/
COMMENT ON COLUMN WF_BULK_ITEMS.PLAN_ID IS 'plan'
/
COMMENT ON COLUMN WF_BULK_ITEMS.ITEM_NO IS 'place in the plan, from 1'
/
COMMENT ON COLUMN WF_BULK_ITEMS.TARGET_ID IS 'instance or dead letter'
/
COMMENT ON COLUMN WF_BULK_ITEMS.TARGET_VERSION IS 'of the instance when the plan was made; 0 of a dead letter'
/
COMMENT ON COLUMN WF_BULK_ITEMS.TARGET_KIND IS 'type of the error of the instance then, else its status; reason of the dead letter'
/
COMMENT ON COLUMN WF_BULK_ITEMS.OUTCOME IS 'done, skipped, failed; null: open'
/
COMMENT ON COLUMN WF_BULK_ITEMS.CODE IS 'why it was not done'
/
COMMENT ON COLUMN WF_BULK_ITEMS.DETAIL IS 'in words'
/
COMMENT ON COLUMN WF_BULK_ITEMS.ENDED_ON_UTC IS 'when that was known'
/
CREATE INDEX WF_BULK_PLANS_AGE ON WF_BULK_PLANS (CREATED_ON_UTC, PLAN_ID)
/

-- ORA-00955 says that the table is there already, and ORA-01430 the columns.
PROMPT Aqueduct: WF_LETTER_EDITS has what is sent instead of dead letters, and WF_STREAM which commands are given up
CREATE TABLE WF_LETTER_EDITS (
  DEAD_LETTER_ID VARCHAR2(128 CHAR) NOT NULL,
  EDIT_NO NUMBER(9) NOT NULL,
  INSTANCE_ID VARCHAR2(128 CHAR),
  WHAT VARCHAR2(16 CHAR) NOT NULL,
  EDITED_ON_UTC TIMESTAMP(6) NOT NULL,
  EDITED_BY VARCHAR2(128 CHAR),
  REASON VARCHAR2(1000 CHAR),
  BODY BLOB,
  CONSTRAINT WF_LETTER_EDITS_PK PRIMARY KEY (DEAD_LETTER_ID, EDIT_NO)
)
LOB (BODY) STORE AS (CACHE)
/
COMMENT ON TABLE WF_LETTER_EDITS IS 'What operators have put in the place of dead letters; the newest counts. They stay when the letter is replayed'
/
COMMENT ON COLUMN WF_LETTER_EDITS.DEAD_LETTER_ID IS 'dead letter, which may be gone'
/
COMMENT ON COLUMN WF_LETTER_EDITS.EDIT_NO IS 'from 1, the newest counts; 0 = what died'
/
COMMENT ON COLUMN WF_LETTER_EDITS.INSTANCE_ID IS 'instance of the letter, where it is known'
/
COMMENT ON COLUMN WF_LETTER_EDITS.WHAT IS 'envelope; input or same-key: of the command that the letter is about; original: undone'
/
COMMENT ON COLUMN WF_LETTER_EDITS.EDITED_ON_UTC IS 'when it was edited'
/
COMMENT ON COLUMN WF_LETTER_EDITS.EDITED_BY IS 'by whom'
/
COMMENT ON COLUMN WF_LETTER_EDITS.REASON IS 'why'
/
COMMENT ON COLUMN WF_LETTER_EDITS.BODY IS 'what is sent; null = what died'
/
CREATE INDEX WF_LETTER_EDITS_INSTANCE ON WF_LETTER_EDITS (INSTANCE_ID)
/
ALTER TABLE WF_STREAM ADD (
  GIVEN_UP_ON_UTC TIMESTAMP(6)
)
/
ALTER TABLE WF_DEAD_LETTERS ADD (
  PRIORITY NUMBER(9)
)
/
COMMENT ON COLUMN WF_DEAD_LETTERS.PRIORITY IS 'that the message had, with which a replay sends it; null or 0: the usual one'
/
COMMENT ON COLUMN WF_STREAM.GIVEN_UP_ON_UTC IS 'of a command: since when it is not tried any more; with PROCESSED = 1 it was discarded, not processed'
/
UPDATE WF_STREAM SET GIVEN_UP_ON_UTC = NVL(NEXT_ATTEMPT_ON_UTC, CREATED_ON_UTC)
WHERE CASE WHEN PROCESSED = 0 THEN INSTANCE_ID END IS NOT NULL AND CLAIMED_BY IS NULL AND LAST_ERROR LIKE 'AckGivenUp: %'
/

-- ORA-01430 says that the column is there already.
PROMPT Aqueduct: WF_NODES has what nodes perform
ALTER TABLE WF_NODES ADD (FUNCTIONS BLOB)
/
COMMENT ON COLUMN WF_NODES.FUNCTIONS IS 'targets to which it performs commands, UTF-8 JSON; null: none'
/

-- ORA-01430 says that the columns are there already, and ORA-00955 the index.
PROMPT Aqueduct: kept events are found by what those who listen correlate
ALTER TABLE WF_INBOX ADD (
  RULE_HASH VARCHAR2(32 CHAR),
  KEY_HASH VARCHAR2(32 CHAR)
)
/
COMMENT ON COLUMN WF_INBOX.RULE_HASH IS 'correlation by which KEY_HASH finds it; null: nobody who listens for its type has looked'
/
COMMENT ON COLUMN WF_INBOX.KEY_HASH IS 'of the values that it has for that correlation'
/
CREATE INDEX WF_INBOX_FILED ON WF_INBOX (EVENT_TYPE, RULE_HASH, KEY_HASH, RECEIVED_ON_UTC, EVENT_KEY)
/
