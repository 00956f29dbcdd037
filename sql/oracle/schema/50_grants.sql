-- Aqueduct: what the runtime user may do. Run as the owner of the schema, after
-- 00_users.sql:
--   sqlplus owner@service @50_grants.sql RUNTIME_USER
-- The runtime user gets rows and queues, and no DBMS_AQADM: the driver would
-- start a queue again that an operator has stopped.
DEFINE runtime_user = &1
PROMPT Aqueduct: grants to &runtime_user

GRANT SELECT, INSERT ON WF_META TO &runtime_user
/
GRANT SELECT, INSERT, UPDATE, DELETE ON WF_NODES TO &runtime_user
/
GRANT SELECT, INSERT, UPDATE, DELETE ON WF_RUNTIME_STATES TO &runtime_user
/
GRANT SELECT, INSERT, UPDATE, DELETE ON WF_INSTANCES TO &runtime_user
/
GRANT SELECT, INSERT, UPDATE, DELETE ON WF_STREAM TO &runtime_user
/
GRANT SELECT, INSERT, UPDATE, DELETE ON WF_TASKS TO &runtime_user
/
GRANT SELECT, INSERT, DELETE ON WF_TASK_ACTORS TO &runtime_user
/
GRANT SELECT, INSERT, DELETE ON WF_TASK_EVENTS TO &runtime_user
/
GRANT SELECT, INSERT, DELETE ON WF_WAITS TO &runtime_user
/
GRANT SELECT, INSERT, UPDATE, DELETE ON WF_ATTRIBUTES TO &runtime_user
/
GRANT SELECT, INSERT ON WF_DEFINITIONS TO &runtime_user
/
GRANT SELECT, INSERT, UPDATE, DELETE ON WF_INBOX TO &runtime_user
/
GRANT SELECT, INSERT, UPDATE, DELETE ON WF_DEAD_LETTERS TO &runtime_user
/
GRANT SELECT, INSERT, UPDATE, DELETE ON WF_HOST_LOCKS TO &runtime_user
/
GRANT SELECT, INSERT, DELETE ON WF_INFLIGHT TO &runtime_user
/
GRANT SELECT, INSERT, DELETE ON WF_PAYLOADS TO &runtime_user
/
GRANT SELECT, INSERT ON WF_AUDIT TO &runtime_user
/
GRANT SELECT, INSERT, UPDATE ON WF_TOKENS TO &runtime_user
/
GRANT SELECT, UPDATE, DELETE ON WF_REQUESTS TO &runtime_user
/
GRANT SELECT, INSERT, UPDATE, DELETE ON WF_ACTIVITIES TO &runtime_user
/
GRANT SELECT ON WF_TASK_SEQ TO &runtime_user
/
GRANT SELECT ON WF_TASK_EVENT_SEQ TO &runtime_user
/
GRANT SELECT ON WF_LETTER_SEQ TO &runtime_user
/
GRANT SELECT ON WF_DEFINITION_SEQ TO &runtime_user
/
GRANT SELECT ON WF_V_INSTANCES TO &runtime_user
/
GRANT SELECT ON WF_V_STATES TO &runtime_user
/
GRANT SELECT ON WF_V_TASKS TO &runtime_user
/
GRANT SELECT ON WF_V_TIMELINE TO &runtime_user
/
GRANT SELECT ON WF_V_QUEUES TO &runtime_user
/
GRANT SELECT ON WF_V_DEAD_LETTERS TO &runtime_user
/
GRANT SELECT ON WF_V_OVERDUE TO &runtime_user
/
GRANT SELECT ON WF_V_NODES TO &runtime_user
/
GRANT SELECT ON WF_V_MESSAGES TO &runtime_user
/
GRANT SELECT ON WF_V_COMMANDS TO &runtime_user
/
GRANT SELECT ON WF_V_WAITS TO &runtime_user
/
GRANT SELECT ON WF_V_LETTERS TO &runtime_user
/
GRANT SELECT ON WF_V_ATTRIBUTES TO &runtime_user
/
GRANT SELECT ON WF_V_AUDIT TO &runtime_user
/
GRANT SELECT ON WF_V_REQUESTS TO &runtime_user
/
GRANT SELECT ON WF_V_ACTIVITIES TO &runtime_user
/
GRANT SELECT ON WF_V_MOMENTS TO &runtime_user
/
-- Operators read the views and call their package, and need nothing else. The owner may not make roles:
-- ORA-01917 or ORA-01919 here says that 00_users.sql has not made this one.
PROMPT Aqueduct: views and package for AQUEDUCT_OPERATOR, a role that 00_users.sql makes as SYS
GRANT SELECT ON WF_V_INSTANCES TO AQUEDUCT_OPERATOR
/
GRANT SELECT ON WF_V_STATES TO AQUEDUCT_OPERATOR
/
GRANT SELECT ON WF_V_TASKS TO AQUEDUCT_OPERATOR
/
GRANT SELECT ON WF_V_TIMELINE TO AQUEDUCT_OPERATOR
/
GRANT SELECT ON WF_V_QUEUES TO AQUEDUCT_OPERATOR
/
GRANT SELECT ON WF_V_DEAD_LETTERS TO AQUEDUCT_OPERATOR
/
GRANT SELECT ON WF_V_OVERDUE TO AQUEDUCT_OPERATOR
/
GRANT SELECT ON WF_V_NODES TO AQUEDUCT_OPERATOR
/
GRANT SELECT ON WF_V_MESSAGES TO AQUEDUCT_OPERATOR
/
GRANT SELECT ON WF_V_COMMANDS TO AQUEDUCT_OPERATOR
/
GRANT SELECT ON WF_V_WAITS TO AQUEDUCT_OPERATOR
/
GRANT SELECT ON WF_V_LETTERS TO AQUEDUCT_OPERATOR
/
GRANT SELECT ON WF_V_ATTRIBUTES TO AQUEDUCT_OPERATOR
/
GRANT SELECT ON WF_V_AUDIT TO AQUEDUCT_OPERATOR
/
GRANT SELECT ON WF_V_REQUESTS TO AQUEDUCT_OPERATOR
/
GRANT SELECT ON WF_V_ACTIVITIES TO AQUEDUCT_OPERATOR
/
GRANT SELECT ON WF_V_MOMENTS TO AQUEDUCT_OPERATOR
/
GRANT EXECUTE ON AQUEDUCT_ADMIN TO AQUEDUCT_OPERATOR
/
-- Operators' tools block on the notices of dead letters, each as a subscriber of its own.
BEGIN
  DBMS_AQADM.GRANT_QUEUE_PRIVILEGE(privilege => 'DEQUEUE', queue_name => 'WF_DLQ_Q', grantee => 'AQUEDUCT_OPERATOR');
END;
/
-- Applications send with the package, and need nothing else. The runtime user
-- may do all of that anyway: with this he sees that the package is valid.
GRANT EXECUTE ON AQUEDUCT_API TO AQUEDUCT_APPLICATION
/
GRANT EXECUTE ON AQUEDUCT_API TO &runtime_user
/
GRANT EXECUTE ON AQUEDUCT_ADMIN TO &runtime_user
/
GRANT SELECT ON AQ$WF_SIGNAL_QTAB TO &runtime_user
/
BEGIN
  DBMS_AQADM.GRANT_QUEUE_PRIVILEGE(privilege => 'ENQUEUE', queue_name => 'WF_SIGNAL_Q', grantee => '&runtime_user');
END;
/
BEGIN
  DBMS_AQADM.GRANT_QUEUE_PRIVILEGE(privilege => 'DEQUEUE', queue_name => 'WF_SIGNAL_Q', grantee => '&runtime_user');
END;
/
BEGIN
  DBMS_AQADM.GRANT_QUEUE_PRIVILEGE(privilege => 'DEQUEUE', queue_name => 'AQ$_WF_SIGNAL_QTAB_E', grantee => '&runtime_user');
END;
/
GRANT SELECT ON AQ$WF_SCHEDULE_QTAB TO &runtime_user
/
BEGIN
  DBMS_AQADM.GRANT_QUEUE_PRIVILEGE(privilege => 'ENQUEUE', queue_name => 'WF_SCHEDULE_Q', grantee => '&runtime_user');
END;
/
BEGIN
  DBMS_AQADM.GRANT_QUEUE_PRIVILEGE(privilege => 'DEQUEUE', queue_name => 'WF_SCHEDULE_Q', grantee => '&runtime_user');
END;
/
BEGIN
  DBMS_AQADM.GRANT_QUEUE_PRIVILEGE(privilege => 'DEQUEUE', queue_name => 'AQ$_WF_SCHEDULE_QTAB_E', grantee => '&runtime_user');
END;
/
GRANT SELECT ON AQ$WF_COMMAND_QTAB TO &runtime_user
/
BEGIN
  DBMS_AQADM.GRANT_QUEUE_PRIVILEGE(privilege => 'ENQUEUE', queue_name => 'WF_COMMAND_Q', grantee => '&runtime_user');
END;
/
BEGIN
  DBMS_AQADM.GRANT_QUEUE_PRIVILEGE(privilege => 'DEQUEUE', queue_name => 'WF_COMMAND_Q', grantee => '&runtime_user');
END;
/
BEGIN
  DBMS_AQADM.GRANT_QUEUE_PRIVILEGE(privilege => 'DEQUEUE', queue_name => 'AQ$_WF_COMMAND_QTAB_E', grantee => '&runtime_user');
END;
/
GRANT SELECT ON AQ$WF_DLQ_QTAB TO &runtime_user
/
GRANT SELECT ON AQ$WF_DLQ_QTAB_S TO &runtime_user
/
BEGIN
  DBMS_AQADM.GRANT_QUEUE_PRIVILEGE(privilege => 'ENQUEUE', queue_name => 'WF_DLQ_Q', grantee => '&runtime_user');
END;
/
BEGIN
  DBMS_AQADM.GRANT_QUEUE_PRIVILEGE(privilege => 'DEQUEUE', queue_name => 'WF_DLQ_Q', grantee => '&runtime_user');
END;
/
BEGIN
  DBMS_AQADM.GRANT_QUEUE_PRIVILEGE(privilege => 'DEQUEUE', queue_name => 'AQ$_WF_DLQ_QTAB_E', grantee => '&runtime_user');
END;
/
