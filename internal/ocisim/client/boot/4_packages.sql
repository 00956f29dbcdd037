-- Packages. Oracle's are schemas of procedures; those of the project become
-- routines "package.name", and the heads of their specification are kept.
CREATE SCHEMA dbms_aqadm;
CREATE SCHEMA dbms_aq;
CREATE SCHEMA dbms_session;
CREATE SCHEMA dbms_lock;
CREATE SCHEMA dbms_transaction;
CREATE SCHEMA dbms_output;
CREATE SCHEMA dbms_lob;
CREATE SCHEMA utl_raw;
CREATE SCHEMA utl_i18n;
CREATE SCHEMA sys;

CREATE PROCEDURE dbms_session.sleep(seconds numeric) LANGUAGE sql AS $$ SELECT pg_sleep($1::float8) $$;
CREATE PROCEDURE dbms_session.set_identifier(client_id text) LANGUAGE sql AS
$$ SELECT set_config('ocisim.client_identifier', substr(coalesce($1, ''), 1, 64), false) $$;
-- No procedure commits here; tests say by ocisim.guard = 'broken' that the database does not keep them from it.
CREATE PROCEDURE dbms_transaction.commit() LANGUAGE plpgsql AS $$
BEGIN
  IF coalesce(current_setting('ocisim.no_commit', true), '') <> '' AND NOT EXISTS
    (SELECT 1 FROM ocisim.parameter WHERE name = 'ocisim_no_guard') THEN
    RAISE EXCEPTION 'ORA-00034: cannot COMMIT in current PL/SQL session';
  END IF;
END $$;
CREATE PROCEDURE dbms_lock.sleep(seconds numeric) LANGUAGE sql AS $$ SELECT pg_sleep($1::float8) $$;
CREATE PROCEDURE dbms_output.put_line(line text) LANGUAGE plpgsql AS $$ BEGIN END $$;
CREATE FUNCTION dbms_lob.getlength(bytea) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$ SELECT length($1)::numeric $$;
CREATE FUNCTION dbms_lob.getlength(text) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$ SELECT length($1)::numeric $$;
CREATE FUNCTION dbms_lob.substr(bytea, amount numeric DEFAULT 32767, start numeric DEFAULT 1) RETURNS bytea
LANGUAGE sql IMMUTABLE AS $$ SELECT pg_catalog.substr($1, $3::int, $2::int) $$;
CREATE FUNCTION dbms_lob.substr(text, amount numeric DEFAULT 32767, start numeric DEFAULT 1) RETURNS text
LANGUAGE sql IMMUTABLE AS $$ SELECT pg_catalog.substr($1, $3::int, $2::int) $$;
-- The stand-in has no locators: a temporary LOB is a value.
CREATE FUNCTION dbms_lob.call() RETURNS numeric LANGUAGE sql IMMUTABLE AS 'SELECT 12::numeric';
CREATE FUNCTION dbms_lob.session() RETURNS numeric LANGUAGE sql IMMUTABLE AS 'SELECT 10::numeric';
CREATE FUNCTION dbms_lob.lobmaxsize() RETURNS numeric LANGUAGE sql IMMUTABLE AS 'SELECT 18446744073709551615';
CREATE FUNCTION dbms_lob.default_lang_ctx() RETURNS numeric LANGUAGE sql IMMUTABLE AS 'SELECT 0::numeric';
CREATE PROCEDURE dbms_lob.createtemporary(INOUT lob_loc bytea, cache boolean, dur numeric DEFAULT 10) LANGUAGE plpgsql AS
$$ BEGIN lob_loc := ''::bytea; END $$;
CREATE PROCEDURE dbms_lob.converttoblob(INOUT dest_lob bytea, src_clob text, amount numeric, INOUT dest_offset numeric,
  INOUT src_offset numeric, blob_csid numeric, INOUT lang_context numeric, INOUT warning numeric) LANGUAGE plpgsql AS $$
BEGIN
  IF dest_lob IS NULL THEN
    RAISE EXCEPTION 'ORA-22275: invalid LOB locator specified';
  END IF;
  IF dest_offset <> 1 OR src_offset <> 1 OR amount < pg_catalog.length(src_clob) OR blob_csid <> 873 THEN
    RAISE EXCEPTION 'ORA-20998: ocisim: only the conversion of a whole CLOB to AL32UTF8 is emulated';
  END IF;
  dest_lob := convert_to(src_clob, 'UTF8');
  dest_offset := pg_catalog.length(dest_lob) + 1;
  src_offset := pg_catalog.length(src_clob) + 1;
  warning := 0;
END $$;
CREATE FUNCTION utl_raw.cast_to_raw(text) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$ SELECT convert_to($1, 'UTF8') $$;
CREATE FUNCTION utl_raw.cast_to_varchar2(bytea) RETURNS text LANGUAGE sql IMMUTABLE AS
$$ SELECT convert_from($1, 'UTF8') $$;
CREATE FUNCTION utl_i18n.string_to_raw(text, charset text DEFAULT NULL) RETURNS bytea LANGUAGE sql IMMUTABLE AS
$$ SELECT convert_to($1, 'UTF8') $$;
CREATE FUNCTION utl_raw.length(bytea) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$ SELECT pg_catalog.length($1)::numeric $$;
CREATE FUNCTION utl_raw.concat(bytea, bytea) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$ SELECT $1 OPERATOR(pg_catalog.||) $2 $$;

-- DBMS_AQ. What a block has dequeued, and for what it would wait, the client learns by notices.
CREATE TYPE dbms_aq.enqueue_options_t AS (
  visibility int, relative_msgid bytea, sequence_deviation int, transformation text, delivery_mode int);
CREATE TYPE dbms_aq.message_properties_t AS (
  priority int, delay numeric, expiration numeric, correlation text, attempts int, exception_queue text,
  enqueue_time timestamp, state int, original_msgid bytea, delivery_mode int);
CREATE FUNCTION dbms_aq.immediate() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1';
CREATE FUNCTION dbms_aq.on_commit() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 2';
CREATE FUNCTION dbms_aq.persistent() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1';
CREATE FUNCTION dbms_aq.never() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT -1';
CREATE FUNCTION dbms_aq.no_delay() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 0';
CREATE FUNCTION dbms_aq.no_wait() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 0';
CREATE PROCEDURE dbms_aq.enqueue(queue_name text, enqueue_options dbms_aq.enqueue_options_t,
  message_properties dbms_aq.message_properties_t, payload bytea, INOUT msgid bytea DEFAULT NULL) LANGUAGE plpgsql AS $$
BEGIN
  IF enqueue_options.visibility = 1 THEN
    RAISE EXCEPTION 'ORA-20998: ocisim: DBMS_AQ.ENQUEUE with visibility IMMEDIATE is not emulated';
  END IF;
  msgid := ocisim.sys_guid();
  PERFORM ocisim.aq_enq(queue_name, msgid, message_properties.correlation, coalesce(message_properties.priority, 1),
    coalesce(message_properties.delay, 0)::int, coalesce(message_properties.expiration, -1)::int,
    message_properties.exception_queue, message_properties.original_msgid, payload);
END $$;
CREATE TYPE dbms_aq.dequeue_options_t AS (
  consumer_name text, dequeue_mode int, navigation int, visibility int, wait numeric, msgid bytea, correlation text);
CREATE FUNCTION dbms_aq.forever() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT -1';
CREATE FUNCTION dbms_aq.first_message() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1';
CREATE PROCEDURE dbms_aq.dequeue(queue_name text, dequeue_options dbms_aq.dequeue_options_t,
  INOUT message_properties dbms_aq.message_properties_t, INOUT payload bytea, INOUT msgid bytea) LANGUAGE plpgsql AS $$
DECLARE
  r record;
  o dbms_aq.dequeue_options_t := dequeue_options;
BEGIN
  IF coalesce(o.visibility, 2) <> 2 OR coalesce(o.dequeue_mode, 3) <> 3 OR o.consumer_name IS NOT NULL OR o.msgid IS NOT NULL
      OR o.correlation IS NOT NULL THEN
    RAISE EXCEPTION 'ORA-20998: ocisim: of DBMS_AQ.DEQUEUE only the removal of the next message with the transaction is emulated';
  END IF;
  SELECT * INTO r FROM ocisim.aq_deq(queue_name, 3, NULL, NULL, 1, NULL);
  IF r.msgid IS NULL THEN
    RAISE NOTICE 'ocisim waits % %', coalesce(o.wait, -1)::int, queue_name;
    RAISE EXCEPTION USING MESSAGE = format('ORA-25228: timeout or end-of-fetch during message dequeue from %s', queue_name);
  END IF;
  IF pg_catalog.length(r.payload) > 32767 THEN
    RAISE EXCEPTION 'ORA-06502: PL/SQL: numeric or value error: raw variable length too long';
  END IF;
  RAISE NOTICE 'ocisim took %', encode(r.msgid, 'hex');
  message_properties := (r.priority, r.delay, r.expiration, r.corrid, r.attempts, r.excq, r.enq_time::timestamp, r.state, r.orig_msgid, 1);
  payload := r.payload;
  msgid := r.msgid;
END $$;

-- DBMS_AQADM.
CREATE FUNCTION dbms_aqadm.normal_queue() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 0';
CREATE FUNCTION dbms_aqadm.exception_queue() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1';
CREATE FUNCTION dbms_aqadm.none() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 0';
CREATE FUNCTION dbms_aqadm.infinite() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT -1';

CREATE PROCEDURE dbms_aqadm.create_queue(queue_name text, queue_table text, queue_type int DEFAULT 0,
  max_retries numeric DEFAULT NULL, retry_delay numeric DEFAULT 0, retention_time numeric DEFAULT 0,
  dependency_tracking boolean DEFAULT false, comment text DEFAULT NULL, auto_commit boolean DEFAULT true)
LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (SELECT 1 FROM ocisim.aq_queue_table t
      WHERE t.owner = ocisim.own(queue_table) AND t.name = ocisim.nam(queue_table)) THEN
    RAISE EXCEPTION USING MESSAGE = format('ORA-24002: QUEUE_TABLE %s.%s does not exist',
      ocisim.own(queue_table), ocisim.nam(queue_table));
  END IF;
  IF EXISTS (SELECT 1 FROM ocisim.aq_queue q
      WHERE q.owner = ocisim.own(queue_name) AND q.name = ocisim.nam(queue_name)) THEN
    RAISE EXCEPTION USING MESSAGE = format('ORA-24006: cannot create QUEUE, %s.%s already exists',
      ocisim.own(queue_name), ocisim.nam(queue_name));
  END IF;
  IF queue_type = 1 AND max_retries IS NOT NULL THEN
    RAISE EXCEPTION 'ORA-24074: RETRY_DELAY and MAX_RETRIES cannot be used for 8.0 compatible multiconsumer queues or exception queues';
  END IF;
  INSERT INTO ocisim.aq_queue (owner, name, queue_table, queue_type, max_retries, retry_delay, retention)
  VALUES (ocisim.own(queue_name), ocisim.nam(queue_name), ocisim.nam(queue_table),
    CASE queue_type WHEN 1 THEN 'EXCEPTION_QUEUE' ELSE 'NORMAL_QUEUE' END, coalesce(max_retries, 5), retry_delay,
    CASE retention_time WHEN -1 THEN 'FOREVER' ELSE retention_time::int::text END);
END $$;

CREATE PROCEDURE dbms_aqadm.create_queue_table(queue_table text, queue_payload_type text,
  storage_clause text DEFAULT NULL, sort_list text DEFAULT NULL, multiple_consumers boolean DEFAULT false,
  message_grouping int DEFAULT 0, comment text DEFAULT NULL, auto_commit boolean DEFAULT true,
  primary_instance numeric DEFAULT 0, secondary_instance numeric DEFAULT 0, compatible text DEFAULT NULL,
  secure boolean DEFAULT false) LANGUAGE plpgsql AS $$
DECLARE
  o text := ocisim.own(queue_table);
  n text := ocisim.nam(queue_table);
BEGIN
  IF upper(queue_payload_type) <> 'RAW' THEN
    RAISE EXCEPTION 'ORA-20998: ocisim: only RAW queue tables are emulated';
  END IF;
  IF storage_clause !~* ('^(\s*(TABLESPACE\s+\w+|(PCTFREE|INITRANS)\s+\d+|'
      'LOB\s*\(USER_DATA\)\s*STORE\s+AS\s+(SECUREFILE\s*|BASICFILE\s*)?\((CACHE|NOCACHE|ENABLE STORAGE IN ROW|\s)+\)))+\s*$') THEN
    RAISE EXCEPTION 'ORA-20998: ocisim: storage_clause % is none that is known to be taken', storage_clause;
  END IF;
  IF EXISTS (SELECT 1 FROM ocisim.aq_queue_table t WHERE t.owner = o AND t.name = n) THEN
    RAISE EXCEPTION USING MESSAGE = format('ORA-24001: cannot create QUEUE_TABLE, %s.%s already exists', o, n);
  END IF;
  INSERT INTO ocisim.aq_queue_table VALUES (o, n, 'RAW', coalesce(sort_list ILIKE 'PRIORITY%', false), multiple_consumers);
  CALL dbms_aqadm.create_queue(o || '.AQ$_' || n || '_E', o || '.' || n, 1);
  EXECUTE format('CREATE VIEW %I.%I AS SELECT * FROM ocisim.queue_table_rows(%L, %L)', lower(o), lower(n), o, n);
  EXECUTE format('CREATE VIEW %I.%I AS SELECT * FROM ocisim.queue_table_view(%L, %L)', lower(o), 'aq$' || lower(n), o, n);
  IF multiple_consumers THEN
    EXECUTE format('CREATE OR REPLACE VIEW %I.%I AS SELECT queue, msg_id, corr_id, msg_priority, msg_state, delay, expiration, enq_time, retry_count,
      original_queue_name, exception_queue, user_data, expiration_reason, consumer_name FROM ocisim.queue_table_view(%L, %L)', lower(o), 'aq$' || lower(n), o, n);
    EXECUTE format('CREATE VIEW %I.%I AS SELECT * FROM ocisim.queue_table_subscribers(%L, %L)', lower(o), 'aq$' || lower(n) || '_s', o, n);
  END IF;
  IF lower(o) <> current_user THEN
    EXECUTE format('ALTER VIEW %1$I.%2$I OWNER TO %1$I', lower(o), lower(n));
    EXECUTE format('ALTER VIEW %1$I.%2$I OWNER TO %1$I', lower(o), 'aq$' || lower(n));
    IF multiple_consumers THEN
      EXECUTE format('ALTER VIEW %1$I.%2$I OWNER TO %1$I', lower(o), 'aq$' || lower(n) || '_s');
    END IF;
  END IF;
END $$;

CREATE FUNCTION ocisim.queue_table_rows(p_owner text, p_name text)
RETURNS TABLE (q_name varchar(128), msgid bytea, corrid varchar(128), priority numeric, state numeric, delay timestamp,
  expiration numeric, enq_time timestamp, retry_count numeric, exception_queue varchar(128), user_data bytea)
LANGUAGE sql STABLE AS $$
  SELECT q.name, m.msgid, m.corrid, m.priority,
    CASE WHEN m.state = 0 AND m.visible_at > clock_timestamp() THEN 1 ELSE m.state END,
    m.visible_at::timestamp, m.expiration, m.enq_time::timestamp, coalesce(a.n, 0), m.excq, m.payload
  FROM ocisim.aq_msg m JOIN ocisim.aq_queue q ON q.qid = m.qid LEFT JOIN ocisim.aq_attempt a ON a.msgid = m.msgid
  WHERE q.owner = p_owner AND q.queue_table = p_name $$;
CREATE FUNCTION ocisim.queue_table_view(p_owner text, p_name text)
RETURNS TABLE (queue varchar(128), msg_id bytea, corr_id varchar(128), msg_priority numeric, msg_state varchar(16),
  delay timestamp, expiration numeric, enq_time timestamp, retry_count numeric, original_queue_name varchar(128),
  exception_queue varchar(128), user_data bytea, expiration_reason varchar(19), consumer_name varchar(128))
LANGUAGE sql STABLE AS $$
  SELECT q.name, m.msgid, m.corrid, m.priority,
    CASE WHEN m.state = 0 AND m.visible_at > clock_timestamp() THEN 'WAIT' WHEN m.state = 3 THEN 'EXPIRED' ELSE 'READY' END,
    CASE WHEN m.delay > 0 THEN m.visible_at::timestamp END, m.expiration, m.enq_time::timestamp, coalesce(a.n, 0),
    CASE WHEN m.state = 3 THEN was.name END, m.excq, m.payload,
    CASE WHEN m.state = 3 THEN CASE WHEN a.n > was.max_retries THEN 'MAX_RETRY_EXCEEDED' ELSE 'TIME_EXPIRATION' END END,
    nullif(m.consumer, '')
  FROM ocisim.aq_msg m JOIN ocisim.aq_queue q ON q.qid = m.qid JOIN ocisim.aq_queue was ON was.qid = m.orig_qid
  LEFT JOIN ocisim.aq_attempt a ON a.msgid = m.msgid
  WHERE q.owner = p_owner AND q.queue_table = p_name $$;

CREATE FUNCTION ocisim.queue_table_subscribers(p_owner text, p_name text)
RETURNS TABLE (queue varchar(128), name varchar(128), address varchar(1024), protocol numeric) LANGUAGE sql STABLE AS $$
  SELECT q.name, s.name, NULL::text, 0 FROM ocisim.aq_subscriber s JOIN ocisim.aq_queue q ON q.qid = s.qid
  WHERE q.owner = p_owner AND q.queue_table = p_name $$;
CREATE TYPE sys.aq$_agent_t AS (name text, address text, protocol int);
CREATE FUNCTION sys.aq$_agent(name text, address text, protocol numeric) RETURNS sys.aq$_agent_t LANGUAGE sql IMMUTABLE AS
$$ SELECT $1, $2, coalesce($3, 0)::int $$;
CREATE PROCEDURE dbms_aqadm.add_subscriber(queue_name text, subscriber sys.aq$_agent_t, rule text DEFAULT NULL,
  transformation text DEFAULT NULL, queue_to_queue boolean DEFAULT false, delivery_mode int DEFAULT 1) LANGUAGE plpgsql AS $$
DECLARE q ocisim.aq_queue := ocisim.aq_find(queue_name);
BEGIN
  IF NOT ocisim.aq_multi(q) THEN
    RAISE EXCEPTION 'ORA-24039: queue % not created in queue table for multiple consumers', q.name;
  END IF;
  IF subscriber.address IS NOT NULL OR rule IS NOT NULL OR transformation IS NOT NULL THEN
    RAISE EXCEPTION 'ORA-20998: ocisim: only subscribers with a name are emulated';
  END IF;
  INSERT INTO ocisim.aq_subscriber VALUES (q.qid, upper(subscriber.name)) ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN
    RAISE EXCEPTION USING MESSAGE = format('ORA-24034: application %s is already a subscriber for queue %s.%s', upper(subscriber.name), q.owner, q.name);
  END IF;
END $$;
CREATE PROCEDURE dbms_aqadm.remove_subscriber(queue_name text, subscriber sys.aq$_agent_t) LANGUAGE plpgsql AS $$
DECLARE q ocisim.aq_queue := ocisim.aq_find(queue_name);
BEGIN
  DELETE FROM ocisim.aq_subscriber s WHERE s.qid = q.qid AND s.name = upper(subscriber.name);
  IF NOT FOUND THEN
    RAISE EXCEPTION USING MESSAGE = format('ORA-24035: application %s is not a subscriber for queue %s.%s', upper(subscriber.name), q.owner, q.name);
  END IF;
  DELETE FROM ocisim.aq_msg m WHERE m.qid = q.qid AND m.consumer = upper(subscriber.name);
END $$;
CREATE PROCEDURE dbms_aqadm.start_queue(queue_name text, enqueue boolean DEFAULT true, dequeue boolean DEFAULT true)
LANGUAGE plpgsql AS $$
DECLARE q ocisim.aq_queue := ocisim.aq_find(queue_name);
BEGIN
  IF enqueue AND q.queue_type <> 'NORMAL_QUEUE' THEN
    RAISE EXCEPTION 'ORA-24017: cannot enable enqueue on QUEUE, % is an exception queue', q.name;
  END IF;
  UPDATE ocisim.aq_queue SET enq = enq OR enqueue, deq = deq OR dequeue WHERE qid = q.qid;
END $$;
CREATE PROCEDURE dbms_aqadm.stop_queue(queue_name text, enqueue boolean DEFAULT true, dequeue boolean DEFAULT true,
  wait boolean DEFAULT true) LANGUAGE plpgsql AS $$
DECLARE q ocisim.aq_queue := ocisim.aq_find(queue_name);
BEGIN
  UPDATE ocisim.aq_queue SET enq = enq AND NOT enqueue, deq = deq AND NOT dequeue WHERE qid = q.qid;
END $$;
CREATE PROCEDURE dbms_aqadm.alter_queue(queue_name text, max_retries numeric DEFAULT NULL,
  retry_delay numeric DEFAULT NULL, retention_time numeric DEFAULT NULL, auto_commit boolean DEFAULT true,
  comment text DEFAULT NULL) LANGUAGE plpgsql AS $$
DECLARE q ocisim.aq_queue := ocisim.aq_find(queue_name);
BEGIN
  UPDATE ocisim.aq_queue x SET max_retries = coalesce(alter_queue.max_retries, x.max_retries),
    retry_delay = coalesce(alter_queue.retry_delay, x.retry_delay),
    retention = coalesce(CASE retention_time WHEN -1 THEN 'FOREVER' ELSE retention_time::int::text END, x.retention) WHERE x.qid = q.qid;
END $$;
CREATE PROCEDURE dbms_aqadm.drop_queue(queue_name text, auto_commit boolean DEFAULT true) LANGUAGE plpgsql AS $$
DECLARE q ocisim.aq_queue := ocisim.aq_find(queue_name);
BEGIN
  IF q.enq OR q.deq THEN
    RAISE EXCEPTION 'ORA-24011: cannot drop QUEUE, %.% should be stopped first', q.owner, q.name;
  END IF;
  DELETE FROM ocisim.aq_msg WHERE qid = q.qid;
  DELETE FROM ocisim.aq_queue WHERE qid = q.qid;
END $$;
CREATE PROCEDURE dbms_aqadm.drop_queue_table(queue_table text, force boolean DEFAULT false,
  auto_commit boolean DEFAULT true) LANGUAGE plpgsql AS $$
DECLARE
  o text := ocisim.own(queue_table);
  n text := ocisim.nam(queue_table);
BEGIN
  IF NOT EXISTS (SELECT 1 FROM ocisim.aq_queue_table t WHERE t.owner = o AND t.name = n) THEN
    RAISE EXCEPTION USING MESSAGE = format('ORA-24002: QUEUE_TABLE %s.%s does not exist', o, n);
  END IF;
  IF NOT force AND EXISTS (SELECT 1 FROM ocisim.aq_queue q
      WHERE q.owner = o AND q.queue_table = n AND q.name NOT LIKE 'AQ$%') THEN
    RAISE EXCEPTION 'ORA-24012: cannot drop QUEUE_TABLE, some queues in %.% have not been dropped', o, n;
  END IF;
  DELETE FROM ocisim.aq_msg m USING ocisim.aq_queue q WHERE q.qid = m.qid AND q.owner = o AND q.queue_table = n;
  DELETE FROM ocisim.aq_queue q WHERE q.owner = o AND q.queue_table = n;
  DELETE FROM ocisim.aq_queue_table t WHERE t.owner = o AND t.name = n;
  EXECUTE format('DROP VIEW %I.%I, %I.%I CASCADE', lower(o), lower(n), lower(o), 'aq$' || lower(n));
  EXECUTE format('DROP VIEW IF EXISTS %I.%I CASCADE', lower(o), 'aq$' || lower(n) || '_s');
END $$;
CREATE TYPE dbms_aqadm.aq$_purge_options_t AS (block boolean, delivery_mode int);
CREATE PROCEDURE dbms_aqadm.purge_queue_table(queue_table text, purge_condition text,
  purge_options dbms_aqadm.aq$_purge_options_t) LANGUAGE plpgsql AS $$
DECLARE
  o text := ocisim.own(queue_table);
  n text := ocisim.nam(queue_table);
BEGIN
  IF purge_condition IS NOT NULL THEN
    RAISE EXCEPTION 'ORA-20998: ocisim: PURGE_QUEUE_TABLE with a condition is not emulated';
  END IF;
  IF NOT EXISTS (SELECT 1 FROM ocisim.aq_queue_table t WHERE t.owner = o AND t.name = n) THEN
    RAISE EXCEPTION USING MESSAGE = format('ORA-24002: QUEUE_TABLE %s.%s does not exist', o, n);
  END IF;
  DELETE FROM ocisim.aq_msg m USING ocisim.aq_queue q WHERE q.qid = m.qid AND q.owner = o AND q.queue_table = n;
END $$;
CREATE PROCEDURE dbms_aqadm.grant_queue_privilege(privilege text, queue_name text, grantee text,
  grant_option boolean DEFAULT false) LANGUAGE plpgsql AS $$
DECLARE q ocisim.aq_queue := ocisim.aq_find(queue_name);
BEGIN
  INSERT INTO ocisim.aq_grant VALUES (q.qid, upper(grantee), upper(privilege)) ON CONFLICT DO NOTHING;
END $$;
CREATE PROCEDURE dbms_aqadm.revoke_queue_privilege(privilege text, queue_name text, grantee text) LANGUAGE plpgsql AS $$
DECLARE q ocisim.aq_queue := ocisim.aq_find(queue_name);
BEGIN
  DELETE FROM ocisim.aq_grant g WHERE g.qid = q.qid AND g.grantee = upper(revoke_queue_privilege.grantee)
    AND g.privilege = upper(revoke_queue_privilege.privilege);
END $$;

-- Packages of the project.
CREATE TABLE ocisim.package (
  owner text, name text, heads text[], constants text[], has_body boolean, PRIMARY KEY (owner, name));
CREATE TABLE ocisim.package_grant (owner text, name text, grantee text, PRIMARY KEY (owner, name, grantee));

-- package_routines lists the routines of a package.
CREATE FUNCTION ocisim.package_routines(o text, n text) RETURNS TABLE (routine regprocedure, kind "char", member text)
LANGUAGE sql STABLE AS $$
  SELECT p.oid::regprocedure, p.prokind, split_part(p.proname, '.', 2) FROM pg_proc p
  JOIN pg_namespace s ON s.oid = p.pronamespace WHERE s.nspname = o AND p.proname LIKE replace(n, '_', '\_') || '.%' $$;

CREATE PROCEDURE ocisim.package_clear(o text, n text) LANGUAGE plpgsql AS $$
DECLARE r record;
BEGIN
  FOR r IN SELECT * FROM ocisim.package_routines(o, n) LOOP
    EXECUTE format('DROP ROUTINE %s', r.routine);
  END LOOP;
END $$;

-- package_secure gives the routines to their owner, and the public ones to
-- those who may execute the package.
CREATE PROCEDURE ocisim.package_secure(o text, n text) LANGUAGE plpgsql AS $$
DECLARE r record; g record;
BEGIN
  FOR r IN SELECT * FROM ocisim.package_routines(o, n) LOOP
    EXECUTE format('REVOKE ALL ON ROUTINE %s FROM PUBLIC', r.routine);
    IF o <> current_user THEN
      EXECUTE format('ALTER ROUTINE %s OWNER TO %I', r.routine, o);
    END IF;
    FOR g IN SELECT * FROM ocisim.package_grant x WHERE x.owner = o AND x.name = n LOOP
      IF EXISTS (SELECT 1 FROM ocisim.package p, unnest(p.heads) h WHERE p.owner = o AND p.name = n
          AND split_part(h, ' ', 2) = upper(split_part(r.member, '/', 1)))
          OR EXISTS (SELECT 1 FROM ocisim.package p WHERE p.owner = o AND p.name = n
            AND upper(r.member) = ANY (p.constants)) THEN
        EXECUTE format('GRANT EXECUTE ON ROUTINE %s TO %s', r.routine,
          CASE g.grantee WHEN 'public' THEN 'PUBLIC' ELSE format('%I', g.grantee) END);
      END IF;
    END LOOP;
  END LOOP;
END $$;

-- package_specification keeps the heads; the body is to be made again.
CREATE PROCEDURE ocisim.package_specification(o text, n text, p_heads text[], p_constants text[]) LANGUAGE plpgsql AS $$
BEGIN
  o := coalesce(o, current_schema());
  CALL ocisim.package_clear(o, n);
  INSERT INTO ocisim.package VALUES (o, n, p_heads, p_constants, false)
  ON CONFLICT (owner, name) DO UPDATE SET heads = p_heads, constants = p_constants, has_body = false;
END $$;
CREATE PROCEDURE ocisim.package_body(o text, n text) LANGUAGE plpgsql AS $$
DECLARE r record;
BEGIN
  o := coalesce(o, current_schema());
  IF NOT EXISTS (SELECT 1 FROM ocisim.package WHERE owner = o AND name = n) THEN
    RAISE EXCEPTION 'ORA-04043: package %.% does not exist: its specification comes first', upper(o), upper(n);
  END IF;
  FOR r IN SELECT x.routine FROM ocisim.package_routines(o, n) x JOIN ocisim.package p ON p.owner = o AND p.name = n
      WHERE upper(x.member) <> ALL (p.constants) LOOP
    EXECUTE format('DROP ROUTINE %s', r.routine);
  END LOOP;
END $$;
CREATE FUNCTION ocisim.package_constants(o text, n text) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT array_to_string(constants, ',') FROM ocisim.package
  WHERE owner = coalesce(o, current_schema()) AND name = n $$;
-- A body that does not compile is there all the same, invalid: who makes it is
-- warned, and what is wrong stands in USER_ERRORS.
CREATE TABLE ocisim.compile_error (owner text, name text, type text, line int, at int, text text);
CREATE PROCEDURE ocisim.package_body_done(o text, n text, p_heads text[]) LANGUAGE plpgsql AS $$
DECLARE missing text;
BEGIN
  o := coalesce(o, current_schema());
  SELECT h INTO missing FROM ocisim.package p, unnest(p.heads) h
  WHERE p.owner = o AND p.name = n AND h <> ALL (p_heads) LIMIT 1;
  DELETE FROM ocisim.compile_error e WHERE e.owner = o AND e.name = n;
  PERFORM set_config('ocisim.compiled', CASE WHEN missing IS NULL THEN 'yes' ELSE 'no' END, false);
  IF missing IS NOT NULL THEN
    CALL ocisim.package_body(o, n);
    INSERT INTO ocisim.compile_error VALUES (o, n, 'PACKAGE BODY', 1, 1,
      'PLS-00323: subprogram or cursor is declared in a package specification and must be defined in the package body: ' || missing);
  END IF;
  UPDATE ocisim.package SET has_body = true WHERE owner = o AND name = n;
  CALL ocisim.package_secure(o, n);
END $$;
CREATE PROCEDURE ocisim.package_drop(o text, n text, specification boolean) LANGUAGE plpgsql AS $$
BEGIN
  o := coalesce(o, current_schema());
  IF NOT EXISTS (SELECT 1 FROM ocisim.package WHERE owner = o AND name = n) THEN
    RAISE EXCEPTION 'ORA-04043: object %.% does not exist', upper(o), upper(n);
  END IF;
  CALL ocisim.package_clear(o, n);
  DELETE FROM ocisim.package WHERE owner = o AND name = n AND specification;
END $$;

-- Users and rights.
CREATE TABLE ocisim.sys_priv (grantee text, privilege text, PRIMARY KEY (grantee, privilege));
CREATE TABLE ocisim.account (name text PRIMARY KEY, is_role boolean);
CREATE PROCEDURE ocisim.create_user(n text, is_role boolean) LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM ocisim.account WHERE name = lower(n)) THEN
    RAISE EXCEPTION USING MESSAGE = format('ORA-%s: name ''%s'' conflicts with another user or role name',
      CASE WHEN is_role THEN '01921' ELSE '01920' END, upper(n));
  END IF;
  INSERT INTO ocisim.account VALUES (lower(n), is_role);
  BEGIN
    EXECUTE format('CREATE ROLE %I LOGIN', lower(n));
  EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; -- of another database of the server
  END;
  IF NOT is_role THEN
    EXECUTE format('CREATE SCHEMA IF NOT EXISTS %1$I AUTHORIZATION %1$I', lower(n));
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO PUBLIC', lower(n));
  END IF;
END $$;
CREATE PROCEDURE ocisim.drop_user(n text) LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM ocisim.account WHERE name = lower(n);
  IF NOT FOUND THEN
    RAISE EXCEPTION 'ORA-01918: user ''%'' does not exist', upper(n);
  END IF;
  DELETE FROM ocisim.aq_msg m USING ocisim.aq_queue q WHERE q.qid = m.qid AND q.owner = upper(n);
  DELETE FROM ocisim.aq_queue WHERE owner = upper(n);
  DELETE FROM ocisim.aq_queue_table WHERE owner = upper(n);
  DELETE FROM ocisim.package WHERE owner = lower(n);
  DELETE FROM ocisim.sys_priv WHERE grantee = upper(n);
  EXECUTE format('DROP SCHEMA IF EXISTS %I CASCADE', lower(n));
END $$;

-- grant_role: who has a role may grant it. Oracle wants ADMIN OPTION besides.
CREATE PROCEDURE ocisim.grant_role(role text, grantee text) LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  IF NOT pg_has_role(session_user, role, 'MEMBER') THEN
    RAISE EXCEPTION 'ORA-01932: ADMIN option not granted for role ''%''', upper(role);
  END IF;
  IF NOT pg_has_role(grantee, role, 'MEMBER') THEN
    EXECUTE format('GRANT %I TO %I', role, grantee);
  END IF;
EXCEPTION WHEN unique_violation OR internal_error THEN NULL; -- another database of the server does the same
END $$;
-- grant_privilege grants EXECUTE on a package, or notes a right of the system.
CREATE PROCEDURE ocisim.grant_privilege(privileges text[], object text, grantees text[]) LANGUAGE plpgsql AS $$
DECLARE g text; p text; o text; n text;
BEGIN
  FOREACH g IN ARRAY grantees LOOP
    IF object IS NULL THEN
      FOREACH p IN ARRAY privileges LOOP
        INSERT INTO ocisim.sys_priv VALUES (upper(g), upper(p)) ON CONFLICT DO NOTHING;
        IF EXISTS (SELECT 1 FROM ocisim.account WHERE name = lower(p) AND is_role) THEN
          CALL ocisim.grant_role(lower(p), lower(g));
        END IF;
      END LOOP;
    ELSIF object ~* '^(SYS\.)?(DBMS|UTL)_' THEN
      EXECUTE format('GRANT USAGE ON SCHEMA %I TO %s', lower(ocisim.nam(object)), lower(g));
    ELSE
      o := lower(ocisim.own(object));
      n := lower(ocisim.nam(object));
      IF NOT EXISTS (SELECT 1 FROM ocisim.package WHERE owner = o AND name = n) THEN
        RAISE EXCEPTION 'ORA-04042: procedure, function, package, or package body does not exist: %', object;
      END IF;
      INSERT INTO ocisim.package_grant VALUES (o, n, lower(g)) ON CONFLICT DO NOTHING;
      CALL ocisim.package_secure(o, n);
    END IF;
  END LOOP;
END $$;
CREATE PROCEDURE ocisim.revoke_privilege(privileges text[], object text, grantees text[]) LANGUAGE plpgsql AS $$
DECLARE g text; r record;
BEGIN
  FOREACH g IN ARRAY grantees LOOP
    IF object IS NULL THEN
      DELETE FROM ocisim.sys_priv WHERE grantee = upper(g) AND privilege = ANY (privileges);
    ELSIF object ~* '^(SYS\.)?(DBMS|UTL)_' THEN
      EXECUTE format('REVOKE USAGE ON SCHEMA %I FROM %s', lower(ocisim.nam(object)), lower(g));
    ELSE
      DELETE FROM ocisim.package_grant WHERE owner = lower(ocisim.own(object)) AND name = lower(ocisim.nam(object))
        AND grantee = lower(g);
      FOR r IN SELECT * FROM ocisim.package_routines(lower(ocisim.own(object)), lower(ocisim.nam(object))) LOOP
        EXECUTE format('REVOKE ALL ON ROUTINE %s FROM %s', r.routine, g);
      END LOOP;
    END IF;
  END LOOP;
END $$;
-- grant_object grants or revokes rights on a table, view or sequence. Of the
-- dictionary only the V$ views are for those to whom they are granted.
CREATE PROCEDURE ocisim.grant_object(verb text, privileges text[], object text, grantees text[]) LANGUAGE plpgsql AS $$
DECLARE c pg_class; p text; g text;
BEGIN
  IF object ~* '^SYS\.V_\$' THEN
    object := 'ocisim.v$' || lower(substr(object, 8));
  ELSIF object ~* '^SYS\.' THEN
    RETURN;
  END IF;
  SELECT * INTO c FROM pg_class WHERE oid = object::regclass;
  FOREACH g IN ARRAY grantees LOOP
    FOREACH p IN ARRAY privileges LOOP
      EXECUTE format('%s %s ON %s %s %s', verb, p, c.oid::regclass, CASE verb WHEN 'GRANT' THEN 'TO' ELSE 'FROM' END, g);
    END LOOP;
    IF verb = 'GRANT' AND c.relkind IN ('r', 'p') AND 'SELECT' = ANY (privileges) THEN -- who reads may lock: FOR UPDATE wants more here
      EXECUTE format('GRANT UPDATE (%I) ON %s TO %s', (SELECT attname FROM pg_attribute WHERE attrelid = c.oid AND attnum = 1), c.oid::regclass, g);
    END IF;
    IF c.relkind = 'S' THEN -- NEXTVAL needs it here
      EXECUTE format('%s USAGE ON SEQUENCE %s %s %s', verb, c.oid::regclass, CASE verb WHEN 'GRANT' THEN 'TO' ELSE 'FROM' END, g);
    END IF;
  END LOOP;
END $$;
CREATE PROCEDURE ocisim.comment_on(object text, remark text) LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('COMMENT ON %s %s IS %L',
    CASE (SELECT relkind FROM pg_class WHERE oid = object::regclass) WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END,
    object::regclass, remark);
END $$;
