-- Everybody may read the dictionary but its V$ views, and use queues as far as
-- aq_find lets them; DBMS_AQ and DBMS_AQADM are for those they are granted to.
GRANT USAGE ON SCHEMA ocisim, dbms_session, dbms_lock, dbms_transaction, dbms_output, dbms_lob, utl_raw, utl_i18n, sys TO PUBLIC;
GRANT USAGE, CREATE ON SCHEMA ocisim_blocks TO PUBLIC;
GRANT SELECT ON ALL TABLES IN SCHEMA ocisim TO PUBLIC;
REVOKE SELECT ON ocisim.v$parameter, ocisim.v$resource_limit, ocisim.v$instance, ocisim.v$statname, ocisim.v$mystat,
  ocisim.v$session FROM PUBLIC;
GRANT ALL ON ocisim.aq_msg, ocisim.aq_attempt, ocisim.aq_queue, ocisim.aq_subscriber, ocisim.aq_queue_table, ocisim.aq_grant, ocisim.package, ocisim.package_grant, ocisim.compile_error,
  ocisim.sys_priv, ocisim.account TO PUBLIC;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA ocisim TO PUBLIC;
-- The last one: who sees it, sees everything.
CREATE FUNCTION ocisim.ready() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1';
COMMIT;
