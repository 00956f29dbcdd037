-- Advanced Queuing: queue tables, queues, subscribers, messages, attempts. A dequeue
-- locks and deletes a row in the session's transaction. Where a queue has several
-- consumers, each has a row of the message; elsewhere the consumer is ''.
CREATE TABLE ocisim.aq_queue_table (
  owner text, name text, payload_type text, by_priority boolean, multi boolean, PRIMARY KEY (owner, name));
CREATE TABLE ocisim.aq_queue (
  qid serial PRIMARY KEY, owner text, name text, queue_table text, queue_type text, max_retries int,
  retry_delay float8, enq boolean DEFAULT false, deq boolean DEFAULT false, retention text DEFAULT '0', UNIQUE (owner, name));
CREATE TABLE ocisim.aq_subscriber (qid int REFERENCES ocisim.aq_queue ON DELETE CASCADE, name text, PRIMARY KEY (qid, name));
CREATE TABLE ocisim.aq_grant (qid int, grantee text, privilege text, PRIMARY KEY (qid, grantee, privilege));
CREATE TABLE ocisim.aq_msg (
  seq bigserial, msgid bytea, consumer text DEFAULT '', qid int NOT NULL, orig_qid int NOT NULL, corrid text, priority int,
  visible_at timestamptz, expire_at timestamptz, delay int, expiration int,
  enq_time timestamptz DEFAULT clock_timestamp(), state int DEFAULT 0, excq text, orig_msgid bytea, payload bytea,
  PRIMARY KEY (msgid, consumer));
CREATE INDEX aq_msg_fifo ON ocisim.aq_msg (qid, seq);
CREATE INDEX aq_msg_priority ON ocisim.aq_msg (qid, priority, seq);
CREATE INDEX aq_msg_expiry ON ocisim.aq_msg (expire_at) WHERE expire_at IS NOT NULL AND state = 0;
ALTER TABLE ocisim.aq_msg SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500);
-- Counts are written by a second connection and are not undone by a rollback.
CREATE TABLE ocisim.aq_attempt (msgid bytea PRIMARY KEY, n int, last timestamptz);

-- aq_multi says whether the messages of a queue have several consumers. An
-- exception queue's have none.
CREATE FUNCTION ocisim.aq_multi(q ocisim.aq_queue) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT q.queue_type = 'NORMAL_QUEUE' AND t.multi FROM ocisim.aq_queue_table t WHERE t.owner = q.owner AND t.name = q.queue_table $$;

CREATE FUNCTION ocisim.own(p text) RETURNS text LANGUAGE sql STABLE AS
$$ SELECT upper(CASE WHEN position('.' in p) > 0 THEN split_part(p, '.', 1) ELSE current_schema() END) $$;
CREATE FUNCTION ocisim.nam(p text) RETURNS text LANGUAGE sql STABLE AS
$$ SELECT upper(CASE WHEN position('.' in p) > 0 THEN split_part(p, '.', 2) ELSE p END) $$;

-- aq_find finds a queue that the user may use so: ENQUEUE, DEQUEUE, or NULL
-- for its owner only.
CREATE FUNCTION ocisim.aq_find(p text, wanted text DEFAULT NULL) RETURNS ocisim.aq_queue LANGUAGE plpgsql STABLE AS $$
DECLARE q ocisim.aq_queue;
BEGIN
  SELECT * INTO q FROM ocisim.aq_queue WHERE owner = ocisim.own(p) AND name = ocisim.nam(p);
  IF NOT FOUND THEN
    RAISE EXCEPTION USING MESSAGE = format('ORA-24010: QUEUE %s.%s does not exist', ocisim.own(p), ocisim.nam(p));
  END IF;
  IF lower(q.owner) <> current_user
      AND NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = current_user AND rolsuper)
      AND NOT EXISTS (SELECT 1 FROM ocisim.aq_grant g LEFT JOIN pg_roles r ON upper(r.rolname) = g.grantee
        WHERE g.qid = q.qid AND (g.grantee = 'PUBLIC' OR pg_has_role(current_user, r.oid, 'USAGE')) AND g.privilege IN (wanted, 'ALL')) THEN
    RAISE EXCEPTION 'ORA-01031: insufficient privileges';
  END IF;
  RETURN q;
END $$;

-- aq_enq enqueues a message. expiration counts from the time it is visible; -1
-- is never, 0 is at once.
CREATE FUNCTION ocisim.aq_enq(p_queue text, p_msgid bytea, p_corr text, p_prio int, p_delay int, p_exp int,
  p_excq text, p_orig bytea, p_payload bytea) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  q ocisim.aq_queue := ocisim.aq_find(p_queue, 'ENQUEUE');
  v timestamptz := clock_timestamp() + greatest(p_delay, 0) * interval '1 second';
BEGIN
  IF q.queue_type <> 'NORMAL_QUEUE' THEN
    RAISE EXCEPTION 'ORA-25206: enqueue failed, enqueue to exception queue not permitted';
  END IF;
  IF NOT q.enq THEN
    RAISE EXCEPTION USING MESSAGE = format(
      'ORA-25207: enqueue failed, queue %s.%s is disabled from enqueueing', q.owner, q.name);
  END IF;
  IF p_delay < 0 THEN
    RAISE EXCEPTION 'ORA-25203: invalid value specified, DELAY should be 0 or greater than 0';
  END IF;
  IF ocisim.aq_multi(q) AND NOT EXISTS (SELECT 1 FROM ocisim.aq_subscriber s WHERE s.qid = q.qid) THEN
    RAISE EXCEPTION 'ORA-24033: no recipients for message';
  END IF;
  INSERT INTO ocisim.aq_msg (msgid, consumer, qid, orig_qid, corrid, priority, visible_at, expire_at, delay, expiration,
    excq, orig_msgid, payload)
  SELECT p_msgid, c.name, q.qid, q.qid, p_corr, p_prio, v,
    CASE WHEN p_exp >= 0 THEN v + p_exp * interval '1 second' END, p_delay, p_exp, upper(p_excq), p_orig, p_payload
  FROM (SELECT s.name FROM ocisim.aq_subscriber s WHERE s.qid = q.qid AND ocisim.aq_multi(q)
    UNION ALL SELECT '' WHERE NOT ocisim.aq_multi(q)) c;
  PERFORM pg_notify('ocisim_aq', q.name);
END $$;

-- aq_ready says in how many milliseconds there may be a message: 0 = now.
CREATE FUNCTION ocisim.aq_ready(p_queue text, p_corr text, p_msgid bytea, p_consumer text) RETURNS bigint LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  q ocisim.aq_queue := ocisim.aq_find(p_queue, 'DEQUEUE');
  due timestamptz;
BEGIN
  IF NOT q.deq THEN
    RAISE EXCEPTION USING MESSAGE = format(
      'ORA-25226: dequeue failed, queue %s.%s is not enabled for dequeue', q.owner, q.name);
  END IF;
  SELECT min(m.visible_at) INTO due FROM (SELECT x.visible_at FROM ocisim.aq_msg x
    WHERE x.qid = q.qid AND (p_consumer IS NULL OR x.consumer = p_consumer) AND (p_corr IS NULL OR x.corrid LIKE p_corr) AND (p_msgid IS NULL OR x.msgid = p_msgid)
    ORDER BY x.seq LIMIT 1000) m;
  IF due IS NULL THEN
    RETURN 86400000;
  END IF;
  RETURN CASE WHEN p_msgid IS NOT NULL OR due <= clock_timestamp() THEN 0
    ELSE ceil(extract(epoch FROM due - clock_timestamp()) * 1000) END;
END $$;

-- aq_next gives the next message that is not in skip, locked unless browsing. A
-- message asked for by its id need not be due.
CREATE FUNCTION ocisim.aq_next(q ocisim.aq_queue, browse boolean, p_corr text, p_msgid bytea, p_consumer text, skip bytea[])
RETURNS SETOF ocisim.aq_msg LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  byprio boolean := (SELECT t.by_priority FROM ocisim.aq_queue_table t WHERE t.owner = q.owner AND t.name = q.queue_table);
  filter text := 'm.qid = $1 AND ($4 IS NOT NULL OR m.visible_at <= clock_timestamp())
    AND ($2 <> ''NORMAL_QUEUE'' OR m.expire_at IS NULL OR m.expire_at > clock_timestamp())
    AND ($3 IS NULL OR m.corrid LIKE $3) AND ($4 IS NULL OR m.msgid = $4) AND m.msgid <> ALL($5)
    AND ($6 IS NULL OR m.consumer = $6)';
BEGIN
  RETURN QUERY EXECUTE 'SELECT * FROM ocisim.aq_msg m WHERE ' || filter
    || CASE WHEN byprio THEN ' ORDER BY m.priority, m.seq' ELSE ' ORDER BY m.seq' END
    || ' LIMIT 1' || CASE WHEN browse THEN '' ELSE ' FOR UPDATE SKIP LOCKED' END
    USING q.qid, q.queue_type, p_corr, p_msgid, skip, p_consumer;
END $$;

-- aq_deq dequeues up to p_max messages. Those about to go to the exception
-- queue, or waiting for their retry delay, are passed over.
CREATE FUNCTION ocisim.aq_deq(p_queue text, p_mode int, p_corr text, p_msgid bytea, p_max int, p_consumer text)
RETURNS TABLE (msgid bytea, corrid text, priority int, delay int, expiration int, enq_time timestamptz, state int,
  excq text, orig_msgid bytea, payload bytea, attempts int) LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  q ocisim.aq_queue := ocisim.aq_find(p_queue, 'DEQUEUE');
  r ocisim.aq_msg;
  a ocisim.aq_attempt;
  got int := 0;
  skip bytea[] := '{}';
BEGIN
  IF NOT q.deq THEN
    RAISE EXCEPTION USING MESSAGE = format(
      'ORA-25226: dequeue failed, queue %s.%s is not enabled for dequeue', q.owner, q.name);
  END IF;
  IF ocisim.aq_multi(q) AND p_consumer IS NULL THEN
    RAISE EXCEPTION 'ORA-25231: cannot dequeue because CONSUMER_NAME not specified';
  END IF;
  WHILE got < p_max LOOP
    SELECT * INTO r FROM ocisim.aq_next(q, p_mode = 1, p_corr, p_msgid, p_consumer, skip);
    EXIT WHEN r.msgid IS NULL;
    skip := skip || r.msgid;
    -- A statement of its own: it sees counts committed before the lock was released.
    SELECT * INTO a FROM ocisim.aq_attempt t WHERE t.msgid = r.msgid;
    attempts := coalesce(a.n, 0);
    CONTINUE WHEN q.queue_type = 'NORMAL_QUEUE' AND (attempts > q.max_retries
      OR attempts > 0 AND q.retry_delay > 0 AND a.last + q.retry_delay * interval '1 second' > clock_timestamp());
    IF p_mode IN (3, 4) THEN
      DELETE FROM ocisim.aq_msg m WHERE m.msgid = r.msgid AND m.consumer = r.consumer;
    END IF;
    got := got + 1;
    msgid := r.msgid; corrid := r.corrid; priority := r.priority; delay := r.delay; expiration := r.expiration;
    enq_time := r.enq_time; state := r.state; excq := r.excq; orig_msgid := r.orig_msgid;
    payload := CASE WHEN p_mode = 4 THEN NULL ELSE r.payload END;
    RETURN NEXT;
  END LOOP;
END $$;

-- aq_failed counts an attempt of each message whose dequeue is being rolled back.
CREATE FUNCTION ocisim.aq_failed(p_ids bytea[]) RETURNS void LANGUAGE sql AS $$
  INSERT INTO ocisim.aq_attempt AS t (msgid, n, last) SELECT i, 1, clock_timestamp() FROM unnest(p_ids) i
  ON CONFLICT (msgid) DO UPDATE SET n = t.n + 1, last = clock_timestamp() $$;

-- aq_sweep moves messages to their exception queue: those of p_ids that have
-- been tried too often, and, where p_ids is null, the expired ones.
CREATE FUNCTION ocisim.aq_sweep(p_ids bytea[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE r record; x int;
BEGIN
  FOR r IN SELECT m.msgid, m.consumer, q.owner, coalesce(m.excq, 'AQ$_' || q.queue_table || '_E') AS eq
      FROM ocisim.aq_msg m JOIN ocisim.aq_queue q ON q.qid = m.qid LEFT JOIN ocisim.aq_attempt a ON a.msgid = m.msgid
      WHERE q.queue_type = 'NORMAL_QUEUE' AND (m.msgid = ANY(p_ids) AND a.n > q.max_retries
        OR p_ids IS NULL AND m.state = 0 AND m.expire_at <= clock_timestamp())
      FOR UPDATE OF m SKIP LOCKED LOOP
    SELECT qid INTO x FROM ocisim.aq_queue
    WHERE owner = CASE WHEN position('.' in r.eq) > 0 THEN split_part(r.eq, '.', 1) ELSE r.owner END
      AND name = CASE WHEN position('.' in r.eq) > 0 THEN split_part(r.eq, '.', 2) ELSE r.eq END;
    IF FOUND AND r.consumer <> '' AND EXISTS (SELECT 1 FROM ocisim.aq_msg m WHERE m.msgid = r.msgid AND m.consumer = '') THEN
      DELETE FROM ocisim.aq_msg m WHERE m.msgid = r.msgid AND m.consumer = r.consumer; -- it lies there once, for nobody
    ELSIF FOUND THEN
      UPDATE ocisim.aq_msg SET qid = x, state = 3, consumer = '' WHERE msgid = r.msgid AND consumer = r.consumer;
    END IF;
  END LOOP;
  DELETE FROM ocisim.aq_attempt a WHERE p_ids IS NULL AND a.last < clock_timestamp() - interval '5 minutes'
    AND NOT EXISTS (SELECT 1 FROM ocisim.aq_msg m WHERE m.msgid = a.msgid);
  PERFORM pg_notify('ocisim_aq', '');
END $$;
