-- Aqueduct: the package of applications. Run as the owner of the schema, who
-- needs EXECUTE on DBMS_AQ by a direct grant.
-- Every function is part of the caller's own transaction: nothing is sent until
-- he commits, and nothing when he rolls back. The result is the id of the
-- message. Rights are the owner's; applications need EXECUTE and nothing else:
--   GRANT EXECUTE ON AQUEDUCT_API TO application
PROMPT Aqueduct: package AQUEDUCT_API

CREATE OR REPLACE PACKAGE AQUEDUCT_API AUTHID DEFINER AS

  -- Errors: what is wrong with an argument, and which.
  invalid_argument CONSTANT PLS_INTEGER := -20801;
  too_large        CONSTANT PLS_INTEGER := -20802;
  not_found        CONSTANT PLS_INTEGER := -20803;
  not_possible     CONSTANT PLS_INTEGER := -20804;

  -- Tells an instance something: an event of a type, as its definition listens
  -- for it, with data that are any JSON. A signal id that the instance has seen
  -- before changes nothing; none makes a new one. Of all that comes to it with one
  -- dedupe key of the application the first counts, instead of their ids. With a
  -- due time the signal
  -- comes then, not before. With a sender and a sequence, which he counts from 1
  -- for the instance, his signals are applied in that order; one without a type
  -- and data takes its number and says nothing.
  FUNCTION signal(
    p_instance_id   IN VARCHAR2,
    p_type          IN VARCHAR2 DEFAULT NULL,
    p_data          IN CLOB DEFAULT 'null',
    p_waiting_token IN VARCHAR2 DEFAULT NULL,
    p_signal_id     IN VARCHAR2 DEFAULT NULL,
    p_due_at_utc    IN TIMESTAMP DEFAULT NULL,
    p_actor         IN VARCHAR2 DEFAULT NULL,
    p_sender        IN VARCHAR2 DEFAULT NULL,
    p_sequence      IN NUMBER DEFAULT NULL,
    p_dedupe_key    IN VARCHAR2 DEFAULT NULL
  ) RETURN RAW;

  -- A new id for an instance.
  FUNCTION new_id RETURN VARCHAR2;

  -- Starts an instance of a definition. The input is any JSON. A repeat with
  -- the same instance id, or the same definition, business key and start key,
  -- changes nothing. Who wants to know the instance gives it an id.
  -- With a type of signal the instance gets that event, in its first turn or,
  -- when it is there, at once; a repeat with the same signal id is applied once.
  -- A new instance that refuses its event does not begin. Sender and sequence
  -- are those of the event.
  FUNCTION start_instance(
    p_definition   IN VARCHAR2,
    p_instance_id  IN VARCHAR2 DEFAULT NULL,
    p_input        IN CLOB DEFAULT 'null',
    p_business_key IN VARCHAR2 DEFAULT NULL,
    p_start_key    IN VARCHAR2 DEFAULT NULL,
    p_version      IN VARCHAR2 DEFAULT NULL,
    p_actor        IN VARCHAR2 DEFAULT NULL,
    p_signal_type  IN VARCHAR2 DEFAULT NULL,
    p_signal_data  IN CLOB DEFAULT 'null',
    p_signal_id    IN VARCHAR2 DEFAULT NULL,
    p_sender       IN VARCHAR2 DEFAULT NULL,
    p_sequence     IN NUMBER DEFAULT NULL,
    p_ack_required IN BOOLEAN DEFAULT TRUE,
    p_dedupe_key   IN VARCHAR2 DEFAULT NULL
  ) RETURN RAW;

  -- Triggers an event, by its name or its code, of the instance that a
  -- definition has for a reference, the application's own key. The first event
  -- begins it. The payload is any JSON. A repeat with the same request id changes
  -- nothing. An event that the state refuses is a dead letter, and so is one that
  -- is for others: to roles of an event the user of the session is db:USER. Sender
  -- and sequence are as those of a signal. Where no acknowledgement is required,
  -- who is told of the transition has but to take it, and is not reminded.
  FUNCTION trigger_event(
    p_environment IN VARCHAR2,
    p_definition  IN VARCHAR2,
    p_reference   IN VARCHAR2,
    p_event       IN VARCHAR2,
    p_request_id  IN VARCHAR2 DEFAULT NULL,
    p_payload     IN CLOB DEFAULT 'null',
    p_actor       IN VARCHAR2 DEFAULT NULL,
    p_input       IN CLOB DEFAULT 'null',
    p_version     IN VARCHAR2 DEFAULT NULL,
    p_sender      IN VARCHAR2 DEFAULT NULL,
    p_sequence    IN NUMBER DEFAULT NULL,
    p_ack_required IN BOOLEAN DEFAULT TRUE,
    p_dedupe_key  IN VARCHAR2 DEFAULT NULL
  ) RETURN RAW;

  -- Acknowledges a command that asks for it, by its place in the stream of its
  -- instance: delivered, processed (with an output, any JSON), failed (with an
  -- error, {"type", "status", "title", "detail"}) or retry (after a delay). With a
  -- consumer it is refused when the command is another's. One that comes when the
  -- command is settled changes nothing. Who says so is the user of the session,
  -- unless there is an actor.
  FUNCTION acknowledge(
    p_instance_id   IN VARCHAR2,
    p_command       IN NUMBER,
    p_outcome       IN VARCHAR2,
    p_consumer      IN VARCHAR2 DEFAULT NULL,
    p_output        IN CLOB DEFAULT NULL,
    p_error         IN CLOB DEFAULT NULL,
    p_delay_seconds IN NUMBER DEFAULT NULL,
    p_actor         IN VARCHAR2 DEFAULT NULL,
    p_signal_id     IN VARCHAR2 DEFAULT NULL,
    p_dedupe_key    IN VARCHAR2 DEFAULT NULL
  ) RETURN RAW;

  -- Completes a human task that the user has claimed. The data is any JSON.
  FUNCTION complete_task(
    p_task_id IN VARCHAR2,
    p_user    IN VARCHAR2,
    p_outcome IN VARCHAR2 DEFAULT NULL,
    p_data    IN CLOB DEFAULT 'null'
  ) RETURN RAW;

  -- Notes something of an instance that is there, under an id of the caller's own
  -- within it: what it is, how it stands, and any JSON. No node looks there. A
  -- repeat changes nothing. Each of the three gives the version that it has then;
  -- who is noted is SESSION_USER, in the audit, too.
  FUNCTION attach_activity(
    p_instance_id IN VARCHAR2,
    p_activity_id IN VARCHAR2,
    p_name        IN VARCHAR2,
    p_status      IN VARCHAR2 DEFAULT NULL,
    p_data        IN CLOB DEFAULT 'null'
  ) RETURN NUMBER;

  -- Says how an activity stands now. When it has another version than the one that
  -- is given, or is frozen, nothing is done. What is null stays as it is; data 'null'
  -- are none.
  FUNCTION update_activity(
    p_instance_id IN VARCHAR2,
    p_activity_id IN VARCHAR2,
    p_version     IN NUMBER,
    p_status      IN VARCHAR2 DEFAULT NULL,
    p_data        IN CLOB DEFAULT NULL
  ) RETURN NUMBER;

  -- Freezes an activity: nobody changes it any more.
  FUNCTION freeze_activity(
    p_instance_id IN VARCHAR2,
    p_activity_id IN VARCHAR2,
    p_version     IN NUMBER
  ) RETURN NUMBER;

END AQUEDUCT_API;
/

CREATE OR REPLACE PACKAGE BODY AQUEDUCT_API AS

  c_envelope_max CONSTANT PLS_INTEGER := 1048576; -- bytes of an envelope
  c_bytes_max CONSTANT PLS_INTEGER := 32000; -- of a message: what every peer can read
  c_chars_max CONSTANT PLS_INTEGER := 8000;  -- that are surely so many bytes
  c_scan_max  CONSTANT PLS_INTEGER := 256;   -- that are looked at together: a place in a text is counted from its start
  c_depth_max CONSTANT PLS_INTEGER := 64;    -- nesting of an envelope
  c_id_max    CONSTANT PLS_INTEGER := 128;   -- bytes of an id
  c_key_max   CONSTANT PLS_INTEGER := 256;   -- bytes of a key
  c_name_max  CONSTANT PLS_INTEGER := 256;   -- characters of the name of a user or an outcome
  c_sequence_max CONSTANT NUMBER := 9223372036854775807; -- what every peer can read
  c_day       CONSTANT PLS_INTEGER := 86400; -- seconds
  c_delay_max CONSTANT NUMBER := 2147483647; -- seconds of a delay
  c_ack_delay_max CONSTANT PLS_INTEGER := 31536000; -- seconds until a delivery that a consumer asks for
  c_activities_max CONSTANT PLS_INTEGER := 1000; -- activities of an instance
  c_data_max    CONSTANT PLS_INTEGER := 16384;  -- bytes of the data of one
  c_status_max  CONSTANT PLS_INTEGER := 64;     -- characters of how one stands
  c_lifecycle_key CONSTANT VARCHAR2(20) := 'lifecycle'; -- start key of the one instance of a reference

  PROCEDURE fail(p_code IN PLS_INTEGER, p_text IN VARCHAR2) IS
  BEGIN
    RAISE_APPLICATION_ERROR(p_code, 'AQUEDUCT: ' || p_text);
  END fail;

  -- Whether two texts are the same, byte by byte: a session may compare without case.
  -- Nothing is the same as null.
  FUNCTION same(p_one IN VARCHAR2, p_other IN VARCHAR2) RETURN BOOLEAN IS
  BEGIN
    IF p_one IS NULL OR p_other IS NULL THEN
      RETURN FALSE;
    END IF;
    RETURN UTL_RAW.CAST_TO_RAW(p_one) = UTL_RAW.CAST_TO_RAW(p_other);
  END same;

  PROCEDURE check_id(p_name IN VARCHAR2, p_value IN VARCHAR2, p_required IN BOOLEAN) IS
  BEGIN
    IF p_value IS NULL THEN
      IF p_required THEN
        fail(invalid_argument, p_name || ' is missing');
      END IF;
      RETURN;
    END IF;
    IF LENGTHB(p_value) > c_id_max THEN
      fail(too_large, p_name || ' has more than ' || c_id_max || ' bytes');
    END IF;
    IF REGEXP_LIKE(p_value, '[[:space:][:cntrl:]]') THEN
      fail(invalid_argument, p_name || ' holds a space or a control character');
    END IF;
    IF p_value IN ('.', '..') THEN
      fail(invalid_argument, p_name || ' is a path, which no address can name');
    END IF;
  END check_id;

  PROCEDURE check_key(p_name IN VARCHAR2, p_value IN VARCHAR2) IS
  BEGIN
    IF LENGTHB(p_value) > c_key_max THEN
      fail(too_large, p_name || ' has more than ' || c_key_max || ' bytes');
    END IF;
  END check_key;

  PROCEDURE check_name(p_name IN VARCHAR2, p_value IN VARCHAR2) IS
  BEGIN
    IF LENGTH(p_value) > c_name_max THEN
      fail(too_large, p_name || ' has more than ' || c_name_max || ' characters');
    END IF;
  END check_name;

  -- A sender and a sequence stand together or not at all.
  PROCEDURE check_sequence(p_sender IN VARCHAR2, p_sequence IN NUMBER) IS
  BEGIN
    IF p_sender IS NULL AND p_sequence IS NULL THEN
      RETURN;
    END IF;
    check_id('p_sender', p_sender, TRUE);
    IF p_sequence IS NULL THEN
      fail(invalid_argument, 'p_sequence is missing');
    END IF;
    IF p_sequence < 1 OR p_sequence > c_sequence_max OR p_sequence <> TRUNC(p_sequence) THEN
      fail(invalid_argument, 'p_sequence is not a whole number from 1 to ' || c_sequence_max);
    END IF;
  END check_sequence;

  -- Refuses a text before it is parsed. A CLOB is counted in characters.
  PROCEDURE check_size(p_text IN CLOB) IS
  BEGIN
    IF DBMS_LOB.GETLENGTH(p_text) > c_envelope_max THEN
      fail(too_large, 'the envelope has more than ' || c_envelope_max || ' bytes');
    END IF;
  END check_size;

  -- The text as a JSON string, or null.
  FUNCTION quoted(p_value IN VARCHAR2) RETURN VARCHAR2 IS
    v_array VARCHAR2(4000);
  BEGIN
    IF p_value IS NULL THEN
      RETURN 'null';
    END IF;
    SELECT JSON_ARRAY(p_value RETURNING VARCHAR2(4000)) INTO v_array FROM DUAL;
    RETURN SUBSTR(v_array, 2, LENGTH(v_array) - 2);
  END quoted;

  -- One JSON value, strict: what a node could not read would become a dead
  -- letter after the commit.
  PROCEDURE check_json(p_name IN VARCHAR2, p_value IN CLOB, p_object IN BOOLEAN) IS
    v_list  JSON_ARRAY_T;
    v_text  CLOB;
    v_valid PLS_INTEGER;
  BEGIN
    IF p_value IS NULL THEN
      fail(invalid_argument, p_name || ' is missing');
    END IF;
    check_size(p_value);
    v_text := '[' || p_value || ']';
    SELECT CASE WHEN v_text IS JSON STRICT THEN 1 ELSE 0 END INTO v_valid FROM DUAL;
    IF v_valid = 0 THEN
      fail(invalid_argument, p_name || ' is not JSON');
    END IF;
    SELECT CASE WHEN v_text IS JSON STRICT WITH UNIQUE KEYS THEN 1 ELSE 0 END INTO v_valid FROM DUAL;
    IF v_valid = 0 THEN
      fail(invalid_argument, p_name || ' has a key twice in an object');
    END IF;
    v_list := JSON_ARRAY_T.PARSE(v_text);
    IF v_list.GET_SIZE <> 1 OR p_object AND NOT v_list.GET(0).IS_OBJECT THEN
      fail(invalid_argument, p_name || ' is not ' || CASE WHEN p_object THEN 'a JSON object' ELSE 'one JSON value' END);
    END IF;
  END check_json;

  FUNCTION new_id RETURN VARCHAR2 IS
    v_hex VARCHAR2(32) := LOWER(RAWTOHEX(SYS_GUID()));
  BEGIN
    RETURN SUBSTR(v_hex, 1, 8) || '-' || SUBSTR(v_hex, 9, 4) || '-' || SUBSTR(v_hex, 13, 4) || '-' || SUBSTR(v_hex, 17, 4) || '-' || SUBSTR(v_hex, 21);
  END new_id;

  FUNCTION moment(p_at_utc IN TIMESTAMP) RETURN VARCHAR2 IS
  BEGIN
    RETURN TO_CHAR(p_at_utc, 'YYYY-MM-DD"T"HH24:MI:SS.FF6"Z"', 'NLS_CALENDAR=GREGORIAN');
  END moment;

  FUNCTION now_utc RETURN TIMESTAMP IS
  BEGIN
    RETURN SYS_EXTRACT_UTC(SYSTIMESTAMP);
  END now_utc;

  -- Seconds until a moment, rounded up: no message is early. One that is due later
  -- than the longest delay of a message is put back by the node that receives it.
  FUNCTION seconds_until(p_at_utc IN TIMESTAMP) RETURN PLS_INTEGER IS
    v_left INTERVAL DAY(9) TO SECOND(6) := p_at_utc - now_utc;
  BEGIN
    RETURN LEAST(c_delay_max, GREATEST(0, CEIL(EXTRACT(DAY FROM v_left) * c_day + EXTRACT(HOUR FROM v_left) * 3600
      + EXTRACT(MINUTE FROM v_left) * 60 + EXTRACT(SECOND FROM v_left))));
  END seconds_until;

  -- The members of a sender and his sequence, or nothing.
  FUNCTION sequence_members(p_sender IN VARCHAR2, p_sequence IN NUMBER) RETURN VARCHAR2 IS
  BEGIN
    IF p_sequence IS NULL THEN
      RETURN NULL;
    END IF;
    RETURN ',"sender":' || quoted(p_sender) || ',"sequence":' || p_sequence;
  END sequence_members;

  -- The user who is logged in is who sends it: nobody else can say so. What the
  -- program says of him, an actor or CLIENT_IDENTIFIER, grants nothing.
  FUNCTION envelope(
    p_type IN VARCHAR2, p_signal_id IN VARCHAR2, p_instance_id IN VARCHAR2, p_token IN VARCHAR2,
    p_due_at_utc IN TIMESTAMP, p_actor IN VARCHAR2, p_payload IN CLOB, p_sender IN VARCHAR2 DEFAULT NULL, p_sequence IN NUMBER DEFAULT NULL
  ) RETURN CLOB IS
    v_headers VARCHAR2(4000);
    v_head    VARCHAR2(8000);
    v_user    VARCHAR2(128) := SYS_CONTEXT('USERENV', 'SESSION_USER');
  BEGIN
    IF p_actor IS NOT NULL THEN
      v_headers := '"actor":' || quoted(p_actor);
    END IF;
    v_head := '{"signalId":' || quoted(p_signal_id) || ',"workflowInstanceId":' || quoted(p_instance_id)
      || ',"runtimeProvider":"aqueduct","signalType":"' || p_type || '","expectedVersion":0'
      || CASE WHEN p_token IS NOT NULL THEN ',"waitingToken":' || quoted(p_token) END
      || sequence_members(p_sender, p_sequence)
      || ',"occurredAtUtc":"' || moment(now_utc) || '"'
      || CASE WHEN p_due_at_utc IS NOT NULL THEN ',"dueAtUtc":"' || moment(p_due_at_utc) || '"' END
      || CASE WHEN v_headers IS NOT NULL THEN ',"headers":{' || v_headers || '}' END
      || ',"principal":{"kind":"db","name":' || quoted(v_user) || ',"groups":[' || quoted('db:' || v_user) || ']}'
      || ',"payload":';
    RETURN v_head || p_payload || '}';
  END envelope;

  -- Refuses an envelope that no node reads, for its nesting. Only one with as many
  -- brackets is looked at sign by sign.
  PROCEDURE check_depth(p_envelope IN CLOB) IS
    v_length  PLS_INTEGER := DBMS_LOB.GETLENGTH(p_envelope);
    v_at      PLS_INTEGER := 1;
    v_depth   PLS_INTEGER := 0;
    v_part    VARCHAR2(1024);
    v_sign    VARCHAR2(4);
    v_text    BOOLEAN := FALSE;
    v_escaped BOOLEAN := FALSE;
  BEGIN
    IF REGEXP_COUNT(p_envelope, '[[{]') <= c_depth_max THEN
      RETURN;
    END IF;
    WHILE v_at <= v_length LOOP
      v_part := DBMS_LOB.SUBSTR(p_envelope, c_scan_max, v_at);
      FOR i IN 1 .. LENGTH(v_part) LOOP
        v_sign := SUBSTR(v_part, i, 1);
        IF v_escaped THEN
          v_escaped := FALSE;
        ELSIF v_text AND v_sign = '\' THEN
          v_escaped := TRUE;
        ELSIF v_sign = '"' THEN
          v_text := NOT v_text;
        ELSIF v_text THEN
          NULL;
        ELSIF v_sign IN ('[', '{') THEN
          v_depth := v_depth + 1;
          IF v_depth > c_depth_max THEN
            fail(too_large, 'the envelope is nested deeper than ' || c_depth_max || ' levels');
          END IF;
        ELSIF v_sign IN (']', '}') THEN
          v_depth := v_depth - 1;
        END IF;
      END LOOP;
      v_at := v_at + c_scan_max;
    END LOOP;
  END check_depth;

  -- Sends an envelope. One that no message can hold is a row, to which the
  -- message refers: see WF_PAYLOADS.
  FUNCTION send(p_envelope IN CLOB, p_instance_id IN VARCHAR2, p_due_at_utc IN TIMESTAMP) RETURN RAW IS
    v_options DBMS_AQ.ENQUEUE_OPTIONS_T;
    v_message DBMS_AQ.MESSAGE_PROPERTIES_T;
    v_bytes   RAW(32767);
    v_id      RAW(16);
    v_queue   VARCHAR2(300) := 'WF_SIGNAL_Q';
    v_body    BLOB;
    v_size    NUMBER;
    v_to      NUMBER := 1;
    v_from    NUMBER := 1;
    v_context NUMBER := DBMS_LOB.DEFAULT_LANG_CTX;
    v_warning NUMBER;
    v_claim   VARCHAR2(128);
    v_now     TIMESTAMP := now_utc;
  BEGIN
    check_depth(p_envelope);
    IF DBMS_LOB.GETLENGTH(p_envelope) <= c_chars_max THEN
      v_bytes := UTL_I18N.STRING_TO_RAW(DBMS_LOB.SUBSTR(p_envelope, c_chars_max, 1), 'AL32UTF8');
    ELSE
      DBMS_LOB.CREATETEMPORARY(v_body, TRUE, DBMS_LOB.CALL);
      DBMS_LOB.CONVERTTOBLOB(dest_lob => v_body, src_clob => p_envelope, amount => DBMS_LOB.LOBMAXSIZE, dest_offset => v_to,
        src_offset => v_from, blob_csid => NLS_CHARSET_ID('AL32UTF8'), lang_context => v_context, warning => v_warning);
      v_size := DBMS_LOB.GETLENGTH(v_body);
      IF v_size > c_envelope_max THEN
        fail(too_large, 'the envelope has more than ' || c_envelope_max || ' bytes');
      END IF;
      IF v_size <= c_bytes_max THEN
        v_bytes := DBMS_LOB.SUBSTR(v_body, c_bytes_max, 1);
      ELSE
        v_claim := new_id;
        INSERT INTO WF_PAYLOADS (PAYLOAD_ID, INSTANCE_ID, CREATED_ON_UTC, DATA) VALUES (v_claim, p_instance_id, v_now, v_body);
        v_bytes := UTL_I18N.STRING_TO_RAW('{"claimCheck":{"id":"' || v_claim || '","bytes":' || v_size || '}}', 'AL32UTF8');
        v_message.correlation := v_claim;
      END IF;
    END IF;
    v_options.visibility := DBMS_AQ.ON_COMMIT;
    v_message.priority := 5;
    v_message.expiration := DBMS_AQ.NEVER;
    IF p_due_at_utc IS NOT NULL THEN
      v_queue := 'WF_SCHEDULE_Q';
      v_message.delay := seconds_until(p_due_at_utc);
    END IF;
    v_queue := $$PLSQL_UNIT_OWNER || '.' || v_queue;
    DBMS_AQ.ENQUEUE(queue_name => v_queue, enqueue_options => v_options, message_properties => v_message, payload => v_bytes, msgid => v_id);
    RETURN v_id;
  END send;

  -- The id by which a signal is known: that of its dedupe key, its own, or a new one.
  -- A key that is too long for an id is digested, as nodes do it.
  FUNCTION known_by(p_signal_id IN VARCHAR2, p_dedupe_key IN VARCHAR2) RETURN VARCHAR2 IS
    v_id VARCHAR2(200);
  BEGIN
    check_id('p_signal_id', p_signal_id, FALSE);
    check_id('p_dedupe_key', p_dedupe_key, FALSE);
    IF same(SUBSTR(p_signal_id, 1, 4), 'key:') THEN
      fail(invalid_argument, 'the id begins as those of dedupe keys do; say p_dedupe_key');
    END IF;
    IF p_dedupe_key IS NULL THEN
      RETURN NVL(p_signal_id, new_id);
    END IF;
    v_id := 'key:' || p_dedupe_key;
    IF LENGTHB(v_id) > c_id_max THEN
      SELECT '~' || LOWER(RAWTOHEX(STANDARD_HASH(v_id, 'SHA256'))) INTO v_id FROM DUAL;
    END IF;
    RETURN v_id;
  END known_by;

  FUNCTION signal(
    p_instance_id IN VARCHAR2, p_type IN VARCHAR2 DEFAULT NULL, p_data IN CLOB DEFAULT 'null', p_waiting_token IN VARCHAR2 DEFAULT NULL,
    p_signal_id IN VARCHAR2 DEFAULT NULL, p_due_at_utc IN TIMESTAMP DEFAULT NULL, p_actor IN VARCHAR2 DEFAULT NULL,
    p_sender IN VARCHAR2 DEFAULT NULL, p_sequence IN NUMBER DEFAULT NULL, p_dedupe_key IN VARCHAR2 DEFAULT NULL
  ) RETURN RAW IS
    v_id    VARCHAR2(128);
    v_event VARCHAR2(4000);
    v_body  CLOB;
  BEGIN
    check_id('p_instance_id', p_instance_id, TRUE);
    check_id('p_waiting_token', p_waiting_token, FALSE);
    v_id := known_by(p_signal_id, p_dedupe_key);
    check_sequence(p_sender, p_sequence);
    IF p_type IS NULL AND p_sequence IS NULL THEN
      fail(invalid_argument, 'p_type is missing');
    END IF;
    IF p_waiting_token IS NOT NULL AND p_sequence IS NOT NULL THEN
      fail(invalid_argument, 'p_waiting_token and p_sequence exclude each other');
    END IF;
    check_key('p_type', p_type);
    check_key('p_actor', p_actor);
    check_json('p_data', p_data, FALSE);
    IF p_type IS NULL AND DBMS_LOB.SUBSTR(p_data, 5, 1) <> 'null' THEN
      fail(invalid_argument, 'p_data needs p_type');
    END IF;
    IF p_type IS NULL THEN
      v_body := '{}';
    ELSE
      v_event := '{"id":' || quoted(v_id) || ',"source":"plsql","type":' || quoted(p_type) || ',"data":';
      v_body := v_event || p_data || '}';
    END IF;
    RETURN send(envelope('ExternalSignal', v_id, p_instance_id, p_waiting_token, p_due_at_utc, p_actor, v_body, p_sender, p_sequence), p_instance_id, p_due_at_utc);
  END signal;

  FUNCTION start_instance(
    p_definition IN VARCHAR2, p_instance_id IN VARCHAR2 DEFAULT NULL, p_input IN CLOB DEFAULT 'null', p_business_key IN VARCHAR2 DEFAULT NULL,
    p_start_key IN VARCHAR2 DEFAULT NULL, p_version IN VARCHAR2 DEFAULT NULL, p_actor IN VARCHAR2 DEFAULT NULL,
    p_signal_type IN VARCHAR2 DEFAULT NULL, p_signal_data IN CLOB DEFAULT 'null', p_signal_id IN VARCHAR2 DEFAULT NULL,
    p_sender IN VARCHAR2 DEFAULT NULL, p_sequence IN NUMBER DEFAULT NULL, p_ack_required IN BOOLEAN DEFAULT TRUE,
    p_dedupe_key IN VARCHAR2 DEFAULT NULL
  ) RETURN RAW IS
    v_head VARCHAR2(8000);
    v_body CLOB;
    v_instance VARCHAR2(128);
    v_id VARCHAR2(128);
  BEGIN
    IF p_definition IS NULL THEN
      fail(invalid_argument, 'p_definition is missing');
    END IF;
    check_key('p_definition', p_definition);
    check_key('p_version', p_version);
    check_key('p_business_key', p_business_key);
    check_key('p_start_key', p_start_key);
    check_key('p_actor', p_actor);
    check_json('p_input', p_input, FALSE);
    check_id('p_instance_id', p_instance_id, FALSE);
    v_id := known_by(p_signal_id, p_dedupe_key);
    check_sequence(p_sender, p_sequence);
    v_instance := NVL(p_instance_id, new_id);
    v_head := '{"definition":' || quoted(p_definition)
      || CASE WHEN p_version IS NOT NULL THEN ',"version":' || quoted(p_version) END
      || CASE WHEN p_business_key IS NOT NULL THEN ',"businessKey":' || quoted(p_business_key) END
      || CASE WHEN p_start_key IS NOT NULL THEN ',"startKey":' || quoted(p_start_key) END
      || ',"input":';
    v_body := v_head || p_input;
    IF p_signal_type IS NOT NULL THEN
      check_key('p_signal_type', p_signal_type);
      check_json('p_signal_data', p_signal_data, FALSE);
      v_head := ',"signal":{"id":' || quoted(v_id) || ',"type":' || quoted(p_signal_type) || ',"data":';
      v_body := v_body || v_head || p_signal_data || sequence_members(p_sender, p_sequence)
        || CASE WHEN NOT p_ack_required THEN ',"ackRequired":false' END || '}';
    ELSIF p_signal_id IS NOT NULL OR p_dedupe_key IS NOT NULL OR p_sequence IS NOT NULL THEN
      fail(invalid_argument, 'p_signal_type is missing');
    END IF;
    RETURN send(envelope('StartRequest', 'start-' || RAWTOHEX(SYS_GUID()), v_instance, NULL, NULL, p_actor, v_body || '}'), v_instance, NULL);
  END start_instance;

  FUNCTION trigger_event(
    p_environment IN VARCHAR2, p_definition IN VARCHAR2, p_reference IN VARCHAR2, p_event IN VARCHAR2, p_request_id IN VARCHAR2 DEFAULT NULL,
    p_payload IN CLOB DEFAULT 'null', p_actor IN VARCHAR2 DEFAULT NULL, p_input IN CLOB DEFAULT 'null', p_version IN VARCHAR2 DEFAULT NULL,
    p_sender IN VARCHAR2 DEFAULT NULL, p_sequence IN NUMBER DEFAULT NULL, p_ack_required IN BOOLEAN DEFAULT TRUE,
    p_dedupe_key IN VARCHAR2 DEFAULT NULL
  ) RETURN RAW IS
    v_name     VARCHAR2(1000);
    v_instance WF_INSTANCES.INSTANCE_ID%TYPE;
  BEGIN
    IF p_environment IS NULL THEN
      fail(invalid_argument, 'p_environment is missing');
    END IF;
    IF p_definition IS NULL THEN
      fail(invalid_argument, 'p_definition is missing');
    END IF;
    IF p_reference IS NULL THEN
      fail(invalid_argument, 'p_reference is missing');
    END IF;
    IF p_event IS NULL THEN
      fail(invalid_argument, 'p_event is missing');
    END IF;
    check_key('p_environment', p_environment);
    check_key('p_definition', p_definition);
    check_key('p_reference', p_reference);
    check_key('p_event', p_event);
    check_id('p_request_id', p_request_id, FALSE);
    check_json('p_payload', p_payload, FALSE);
    v_name := p_environment || '/' || p_definition;
    -- The start key finds the instance, whatever id the request has; that of one
    -- that is there lets a dead letter name it.
    FOR I IN (SELECT N.INSTANCE_ID, N.BUSINESS_KEY, N.DEFINITION, N.START_KEY FROM WF_INSTANCES N
              WHERE N.BUSINESS_KEY = p_reference AND N.DEFINITION = v_name AND N.START_KEY = c_lifecycle_key) LOOP
      IF same(I.BUSINESS_KEY, p_reference) AND same(I.DEFINITION, v_name) AND same(I.START_KEY, c_lifecycle_key) THEN
        v_instance := I.INSTANCE_ID;
      END IF;
    END LOOP;
    RETURN start_instance(
      p_definition => v_name, p_instance_id => v_instance, p_input => p_input, p_business_key => p_reference, p_start_key => c_lifecycle_key,
      p_version => p_version, p_actor => p_actor, p_signal_type => p_event, p_signal_data => p_payload, p_signal_id => p_request_id,
      p_sender => p_sender, p_sequence => p_sequence, p_ack_required => p_ack_required, p_dedupe_key => p_dedupe_key);
  END trigger_event;

  FUNCTION acknowledge(
    p_instance_id IN VARCHAR2, p_command IN NUMBER, p_outcome IN VARCHAR2, p_consumer IN VARCHAR2 DEFAULT NULL, p_output IN CLOB DEFAULT NULL,
    p_error IN CLOB DEFAULT NULL, p_delay_seconds IN NUMBER DEFAULT NULL, p_actor IN VARCHAR2 DEFAULT NULL,
    p_signal_id IN VARCHAR2 DEFAULT NULL, p_dedupe_key IN VARCHAR2 DEFAULT NULL
  ) RETURN RAW IS
    v_id       VARCHAR2(128);
    v_body     CLOB;
    v_pointer  VARCHAR2(4000);
    v_within   VARCHAR2(64);
    v_consumer VARCHAR2(4000);
  BEGIN
    check_id('p_instance_id', p_instance_id, TRUE);
    v_id := known_by(p_signal_id, p_dedupe_key);
    check_key('p_actor', p_actor);
    check_key('p_consumer', p_consumer);
    IF p_command IS NULL OR p_command < 1 OR p_command <> TRUNC(p_command) OR p_command > c_sequence_max THEN
      fail(invalid_argument, 'p_command is not the position of a command');
    END IF;
    IF NOT (same(p_outcome, 'delivered') OR same(p_outcome, 'processed') OR same(p_outcome, 'failed') OR same(p_outcome, 'retry')) THEN
      fail(invalid_argument, 'p_outcome is none of delivered, processed, failed, retry');
    END IF;
    IF p_output IS NOT NULL AND p_outcome <> 'processed' THEN
      fail(invalid_argument, 'p_output is for processed alone');
    END IF;
    IF p_error IS NOT NULL AND p_outcome <> 'failed' THEN
      fail(invalid_argument, 'p_error is for failed alone');
    END IF;
    IF p_delay_seconds IS NOT NULL AND (p_outcome <> 'retry' OR p_delay_seconds < 0 OR p_delay_seconds > c_ack_delay_max) THEN
      fail(invalid_argument, 'p_delay_seconds is for retry alone, from 0 to ' || c_ack_delay_max);
    END IF;
    BEGIN
      SELECT JSON_VALUE(S.DATA FORMAT JSON, '$.ptr'), JSON_VALUE(S.DATA FORMAT JSON, '$.ack') INTO v_pointer, v_within
      FROM WF_STREAM S
      WHERE S.INSTANCE_ID = p_instance_id AND S.POSITION = p_command AND S.PROCESSED IS NOT NULL;
    EXCEPTION
      WHEN NO_DATA_FOUND THEN
        fail(not_found, 'instance ' || p_instance_id || ' has no command ' || p_command);
    END;
    IF v_within IS NULL OR SUBSTR(v_within, 1, 1) = '-' THEN -- below 0: it is but told
      fail(not_possible, 'command ' || p_command || ' asks for no acknowledgement');
    END IF;
    v_consumer := REGEXP_SUBSTR(v_pointer, '[^/]+$');
    IF p_consumer IS NOT NULL AND v_consumer IS NOT NULL AND NOT same(p_consumer, v_consumer) THEN
      fail(not_possible, 'command ' || p_command || ' is for ' || v_consumer || ', not for ' || p_consumer);
    END IF;
    v_body := '{"command":' || p_command || ',"outcome":"' || p_outcome || '"'
      || CASE WHEN p_consumer IS NOT NULL THEN ',"consumer":' || quoted(p_consumer) END
      || CASE WHEN p_delay_seconds IS NOT NULL THEN ',"delaySeconds":' || TRUNC(p_delay_seconds) END;
    IF p_output IS NOT NULL THEN
      check_json('p_output', p_output, FALSE);
      v_body := v_body || ',"output":' || p_output;
    END IF;
    IF p_error IS NOT NULL THEN
      check_json('p_error', p_error, TRUE);
      v_body := v_body || ',"error":' || p_error;
    END IF;
    RETURN send(envelope('AckRequest', v_id, p_instance_id, NULL, NULL, NVL(p_actor, SYS_CONTEXT('USERENV', 'SESSION_USER')), v_body || '}'), p_instance_id, NULL);
  END acknowledge;

  FUNCTION complete_task(
    p_task_id IN VARCHAR2, p_user IN VARCHAR2, p_outcome IN VARCHAR2 DEFAULT NULL, p_data IN CLOB DEFAULT 'null'
  ) RETURN RAW IS
    v_instance WF_TASKS.INSTANCE_ID%TYPE;
    v_token    WF_TASKS.WAITING_TOKEN%TYPE;
    v_status   WF_TASKS.STATUS%TYPE;
    v_assignee WF_TASKS.ASSIGNEE%TYPE;
    v_outcomes WF_TASKS.OUTCOMES%TYPE;
    v_head     VARCHAR2(8000);
    v_tail     VARCHAR2(8000);
    v_allowed  JSON_ARRAY_T;
    v_known    BOOLEAN := FALSE;
    v_signal   VARCHAR2(300);
  BEGIN
    check_id('p_task_id', p_task_id, TRUE);
    IF p_user IS NULL THEN
      fail(invalid_argument, 'p_user is missing');
    END IF;
    check_name('p_user', p_user);
    check_name('p_outcome', p_outcome);
    check_json('p_data', p_data, FALSE);
    BEGIN
      SELECT T.INSTANCE_ID, T.WAITING_TOKEN, T.STATUS, T.ASSIGNEE, T.OUTCOMES
      INTO v_instance, v_token, v_status, v_assignee, v_outcomes
      FROM WF_TASKS T
      WHERE T.TASK_ID = p_task_id;
    EXCEPTION
      WHEN NO_DATA_FOUND THEN
        fail(not_found, 'task ' || p_task_id || ' does not exist');
    END;
    IF v_status NOT IN ('ready', 'reserved') THEN
      fail(not_possible, 'task ' || p_task_id || ' is ' || v_status);
    END IF;
    IF NOT same(v_assignee, p_user) THEN
      fail(not_possible, 'task ' || p_task_id || ' is not claimed by ' || p_user);
    END IF;
    IF NVL(v_outcomes, '[]') <> '[]' THEN
      v_allowed := JSON_ARRAY_T.PARSE(v_outcomes);
      FOR i IN 0 .. v_allowed.GET_SIZE - 1 LOOP
        IF same(v_allowed.GET_STRING(i), p_outcome) THEN
          v_known := TRUE;
        END IF;
      END LOOP;
      IF NOT v_known THEN
        fail(invalid_argument, 'p_outcome is not one of ' || v_outcomes);
      END IF;
    END IF;
    -- The id that the answer would have by the API, so that the two are one.
    v_signal := 'task-' || p_task_id;
    IF LENGTHB(v_signal) > c_id_max THEN
      SELECT '~' || LOWER(RAWTOHEX(STANDARD_HASH(v_signal, 'SHA256'))) INTO v_signal FROM DUAL;
    END IF;
    v_head := '{"output":{"outcome":' || quoted(p_outcome) || ',"data":';
    v_tail := ',"completedBy":' || quoted(p_user) || ',"completedAtUtc":"' || moment(now_utc) || '","taskId":' || quoted(p_task_id) || '}}';
    RETURN send(envelope('TaskCompleted', v_signal, v_instance, v_token, NULL, p_user, v_head || p_data || v_tail), v_instance, NULL);
  END complete_task;

  -- The data of an activity as they are kept; null are none.
  FUNCTION data_of(p_data IN CLOB) RETURN BLOB IS
    v_body    BLOB;
    v_to      NUMBER := 1;
    v_from    NUMBER := 1;
    v_context NUMBER := DBMS_LOB.DEFAULT_LANG_CTX;
    v_warning NUMBER;
  BEGIN
    IF DBMS_LOB.GETLENGTH(p_data) > c_data_max THEN
      fail(too_large, 'p_data has more than ' || c_data_max || ' bytes');
    END IF;
    check_json('p_data', p_data, FALSE);
    check_depth(p_data);
    IF TRIM(DBMS_LOB.SUBSTR(p_data, 100, 1)) = 'null' THEN
      RETURN NULL;
    END IF;
    DBMS_LOB.CREATETEMPORARY(v_body, TRUE, DBMS_LOB.CALL);
    DBMS_LOB.CONVERTTOBLOB(dest_lob => v_body, src_clob => p_data, amount => DBMS_LOB.LOBMAXSIZE, dest_offset => v_to,
      src_offset => v_from, blob_csid => NLS_CHARSET_ID('AL32UTF8'), lang_context => v_context, warning => v_warning);
    IF DBMS_LOB.GETLENGTH(v_body) > c_data_max THEN
      fail(too_large, 'p_data has more than ' || c_data_max || ' bytes');
    END IF;
    RETURN v_body;
  END data_of;

  PROCEDURE check_status(p_status IN VARCHAR2) IS
  BEGIN
    IF LENGTH(p_status) > c_status_max THEN
      fail(too_large, 'p_status has more than ' || c_status_max || ' characters');
    END IF;
    IF REGEXP_LIKE(p_status, '[[:cntrl:]]') THEN
      fail(invalid_argument, 'p_status holds a control character');
    END IF;
  END check_status;

  PROCEDURE note_activity(p_action IN VARCHAR2, p_activity_id IN VARCHAR2, p_instance_id IN VARCHAR2) IS
    v_id   VARCHAR2(32) := LOWER(RAWTOHEX(SYS_GUID()));
    v_now  TIMESTAMP(6) := now_utc;
    v_user VARCHAR2(128) := SYS_CONTEXT('USERENV', 'SESSION_USER');
    v_who  VARCHAR2(64) := SYS_CONTEXT('USERENV', 'CLIENT_IDENTIFIER');
  BEGIN
    INSERT INTO WF_AUDIT (AUDIT_ID, OCCURRED_ON_UTC, ACTION, OBJECT_ID, INSTANCE_ID, USER_NAME, CLIENT_IDENTIFIER, KIND, VIA)
    VALUES (v_id, v_now, p_action, p_activity_id, p_instance_id, v_user, v_who, 'database', 'plsql');
  END note_activity;

  FUNCTION attach_activity(
    p_instance_id IN VARCHAR2, p_activity_id IN VARCHAR2, p_name IN VARCHAR2, p_status IN VARCHAR2 DEFAULT NULL, p_data IN CLOB DEFAULT 'null'
  ) RETURN NUMBER IS
    v_there   NUMBER;
    v_count   NUMBER;
    v_version NUMBER;
    v_body    BLOB;
    v_now     TIMESTAMP(6) := now_utc;
    v_user    VARCHAR2(128) := SYS_CONTEXT('USERENV', 'SESSION_USER');
  BEGIN
    check_id('p_instance_id', p_instance_id, TRUE);
    check_id('p_activity_id', p_activity_id, TRUE);
    IF p_name IS NULL THEN
      fail(invalid_argument, 'p_name is missing');
    END IF;
    check_name('p_name', p_name);
    check_status(p_status);
    v_body := data_of(p_data);
    SELECT COUNT(*) INTO v_there FROM WF_INSTANCES I WHERE I.INSTANCE_ID = p_instance_id;
    IF v_there = 0 THEN
      fail(not_found, 'instance ' || p_instance_id || ' does not exist');
    END IF;
    SELECT COUNT(*), MAX(CASE WHEN A.ACTIVITY_ID = p_activity_id THEN A.ACTIVITY_VERSION END) INTO v_count, v_version
    FROM WF_ACTIVITIES A
    WHERE A.INSTANCE_ID = p_instance_id;
    IF v_version IS NOT NULL THEN
      RETURN v_version;
    END IF;
    IF v_count >= c_activities_max THEN
      fail(not_possible, 'instance ' || p_instance_id || ' has ' || v_count || ' activities, as many as it may');
    END IF;
    BEGIN
      INSERT INTO WF_ACTIVITIES (INSTANCE_ID, ACTIVITY_ID, NAME, STATUS, ACTIVITY_VERSION, CREATED_ON_UTC, CREATED_BY, UPDATED_ON_UTC, UPDATED_BY, DATA)
      VALUES (p_instance_id, p_activity_id, p_name, p_status, 1, v_now, v_user, v_now, v_user, v_body);
    EXCEPTION
      WHEN DUP_VAL_ON_INDEX THEN
        SELECT A.ACTIVITY_VERSION INTO v_version
        FROM WF_ACTIVITIES A
        WHERE A.INSTANCE_ID = p_instance_id AND A.ACTIVITY_ID = p_activity_id;
        RETURN v_version;
    END;
    note_activity('attach-activity', p_activity_id, p_instance_id);
    RETURN 1;
  END attach_activity;

  -- Changes an activity that has a version and is not frozen: its status unless that is null, its data when they are
  -- given, or freezes it. It waits five seconds for a row that somebody has locked.
  FUNCTION change_activity(
    p_action IN VARCHAR2, p_instance_id IN VARCHAR2, p_activity_id IN VARCHAR2, p_version IN NUMBER, p_status IN VARCHAR2, p_given IN PLS_INTEGER, p_body IN BLOB
  ) RETURN NUMBER IS
    v_version NUMBER;
    v_frozen  TIMESTAMP(6);
    v_now     TIMESTAMP(6) := now_utc;
    v_user    VARCHAR2(128) := SYS_CONTEXT('USERENV', 'SESSION_USER');
  BEGIN
    check_id('p_instance_id', p_instance_id, TRUE);
    check_id('p_activity_id', p_activity_id, TRUE);
    IF p_version IS NULL THEN
      fail(invalid_argument, 'p_version is missing');
    END IF;
    BEGIN
      SELECT A.ACTIVITY_VERSION, A.FROZEN_ON_UTC INTO v_version, v_frozen
      FROM WF_ACTIVITIES A
      WHERE A.INSTANCE_ID = p_instance_id AND A.ACTIVITY_ID = p_activity_id
      FOR UPDATE WAIT 5;
    EXCEPTION
      WHEN NO_DATA_FOUND THEN
        fail(not_found, 'instance ' || p_instance_id || ' has no activity ' || p_activity_id);
    END;
    IF v_frozen IS NOT NULL THEN
      fail(not_possible, 'activity ' || p_activity_id || ' of ' || p_instance_id || ' is frozen since ' || moment(v_frozen));
    END IF;
    IF v_version <> p_version THEN
      fail(not_possible, 'activity ' || p_activity_id || ' of ' || p_instance_id || ' has version ' || v_version || ', not ' || p_version);
    END IF;
    IF p_given = 1 THEN
      UPDATE WF_ACTIVITIES SET DATA = p_body WHERE INSTANCE_ID = p_instance_id AND ACTIVITY_ID = p_activity_id;
    END IF;
    UPDATE WF_ACTIVITIES
    SET STATUS = NVL(p_status, STATUS), ACTIVITY_VERSION = p_version + 1, UPDATED_ON_UTC = v_now, UPDATED_BY = v_user,
        FROZEN_ON_UTC = CASE WHEN p_action = 'freeze-activity' THEN v_now END
    WHERE INSTANCE_ID = p_instance_id AND ACTIVITY_ID = p_activity_id;
    note_activity(p_action, p_activity_id, p_instance_id);
    RETURN p_version + 1;
  END change_activity;

  FUNCTION update_activity(
    p_instance_id IN VARCHAR2, p_activity_id IN VARCHAR2, p_version IN NUMBER, p_status IN VARCHAR2 DEFAULT NULL, p_data IN CLOB DEFAULT NULL
  ) RETURN NUMBER IS
    v_body  BLOB;
    v_given PLS_INTEGER := 0;
  BEGIN
    check_status(p_status);
    IF p_data IS NOT NULL THEN
      v_body := data_of(p_data);
      v_given := 1;
    END IF;
    RETURN change_activity('update-activity', p_instance_id, p_activity_id, p_version, p_status, v_given, v_body);
  END update_activity;

  FUNCTION freeze_activity(p_instance_id IN VARCHAR2, p_activity_id IN VARCHAR2, p_version IN NUMBER) RETURN NUMBER IS
  BEGIN
    RETURN change_activity('freeze-activity', p_instance_id, p_activity_id, p_version, NULL, 0, NULL);
  END freeze_activity;

END AQUEDUCT_API;
/
