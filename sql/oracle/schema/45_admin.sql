-- Aqueduct: the package of operators. Run as the owner of the schema, who needs
-- EXECUTE on DBMS_AQ by a direct grant.
-- Everything is part of the caller's own transaction, and has its effect when he
-- commits. Rights are the owner's; operators need EXECUTE, which they have with
-- the role AQUEDUCT_OPERATOR. Each call is a row of WF_AUDIT in that transaction. A
-- session whose NLS_COMP and NLS_SORT are both other than BINARY is refused (not_possible).
PROMPT Aqueduct: package AQUEDUCT_ADMIN

CREATE OR REPLACE PACKAGE AQUEDUCT_ADMIN AUTHID DEFINER AS

  -- Errors: those of AQUEDUCT_API.
  invalid_argument CONSTANT PLS_INTEGER := -20801;
  too_large        CONSTANT PLS_INTEGER := -20802;
  not_found        CONSTANT PLS_INTEGER := -20803;
  not_possible     CONSTANT PLS_INTEGER := -20804;

  -- Sends a dead letter to its queue again, its bytes unchanged, due at once and
  -- with no attempts.
  PROCEDURE replay(p_dead_letter_id IN VARCHAR2, p_reason IN VARCHAR2);

  -- Removes a dead letter for good, and settles the command that it announces
  -- where nobody performs it any more and nobody waits for its result. One whose
  -- command was sent anew, as it had been edited, is not possible to discard.
  PROCEDURE discard(p_dead_letter_id IN VARCHAR2, p_reason IN VARCHAR2);

  -- Deletes instances that have ended, with all that is kept of them: one, or
  -- those that ended before a moment, the oldest first, up to p_most. One with
  -- open commands stays. The result says how many.
  FUNCTION purge(
    p_reason           IN VARCHAR2,
    p_instance_id      IN VARCHAR2 DEFAULT NULL,
    p_ended_before_utc IN TIMESTAMP DEFAULT NULL,
    p_most             IN NUMBER DEFAULT 1000
  ) RETURN NUMBER;

  -- Deletes tokens that expired, or were revoked, before a moment that has passed,
  -- up to p_most. What somebody has locked stays. The result says how many.
  FUNCTION purge_tokens(p_reason IN VARCHAR2, p_over_before_utc IN TIMESTAMP, p_most IN NUMBER DEFAULT 1000) RETURN NUMBER;

  -- Deletes versions of policies in whose place a newer one was published before a
  -- moment, up to p_most. One stays while an instance of its lifecycle is kept that
  -- began before that, or within a day after it. The result says how many.
  FUNCTION purge_policies(p_reason IN VARCHAR2, p_replaced_before_utc IN TIMESTAMP, p_most IN NUMBER DEFAULT 1000) RETURN NUMBER;

  -- Deletes rows of the audit of before a moment, up to p_most, for the owner of the
  -- schema and for nobody else. One row says how many they were. The result does, too.
  FUNCTION purge_audit(p_reason IN VARCHAR2, p_before_utc IN TIMESTAMP, p_most IN NUMBER DEFAULT 1000) RETURN NUMBER;

  -- What the engine has to decide is a request: a signal to the instance, sent
  -- when the caller commits. A node decides it, ahead of what waits in the queue;
  -- the verdict is in WF_V_REQUESTS, by the id that is the result.

  -- Signals are kept from now on.
  FUNCTION suspend(p_instance_id IN VARCHAR2, p_reason IN VARCHAR2) RETURN VARCHAR2;

  -- Those that were kept are applied now.
  FUNCTION resume(p_instance_id IN VARCHAR2, p_reason IN VARCHAR2) RETURN VARCHAR2;

  -- Runs the failed task of a faulted instance again. Where it would send another
  -- request than the one before, of which nobody knows what became, p_effect says
  -- what to do: same sends that one again under its key, new the new one under a
  -- key of its own.
  FUNCTION retry(p_instance_id IN VARCHAR2, p_reason IN VARCHAR2, p_effect IN VARCHAR2 DEFAULT NULL) RETURN VARCHAR2;

  -- Ends an instance; nothing is compensated.
  FUNCTION cancel(p_instance_id IN VARCHAR2, p_reason IN VARCHAR2) RETURN VARCHAR2;

  -- Ends an instance once what it has done is compensated.
  FUNCTION compensate(p_instance_id IN VARCHAR2, p_reason IN VARCHAR2) RETURN VARCHAR2;

END AQUEDUCT_ADMIN;
/

CREATE OR REPLACE PACKAGE BODY AQUEDUCT_ADMIN AS

  c_bytes_max  CONSTANT PLS_INTEGER := 32000; -- of a message: what every peer can read
  c_id_max     CONSTANT PLS_INTEGER := 128;   -- bytes of an id
  c_reason_max CONSTANT PLS_INTEGER := 1000;  -- bytes of a reason
  c_purge_max  CONSTANT PLS_INTEGER := 10000; -- instances of one purge: they are undo of one transaction
  c_claim      CONSTANT VARCHAR2(14) := '{"claimCheck":'; -- begins what stands for a large body
  c_request    CONSTANT VARCHAR2(17) := 'operator-request-'; -- begins the id of a request: nodes know it by that
  c_first      CONSTANT PLS_INTEGER := 1; -- priority of what an operator asks
  c_usual      CONSTANT PLS_INTEGER := 5; -- of what is sent again
  c_note       CONSTANT VARCHAR2(16) := 'aqueduct1;0;;;;'; -- beside a body that says another time than the queue

  PROCEDURE fail(p_code IN PLS_INTEGER, p_text IN VARCHAR2) IS
  BEGIN
    RAISE_APPLICATION_ERROR(p_code, 'AQUEDUCT: ' || p_text);
  END fail;

  PROCEDURE check_text(p_name IN VARCHAR2, p_value IN VARCHAR2, p_most IN PLS_INTEGER) IS
  BEGIN
    IF p_value IS NULL THEN
      fail(invalid_argument, p_name || ' is missing');
    END IF;
    IF LENGTHB(p_value) > p_most THEN
      fail(too_large, p_name || ' has more than ' || p_most || ' bytes');
    END IF;
  END check_text;

  -- Refuses a session that does not compare texts byte by byte, by a logon trigger or the
  -- environment of its host: it would find, and delete, what has another id. The rights of
  -- the owner do not change that.
  PROCEDURE check_session IS
    v_settings NUMBER;
  BEGIN
    SELECT COUNT(*) INTO v_settings FROM NLS_SESSION_PARAMETERS N WHERE N.PARAMETER IN ('NLS_COMP', 'NLS_SORT') AND N.VALUE <> 'BINARY';
    IF v_settings = 2 THEN
      fail(not_possible, 'the session compares texts by NLS_SORT: ALTER SESSION SET NLS_COMP = BINARY');
    END IF;
  END check_session;

  FUNCTION now_utc RETURN TIMESTAMP IS
  BEGIN
    RETURN SYS_EXTRACT_UTC(SYSTIMESTAMP);
  END now_utc;

  PROCEDURE note(p_action IN VARCHAR2, p_object_id IN VARCHAR2, p_instance_id IN VARCHAR2, p_reason IN VARCHAR2) IS
    v_id   VARCHAR2(32) := LOWER(RAWTOHEX(SYS_GUID()));
    v_now  TIMESTAMP(6) := now_utc;
    v_user VARCHAR2(128) := SYS_CONTEXT('USERENV', 'SESSION_USER');
    v_who  VARCHAR2(64) := SYS_CONTEXT('USERENV', 'CLIENT_IDENTIFIER');
  BEGIN
    INSERT INTO WF_AUDIT (AUDIT_ID, OCCURRED_ON_UTC, ACTION, OBJECT_ID, INSTANCE_ID, USER_NAME, CLIENT_IDENTIFIER, REASON, KIND, VIA)
    VALUES (v_id, v_now, p_action, p_object_id, p_instance_id, v_user, v_who, p_reason, 'database', 'plsql');
  END note;

  PROCEDURE enqueue(p_queue IN VARCHAR2, p_bytes IN RAW, p_correlation IN VARCHAR2, p_priority IN PLS_INTEGER) IS
    v_options DBMS_AQ.ENQUEUE_OPTIONS_T;
    v_message DBMS_AQ.MESSAGE_PROPERTIES_T;
    v_id      RAW(16);
    v_queue   VARCHAR2(300) := $$PLSQL_UNIT_OWNER || '.WF_' || UPPER(p_queue) || '_Q';
  BEGIN
    v_options.visibility := DBMS_AQ.ON_COMMIT;
    v_message.priority := p_priority;
    v_message.expiration := DBMS_AQ.NEVER;
    v_message.correlation := p_correlation;
    DBMS_AQ.ENQUEUE(queue_name => v_queue, enqueue_options => v_options, message_properties => v_message, payload => p_bytes, msgid => v_id);
  END enqueue;

  -- Sends bytes to a queue. What no message can hold, or would be taken for a
  -- reference, is a row to which the message refers: see WF_PAYLOADS.
  PROCEDURE send(p_queue IN VARCHAR2, p_body IN BLOB, p_instance_id IN VARCHAR2, p_note IN VARCHAR2, p_priority IN NUMBER DEFAULT NULL) IS
    v_bytes       RAW(32767);
    v_claim       VARCHAR2(32);
    v_correlation VARCHAR2(128) := p_note;
    v_size        NUMBER := NVL(DBMS_LOB.GETLENGTH(p_body), 0);
    v_now         TIMESTAMP(6) := now_utc;
  BEGIN
    IF v_size = 0 THEN
      v_bytes := HEXTORAW('00');
      v_correlation := 'aqueduct1;0;;;;e';
    ELSE
      v_bytes := DBMS_LOB.SUBSTR(p_body, c_bytes_max, 1);
    END IF;
    IF v_size > c_bytes_max OR RAWTOHEX(DBMS_LOB.SUBSTR(p_body, LENGTH(c_claim), 1)) = RAWTOHEX(UTL_I18N.STRING_TO_RAW(c_claim, 'AL32UTF8')) THEN
      v_claim := LOWER(RAWTOHEX(SYS_GUID()));
      INSERT INTO WF_PAYLOADS (PAYLOAD_ID, INSTANCE_ID, CREATED_ON_UTC, DATA) VALUES (v_claim, p_instance_id, v_now, p_body);
      v_bytes := UTL_I18N.STRING_TO_RAW(c_claim || '{"id":"' || v_claim || '","bytes":' || v_size
        || CASE WHEN p_note IS NOT NULL THEN ',"note":"' || p_note || '"' END || '}}', 'AL32UTF8');
      v_correlation := v_claim;
    END IF;
    enqueue(p_queue, v_bytes, v_correlation, CASE WHEN p_priority BETWEEN 1 AND 9 THEN p_priority ELSE c_usual END);
  END send;

  PROCEDURE replay(p_dead_letter_id IN VARCHAR2, p_reason IN VARCHAR2) IS
    v_queue    WF_DEAD_LETTERS.QUEUE%TYPE;
    v_instance WF_DEAD_LETTERS.INSTANCE_ID%TYPE;
    v_body     BLOB;
    v_due      VARCHAR2(4000);
    v_what     WF_LETTER_EDITS.WHAT%TYPE;
    v_priority WF_DEAD_LETTERS.PRIORITY%TYPE;
  BEGIN
    check_session;
    check_text('p_dead_letter_id', p_dead_letter_id, c_id_max);
    check_text('p_reason', p_reason, c_reason_max);
    BEGIN
      SELECT L.QUEUE, L.INSTANCE_ID, L.ENVELOPE, L.PRIORITY, JSON_VALUE(L.ENVELOPE FORMAT JSON, '$.dueAtUtc')
      INTO v_queue, v_instance, v_body, v_priority, v_due
      FROM WF_DEAD_LETTERS L
      WHERE L.DEAD_LETTER_ID = p_dead_letter_id
      FOR UPDATE WAIT 5;
    EXCEPTION
      WHEN NO_DATA_FOUND THEN
        fail(not_found, 'dead letter ' || p_dead_letter_id || ' does not exist');
    END;
    IF v_queue IS NULL OR v_queue NOT IN ('signal', 'schedule', 'command') THEN
      fail(not_possible, 'dead letter ' || p_dead_letter_id || ' is of no queue');
    END IF;
    FOR E IN (SELECT D.WHAT, D.BODY, JSON_VALUE(D.BODY FORMAT JSON, '$.dueAtUtc') DUE FROM WF_LETTER_EDITS D
              WHERE D.DEAD_LETTER_ID = p_dead_letter_id
                AND D.EDIT_NO = (SELECT MAX(N.EDIT_NO) FROM WF_LETTER_EDITS N WHERE N.DEAD_LETTER_ID = p_dead_letter_id)) LOOP
      v_what := E.WHAT;
      IF E.WHAT = 'envelope' THEN
        v_body := E.BODY;
        v_due := E.DUE;
      END IF;
    END LOOP;
    IF v_what IN ('input', 'same-key') THEN
      fail(not_possible, 'dead letter ' || p_dead_letter_id || ' has another input for its command: a node sends that (engine-node dlq replay)');
    END IF;
    -- Sent first: v_body is a locator into the row, and cannot be relied on when that is gone.
    send(v_queue, v_body, v_instance, CASE WHEN v_due IS NOT NULL THEN c_note END, v_priority);
    DELETE FROM WF_DEAD_LETTERS WHERE DEAD_LETTER_ID = p_dead_letter_id;
    note(CASE v_what WHEN 'envelope' THEN 'replay-edited' ELSE 'replay' END, p_dead_letter_id, v_instance, p_reason);
  END replay;

  -- A moment as an envelope says it, in the form of a column.
  FUNCTION moment_of(p_text IN VARCHAR2) RETURN VARCHAR2 IS
    v_text VARCHAR2(4000) := RTRIM(p_text, 'Z');
  BEGIN
    IF INSTR(v_text, '.') = 0 THEN
      v_text := v_text || '.';
    END IF;
    RETURN RPAD(v_text, 26, '0');
  END moment_of;

  -- Settles a command that nobody performs or waits for. One that asks for an
  -- acknowledgement is announced again and again: only the last one counts.
  PROCEDURE forsake(p_instance_id IN VARCHAR2, p_position IN VARCHAR2, p_due IN VARCHAR2) IS
    v_target VARCHAR2(4000);
    v_token  VARCHAR2(4000);
    v_ack    VARCHAR2(4000);
    v_next   VARCHAR2(26);
    v_now    TIMESTAMP(6) := now_utc;
  BEGIN
    IF p_position IS NULL OR NOT REGEXP_LIKE(p_position, '^[1-9][0-9]{0,17}$') THEN
      RETURN;
    END IF;
    BEGIN
      SELECT JSON_VALUE(S.DATA FORMAT JSON, '$.target'), JSON_VALUE(S.DATA FORMAT JSON, '$.token'), JSON_VALUE(S.DATA FORMAT JSON, '$.ack'),
             TO_CHAR(S.NEXT_ATTEMPT_ON_UTC, 'YYYY-MM-DD"T"HH24:MI:SS.FF6', 'NLS_CALENDAR=GREGORIAN')
      INTO v_target, v_token, v_ack, v_next
      FROM WF_STREAM S
      WHERE S.INSTANCE_ID = p_instance_id AND S.POSITION = TO_NUMBER(p_position) AND S.PROCESSED = 0;
    EXCEPTION
      WHEN NO_DATA_FOUND THEN
        RETURN;
    END;
    IF v_target IS NULL OR v_token IS NOT NULL THEN
      RETURN;
    END IF;
    IF v_ack IS NOT NULL AND v_ack <> '0' AND NVL(moment_of(p_due), '-') <> NVL(v_next, '-') THEN
      RETURN;
    END IF;
    FOR L IN (SELECT S.POSITION FROM WF_STREAM S WHERE S.INSTANCE_ID = p_instance_id AND S.POSITION = TO_NUMBER(p_position) FOR UPDATE WAIT 5) LOOP
      NULL;
    END LOOP;
    UPDATE WF_STREAM
    SET PROCESSED = 1, PROCESSED_ON_UTC = v_now, GIVEN_UP_ON_UTC = v_now, CLAIMED_RUN = NULL, NEXT_ATTEMPT_ON_UTC = NULL
    WHERE INSTANCE_ID = p_instance_id AND POSITION = TO_NUMBER(p_position) AND PROCESSED = 0 AND CLAIMED_BY IS NULL;
  END forsake;

  -- Whether the command of a dead letter was sent anew with another input, by a replay
  -- that was cut off: its instance has that under an id, which nodes make in this way.
  FUNCTION sent_anew(p_instance_id IN VARCHAR2, p_dead_letter_id IN VARCHAR2) RETURN BOOLEAN IS
    v_id    VARCHAR2(200) := 'edited/' || p_dead_letter_id;
    v_found NUMBER;
  BEGIN
    IF LENGTHB(v_id) > c_id_max THEN
      SELECT '~' || LOWER(RAWTOHEX(STANDARD_HASH(v_id, 'SHA256'))) INTO v_id FROM DUAL;
    END IF;
    SELECT COUNT(*) INTO v_found
    FROM WF_STREAM S
    WHERE CASE WHEN S.SIGNAL_ID IS NOT NULL THEN S.INSTANCE_ID END = p_instance_id AND S.SIGNAL_ID = v_id;
    RETURN v_found > 0;
  END sent_anew;

  PROCEDURE discard(p_dead_letter_id IN VARCHAR2, p_reason IN VARCHAR2) IS
    v_queue    WF_DEAD_LETTERS.QUEUE%TYPE;
    v_instance WF_DEAD_LETTERS.INSTANCE_ID%TYPE;
    v_about    VARCHAR2(4000);
    v_position VARCHAR2(4000);
    v_due      VARCHAR2(4000);
  BEGIN
    check_session;
    check_text('p_dead_letter_id', p_dead_letter_id, c_id_max);
    check_text('p_reason', p_reason, c_reason_max);
    BEGIN
      SELECT L.QUEUE, L.INSTANCE_ID, JSON_VALUE(L.ENVELOPE FORMAT JSON, '$.workflowInstanceId'), JSON_VALUE(L.ENVELOPE FORMAT JSON, '$.payload.command'),
             JSON_VALUE(L.ENVELOPE FORMAT JSON, '$.dueAtUtc')
      INTO v_queue, v_instance, v_about, v_position, v_due
      FROM WF_DEAD_LETTERS L
      WHERE L.DEAD_LETTER_ID = p_dead_letter_id
      FOR UPDATE WAIT 5;
    EXCEPTION
      WHEN NO_DATA_FOUND THEN
        fail(not_found, 'dead letter ' || p_dead_letter_id || ' does not exist');
    END;
    IF v_queue = 'command' THEN
      forsake(v_about, v_position, v_due);
      -- Asked when the row of the command is taken: what sends it anew settles it in the same commit.
      IF sent_anew(v_about, p_dead_letter_id) THEN
        fail(not_possible, 'the command of dead letter ' || p_dead_letter_id || ' was sent anew, as it had been edited: a node removes the dead letter (engine-node dlq replay)');
      END IF;
    END IF;
    FOR E IN (SELECT D.EDIT_NO FROM WF_LETTER_EDITS D WHERE D.DEAD_LETTER_ID = p_dead_letter_id FOR UPDATE WAIT 5) LOOP
      NULL;
    END LOOP;
    DELETE FROM WF_DEAD_LETTERS WHERE DEAD_LETTER_ID = p_dead_letter_id;
    DELETE FROM WF_LETTER_EDITS WHERE DEAD_LETTER_ID = p_dead_letter_id;
    note('discard', p_dead_letter_id, v_instance, p_reason);
  END discard;

  -- Says why one instance cannot be purged.
  PROCEDURE check_ended(p_instance_id IN VARCHAR2) IS
    v_status WF_INSTANCES.STATUS%TYPE;
    v_open   NUMBER;
  BEGIN
    BEGIN
      SELECT I.STATUS INTO v_status FROM WF_INSTANCES I WHERE I.INSTANCE_ID = p_instance_id;
    EXCEPTION
      WHEN NO_DATA_FOUND THEN
        fail(not_found, 'instance ' || p_instance_id || ' does not exist');
    END;
    IF v_status NOT IN ('completed', 'cancelled', 'compensated') THEN
      fail(not_possible, 'instance ' || p_instance_id || ' is ' || v_status);
    END IF;
    SELECT COUNT(*) INTO v_open
    FROM WF_STREAM S
    WHERE CASE WHEN S.PROCESSED = 0 THEN S.INSTANCE_ID END = p_instance_id;
    IF v_open > 0 THEN
      fail(not_possible, 'instance ' || p_instance_id || ' has ' || v_open || ' open commands');
    END IF;
  END check_ended;

  -- Takes all rows of an instance, waiting five seconds for each: a delete waits for
  -- as long as somebody does not commit.
  PROCEDURE take(p_instance_id IN VARCHAR2) IS
  BEGIN
    FOR L IN (SELECT R.INSTANCE_ID FROM WF_RUNTIME_STATES R WHERE R.INSTANCE_ID = p_instance_id FOR UPDATE WAIT 5) LOOP
      NULL;
    END LOOP;
    FOR L IN (SELECT S.POSITION FROM WF_STREAM S WHERE S.INSTANCE_ID = p_instance_id FOR UPDATE WAIT 5) LOOP
      NULL;
    END LOOP;
    FOR L IN (SELECT E.EVENT_NO FROM WF_TASK_EVENTS E WHERE E.INSTANCE_ID = p_instance_id FOR UPDATE WAIT 5) LOOP
      NULL;
    END LOOP;
    FOR L IN (SELECT A.TASK_ID FROM WF_TASK_ACTORS A
              WHERE A.TASK_ID IN (SELECT T.TASK_ID FROM WF_TASKS T WHERE T.INSTANCE_ID = p_instance_id) FOR UPDATE WAIT 5) LOOP
      NULL;
    END LOOP;
    FOR L IN (SELECT T.TASK_ID FROM WF_TASKS T WHERE T.INSTANCE_ID = p_instance_id FOR UPDATE WAIT 5) LOOP
      NULL;
    END LOOP;
    FOR L IN (SELECT W.WAITING_TOKEN FROM WF_WAITS W WHERE W.INSTANCE_ID = p_instance_id FOR UPDATE WAIT 5) LOOP
      NULL;
    END LOOP;
    FOR L IN (SELECT A.NAME FROM WF_ATTRIBUTES A WHERE A.INSTANCE_ID = p_instance_id FOR UPDATE WAIT 5) LOOP
      NULL;
    END LOOP;
    FOR L IN (SELECT A.ACTIVITY_ID FROM WF_ACTIVITIES A WHERE A.INSTANCE_ID = p_instance_id FOR UPDATE WAIT 5) LOOP
      NULL;
    END LOOP;
    FOR L IN (SELECT E.EDIT_NO FROM WF_LETTER_EDITS E WHERE E.INSTANCE_ID = p_instance_id
              AND NOT EXISTS (SELECT 1 FROM WF_DEAD_LETTERS D WHERE D.DEAD_LETTER_ID = E.DEAD_LETTER_ID) FOR UPDATE WAIT 5) LOOP
      NULL;
    END LOOP;
    FOR L IN (SELECT Q.REQUEST_ID FROM WF_REQUESTS Q WHERE Q.INSTANCE_ID = p_instance_id FOR UPDATE WAIT 5) LOOP
      NULL;
    END LOOP;
    FOR L IN (SELECT I.INSTANCE_ID FROM WF_INSTANCES I WHERE I.INSTANCE_ID = p_instance_id FOR UPDATE WAIT 5) LOOP
      NULL;
    END LOOP;
  END take;

  -- The order is that of the nodes' own purge, so that the two do not lock each
  -- other out; who finds the snapshot gone has nothing left to do. A node may have
  -- deleted the instance since it was found, and somebody begun it anew under its id:
  -- whether it is over is asked again when its rows are taken.
  FUNCTION purged(p_instance_id IN VARCHAR2, p_reason IN VARCHAR2, p_ended_before_utc IN TIMESTAMP) RETURN NUMBER IS
    v_found NUMBER;
  BEGIN
    take(p_instance_id);
    SELECT COUNT(*) INTO v_found
    FROM WF_INSTANCES I
    WHERE I.INSTANCE_ID = p_instance_id AND I.STATUS IN ('completed', 'cancelled', 'compensated')
      AND (p_ended_before_utc IS NULL OR I.ENDED_ON_UTC < p_ended_before_utc)
      AND NOT EXISTS (SELECT 1 FROM WF_STREAM S WHERE CASE WHEN S.PROCESSED = 0 THEN S.INSTANCE_ID END = I.INSTANCE_ID);
    IF v_found = 0 THEN
      RETURN 0;
    END IF;
    DELETE FROM WF_RUNTIME_STATES WHERE INSTANCE_ID = p_instance_id;
    v_found := SQL%ROWCOUNT;
    DELETE FROM WF_STREAM WHERE INSTANCE_ID = p_instance_id;
    DELETE FROM WF_TASK_EVENTS WHERE INSTANCE_ID = p_instance_id;
    DELETE FROM WF_TASK_ACTORS A WHERE A.TASK_ID IN (SELECT T.TASK_ID FROM WF_TASKS T WHERE T.INSTANCE_ID = p_instance_id);
    DELETE FROM WF_TASKS WHERE INSTANCE_ID = p_instance_id;
    DELETE FROM WF_WAITS WHERE INSTANCE_ID = p_instance_id;
    DELETE FROM WF_ATTRIBUTES WHERE INSTANCE_ID = p_instance_id;
    DELETE FROM WF_ACTIVITIES WHERE INSTANCE_ID = p_instance_id;
    DELETE FROM WF_LETTER_EDITS E WHERE E.INSTANCE_ID = p_instance_id
      AND NOT EXISTS (SELECT 1 FROM WF_DEAD_LETTERS D WHERE D.DEAD_LETTER_ID = E.DEAD_LETTER_ID);
    DELETE FROM WF_REQUESTS WHERE INSTANCE_ID = p_instance_id;
    DELETE FROM WF_INSTANCES WHERE INSTANCE_ID = p_instance_id;
    IF v_found > 0 THEN
      note('purge', p_instance_id, p_instance_id, p_reason);
    END IF;
    RETURN v_found;
  END purged;

  FUNCTION purge(
    p_reason IN VARCHAR2, p_instance_id IN VARCHAR2 DEFAULT NULL, p_ended_before_utc IN TIMESTAMP DEFAULT NULL, p_most IN NUMBER DEFAULT 1000
  ) RETURN NUMBER IS
    v_count NUMBER := 0;
  BEGIN
    check_session;
    check_text('p_reason', p_reason, c_reason_max);
    IF p_instance_id IS NULL AND p_ended_before_utc IS NULL THEN
      fail(invalid_argument, 'p_instance_id is missing, or p_ended_before_utc');
    END IF;
    IF p_instance_id IS NOT NULL AND p_ended_before_utc IS NOT NULL THEN
      fail(invalid_argument, 'p_instance_id and p_ended_before_utc exclude each other');
    END IF;
    IF p_most IS NULL OR p_most < 1 OR p_most > c_purge_max THEN
      fail(invalid_argument, 'p_most is not a number from 1 to ' || c_purge_max);
    END IF;
    IF p_instance_id IS NOT NULL THEN
      check_text('p_instance_id', p_instance_id, c_id_max);
      check_ended(p_instance_id);
      RETURN purged(p_instance_id, p_reason, NULL);
    END IF;
    FOR V IN (SELECT I.INSTANCE_ID FROM WF_INSTANCES I
              WHERE I.ENDED_ON_UTC < p_ended_before_utc AND I.STATUS IN ('completed', 'cancelled', 'compensated')
                AND NOT EXISTS (SELECT 1 FROM WF_STREAM S WHERE CASE WHEN S.PROCESSED = 0 THEN S.INSTANCE_ID END = I.INSTANCE_ID)
                AND NOT (I.INSTANCE_ID LIKE 'schedule.%' AND EXISTS (SELECT 1 FROM WF_INSTANCES C
                         WHERE CASE WHEN C.ENDED_ON_UTC IS NULL THEN C.DEFINITION END = I.DEFINITION AND C.PARENT_ID LIKE 'schedule.%'
                           AND (C.PARENT_ID = I.INSTANCE_ID OR C.STARTED_ON_UTC IS NULL OR C.STARTED_ON_UTC - INTERVAL '1' DAY <= I.ENDED_ON_UTC)))
              ORDER BY I.ENDED_ON_UTC) LOOP
      EXIT WHEN v_count >= p_most;
      v_count := v_count + purged(V.INSTANCE_ID, p_reason, p_ended_before_utc);
    END LOOP;
    RETURN v_count;
  END purge;

  PROCEDURE check_purge(p_reason IN VARCHAR2, p_name IN VARCHAR2, p_before_utc IN TIMESTAMP, p_most IN NUMBER) IS
  BEGIN
    check_session;
    check_text('p_reason', p_reason, c_reason_max);
    IF p_before_utc IS NULL THEN
      fail(invalid_argument, p_name || ' is missing');
    END IF;
    IF p_most IS NULL OR p_most < 1 OR p_most > c_purge_max THEN
      fail(invalid_argument, 'p_most is not a number from 1 to ' || c_purge_max);
    END IF;
  END check_purge;

  FUNCTION purge_tokens(p_reason IN VARCHAR2, p_over_before_utc IN TIMESTAMP, p_most IN NUMBER DEFAULT 1000) RETURN NUMBER IS
    v_before TIMESTAMP(6);
    v_count  NUMBER := 0;
  BEGIN
    check_purge(p_reason, 'p_over_before_utc', p_over_before_utc, p_most);
    v_before := LEAST(p_over_before_utc, now_utc);
    FOR V IN (SELECT T.TOKEN_ID FROM WF_TOKENS T
              WHERE LEAST(T.EXPIRES_ON_UTC, NVL(T.REVOKED_ON_UTC, T.EXPIRES_ON_UTC)) < v_before
              FOR UPDATE SKIP LOCKED) LOOP
      EXIT WHEN v_count >= p_most;
      DELETE FROM WF_TOKENS WHERE TOKEN_ID = V.TOKEN_ID;
      v_count := v_count + 1;
      note('purge', V.TOKEN_ID, NULL, p_reason);
    END LOOP;
    RETURN v_count;
  END purge_tokens;

  FUNCTION purge_policies(p_reason IN VARCHAR2, p_replaced_before_utc IN TIMESTAMP, p_most IN NUMBER DEFAULT 1000) RETURN NUMBER IS
    v_count NUMBER := 0;
  BEGIN
    check_purge(p_reason, 'p_replaced_before_utc', p_replaced_before_utc, p_most);
    FOR V IN (SELECT P.NAME, P.VERSION FROM WF_DEFINITIONS P
              WHERE P.NAME LIKE 'policy:%'
                AND (SELECT MIN(N.PUBLISHED_ON_UTC) FROM WF_DEFINITIONS N WHERE N.NAME = P.NAME AND N.ORDINAL > P.ORDINAL) < p_replaced_before_utc
                AND NOT EXISTS (
                  SELECT 1 FROM WF_INSTANCES I
                  WHERE I.DEFINITION = SUBSTR(P.NAME, 8)
                    AND (I.STARTED_ON_UTC IS NULL OR I.STARTED_ON_UTC - INTERVAL '1' DAY <
                      (SELECT MIN(N.PUBLISHED_ON_UTC) FROM WF_DEFINITIONS N WHERE N.NAME = P.NAME AND N.ORDINAL > P.ORDINAL)))
              FOR UPDATE SKIP LOCKED) LOOP
      EXIT WHEN v_count >= p_most;
      DELETE FROM WF_DEFINITIONS WHERE NAME = V.NAME AND VERSION = V.VERSION;
      v_count := v_count + 1;
      note('purge', SUBSTR(V.NAME || '@' || V.VERSION, 1, 128), NULL, p_reason);
    END LOOP;
    RETURN v_count;
  END purge_policies;

  FUNCTION purge_audit(p_reason IN VARCHAR2, p_before_utc IN TIMESTAMP, p_most IN NUMBER DEFAULT 1000) RETURN NUMBER IS
    v_count NUMBER := 0;
    v_owner VARCHAR2(128) := $$PLSQL_UNIT_OWNER;
  BEGIN
    IF SYS_CONTEXT('USERENV', 'SESSION_USER') <> v_owner THEN
      fail(not_possible, 'only ' || v_owner || ' may delete from the audit');
    END IF;
    check_purge(p_reason, 'p_before_utc', p_before_utc, p_most);
    FOR V IN (SELECT A.AUDIT_ID FROM WF_AUDIT A WHERE A.OCCURRED_ON_UTC < p_before_utc FOR UPDATE SKIP LOCKED) LOOP
      EXIT WHEN v_count >= p_most;
      DELETE FROM WF_AUDIT WHERE AUDIT_ID = V.AUDIT_ID;
      v_count := v_count + 1;
    END LOOP;
    IF v_count > 0 THEN
      note('purge', 'audit', NULL, SUBSTR(v_count || ' rows: ' || p_reason, 1, c_reason_max));
    END IF;
    RETURN v_count;
  END purge_audit;

  -- The text as a JSON string.
  FUNCTION quoted(p_value IN VARCHAR2) RETURN VARCHAR2 IS
    v_array VARCHAR2(4000);
  BEGIN
    SELECT JSON_ARRAY(p_value RETURNING VARCHAR2(4000)) INTO v_array FROM DUAL;
    RETURN SUBSTR(v_array, 2, LENGTH(v_array) - 2);
  END quoted;

  FUNCTION ask(p_operation IN VARCHAR2, p_instance_id IN VARCHAR2, p_reason IN VARCHAR2) RETURN VARCHAR2 IS
    v_id    VARCHAR2(64) := c_request || LOWER(RAWTOHEX(SYS_GUID()));
    v_now   TIMESTAMP(6) := now_utc;
    v_user  VARCHAR2(128) := SYS_CONTEXT('USERENV', 'SESSION_USER');
    v_there NUMBER;
    v_text  VARCHAR2(8000);
  BEGIN
    check_session;
    check_text('p_instance_id', p_instance_id, c_id_max);
    check_text('p_reason', p_reason, c_reason_max);
    IF REGEXP_LIKE(p_reason, '[[:cntrl:]]') THEN
      fail(invalid_argument, 'p_reason holds a control character');
    END IF;
    SELECT COUNT(*) INTO v_there FROM WF_INSTANCES I WHERE I.INSTANCE_ID = p_instance_id;
    IF v_there = 0 THEN
      fail(not_found, 'instance ' || p_instance_id || ' does not exist');
    END IF;
    v_text := '{"signalId":"' || v_id || '","workflowInstanceId":' || quoted(p_instance_id)
      || ',"runtimeProvider":"aqueduct","signalType":"OperatorRequest","expectedVersion":0'
      || ',"occurredAtUtc":"' || TO_CHAR(v_now, 'YYYY-MM-DD"T"HH24:MI:SS.FF6"Z"', 'NLS_CALENDAR=GREGORIAN') || '","headers":{"actor":' || quoted(v_user)
      || '},"payload":{"operation":"' || p_operation || '","reason":' || quoted(p_reason) || '}}';
    INSERT INTO WF_REQUESTS (REQUEST_ID, INSTANCE_ID, OPERATION, ASKED_ON_UTC, VERDICT)
    VALUES (v_id, p_instance_id, p_operation, v_now, 'open');
    enqueue('signal', UTL_I18N.STRING_TO_RAW(v_text, 'AL32UTF8'), NULL, c_first);
    note(p_operation, v_id, p_instance_id, p_reason);
    RETURN v_id;
  END ask;

  FUNCTION suspend(p_instance_id IN VARCHAR2, p_reason IN VARCHAR2) RETURN VARCHAR2 IS
  BEGIN
    RETURN ask('suspend', p_instance_id, p_reason);
  END suspend;

  FUNCTION resume(p_instance_id IN VARCHAR2, p_reason IN VARCHAR2) RETURN VARCHAR2 IS
  BEGIN
    RETURN ask('resume', p_instance_id, p_reason);
  END resume;

  FUNCTION retry(p_instance_id IN VARCHAR2, p_reason IN VARCHAR2, p_effect IN VARCHAR2 DEFAULT NULL) RETURN VARCHAR2 IS
    v_operation VARCHAR2(32) := 'retry';
  BEGIN
    IF p_effect IS NOT NULL THEN
      IF p_effect NOT IN ('same', 'new') THEN
        fail(invalid_argument, 'p_effect is neither same nor new');
      END IF;
      v_operation := v_operation || '-' || p_effect;
    END IF;
    RETURN ask(v_operation, p_instance_id, p_reason);
  END retry;

  FUNCTION cancel(p_instance_id IN VARCHAR2, p_reason IN VARCHAR2) RETURN VARCHAR2 IS
  BEGIN
    RETURN ask('cancel', p_instance_id, p_reason);
  END cancel;

  FUNCTION compensate(p_instance_id IN VARCHAR2, p_reason IN VARCHAR2) RETURN VARCHAR2 IS
  BEGIN
    RETURN ask('compensate', p_instance_id, p_reason);
  END compensate;

END AQUEDUCT_ADMIN;
/
