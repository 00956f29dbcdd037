package oracletest

// Former has for each former version of the Oracle schema the block that makes it of the
// next one: what the upgrade to that has changed. No node may run.
var Former = map[int]string{
	1: `BEGIN
  DBMS_AQADM.STOP_QUEUE(queue_name => 'WF_DLQ_Q');
  DBMS_AQADM.DROP_QUEUE(queue_name => 'WF_DLQ_Q');
  DBMS_AQADM.DROP_QUEUE_TABLE(queue_table => 'WF_DLQ_QTAB', force => TRUE);
  DBMS_AQADM.CREATE_QUEUE_TABLE(queue_table => 'WF_DLQ_QTAB', queue_payload_type => 'RAW', sort_list => 'PRIORITY,ENQ_TIME', multiple_consumers => FALSE);
  DBMS_AQADM.CREATE_QUEUE(queue_name => 'WF_DLQ_Q', queue_table => 'WF_DLQ_QTAB', max_retries => 10000, retry_delay => 0, retention_time => 0);
  DBMS_AQADM.START_QUEUE(queue_name => 'WF_DLQ_Q');
  DBMS_AQADM.START_QUEUE(queue_name => 'AQ$_WF_DLQ_QTAB_E', enqueue => FALSE, dequeue => TRUE);
  EXECUTE IMMEDIATE 'DROP VIEW WF_V_ATTRIBUTES';
  EXECUTE IMMEDIATE 'DROP TABLE WF_ATTRIBUTES';
  EXECUTE IMMEDIATE 'DROP INDEX WF_WAITS_KEY';
  EXECUTE IMMEDIATE 'CREATE INDEX WF_WAITS_KEY ON WF_WAITS (EVENT_TYPE, SPEC, KEY_HASH, WAITING_TOKEN)';
  UPDATE WF_META SET VALUE = HEXTORAW('01') WHERE NAME = 'schema-version';
END;`,
}
