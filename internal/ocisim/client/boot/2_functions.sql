-- Functions and operators of SQL.

-- The clock is the real one, not the start of the transaction; a test may set
-- it wrong.
CREATE TABLE ocisim.clock (ahead interval);
INSERT INTO ocisim.clock VALUES ('0');
CREATE FUNCTION ocisim.systimestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS
$$ SELECT pg_catalog.clock_timestamp() + c.ahead FROM ocisim.clock c $$;
CREATE FUNCTION ocisim.sysdate() RETURNS timestamp(0) LANGUAGE sql VOLATILE AS
$$ SELECT date_trunc('second', pg_catalog.clock_timestamp()::timestamp) $$;
CREATE FUNCTION ocisim.ora_user() RETURNS varchar LANGUAGE sql STABLE AS
$$ SELECT upper(current_user)::varchar $$;
CREATE FUNCTION ocisim.sessiontimezone() RETURNS varchar LANGUAGE sql STABLE AS $$
  SELECT (CASE WHEN extract(timezone FROM now()) < 0 THEN '-' ELSE '+' END
    || pg_catalog.to_char(pg_catalog.div(abs(extract(timezone FROM now())), 3600), 'FM00') || ':'
    || pg_catalog.to_char(mod(pg_catalog.div(abs(extract(timezone FROM now())), 60), 60), 'FM00'))::varchar $$;
CREATE FUNCTION ocisim.sys_extract_utc(timestamptz) RETURNS timestamp LANGUAGE sql IMMUTABLE AS
$$ SELECT $1 AT TIME ZONE 'UTC' $$;
CREATE FUNCTION ocisim.from_tz(timestamp, text) RETURNS timestamptz LANGUAGE sql STABLE AS -- PostgreSQL's offsets count westward
$$ SELECT CASE WHEN $2 ~ '^[+-]' THEN $1 AT TIME ZONE $2::interval ELSE $1 AT TIME ZONE $2 END $$;
CREATE FUNCTION ocisim.trunc(timestamp) RETURNS timestamp LANGUAGE sql IMMUTABLE AS $$ SELECT date_trunc('day', $1) $$;
CREATE FUNCTION ocisim.trunc(timestamptz) RETURNS timestamp LANGUAGE sql STABLE AS
$$ SELECT date_trunc('day', $1::timestamp) $$;
CREATE FUNCTION ocisim.numtodsinterval(numeric, text) RETURNS interval LANGUAGE sql IMMUTABLE AS
$$ SELECT $1::float8 * ('1 ' || lower($2))::interval $$;
CREATE FUNCTION ocisim.numtodsinterval(float8, text) RETURNS interval LANGUAGE sql IMMUTABLE AS
$$ SELECT $1 * ('1 ' || lower($2))::interval $$;

CREATE FUNCTION ocisim.to_char(timestamptz, text) RETURNS varchar LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN lower($2) IN ('tzr', 'tzh:tzm') THEN ocisim.sessiontimezone()
    ELSE pg_catalog.to_char($1, regexp_replace(replace($2, '"T"', '"T"'), 'FF[0-9]?', 'US'))::varchar END $$;
CREATE FUNCTION ocisim.to_char(timestamp, text) RETURNS varchar LANGUAGE sql STABLE AS
$$ SELECT pg_catalog.to_char($1, regexp_replace($2, 'FF[0-9]?', 'US'))::varchar $$;
CREATE FUNCTION ocisim.to_char(timestamptz, text, text) RETURNS varchar LANGUAGE sql STABLE AS $$ SELECT ocisim.to_char($1, $2) $$;
CREATE FUNCTION ocisim.to_char(timestamp, text, text) RETURNS varchar LANGUAGE sql STABLE AS $$ SELECT ocisim.to_char($1, $2) $$;
CREATE FUNCTION ocisim.to_char(numeric) RETURNS varchar LANGUAGE sql IMMUTABLE AS $$ SELECT $1::varchar $$;
CREATE FUNCTION ocisim.to_char(text) RETURNS varchar LANGUAGE sql IMMUTABLE AS $$ SELECT $1::varchar $$;
CREATE FUNCTION ocisim.to_number(text) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$ SELECT $1::numeric $$;
CREATE FUNCTION ocisim.to_clob(text) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT $1 $$;
CREATE FUNCTION ocisim.to_blob(bytea) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$ SELECT $1 $$;
CREATE FUNCTION ocisim.empty_blob() RETURNS bytea LANGUAGE sql IMMUTABLE AS $$ SELECT ''::bytea $$;
CREATE FUNCTION ocisim.empty_clob() RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT ''::text $$;
CREATE FUNCTION ocisim.hextoraw(text) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$ SELECT decode($1, 'hex') $$;
CREATE FUNCTION ocisim.rawtohex(bytea) RETURNS varchar LANGUAGE sql IMMUTABLE AS
$$ SELECT upper(encode($1, 'hex'))::varchar $$;
CREATE FUNCTION ocisim.standard_hash(text, text) RETURNS bytea LANGUAGE sql IMMUTABLE AS
$$ SELECT CASE upper($2) WHEN 'SHA256' THEN sha256(convert_to($1, 'UTF8')) WHEN 'SHA512' THEN sha512(convert_to($1, 'UTF8')) END $$;
CREATE FUNCTION ocisim.sys_guid() RETURNS bytea LANGUAGE sql VOLATILE AS
$$ SELECT decode(replace(gen_random_uuid()::text, '-', ''), 'hex') $$;

-- JSON_VALUE of a BLOB that holds JSON; what is none has no value, as by default.
CREATE FUNCTION ocisim.json_value(bytea, text) RETURNS varchar LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN nullif(jsonb_path_query_first(convert_from($1, 'UTF8')::jsonb, $2::jsonpath) #>> '{}', '')::varchar;
EXCEPTION WHEN data_exception OR invalid_text_representation THEN
  RETURN NULL;
END $$;

-- JSON_QUERY of a BLOB: an object or array, and nothing of a scalar or of what is no JSON, as by default.
CREATE FUNCTION ocisim.json_query(bytea, text) RETURNS ocisim.clob LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN (SELECT q.v::text::ocisim.clob FROM jsonb_path_query_first(convert_from($1, 'UTF8')::jsonb, $2::jsonpath) q (v)
    WHERE jsonb_typeof(q.v) IN ('object', 'array'));
EXCEPTION WHEN data_exception OR invalid_text_representation THEN
  RETURN NULL;
END $$;

-- JSON_QUERY ... WITH WRAPPER: an array of all that the path finds, and nothing where it finds nothing.
CREATE FUNCTION ocisim.json_query(bytea, text, boolean) RETURNS ocisim.clob LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN nullif(jsonb_path_query_array(convert_from($1, 'UTF8')::jsonb, $2::jsonpath), '[]')::text::ocisim.clob;
EXCEPTION WHEN data_exception OR invalid_text_representation THEN
  RETURN NULL;
END $$;

CREATE FUNCTION ocisim.instr(text, text) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$ SELECT strpos($1, $2)::numeric $$;
CREATE FUNCTION ocisim.nls_charset_id(text) RETURNS numeric LANGUAGE sql IMMUTABLE AS
$$ SELECT CASE upper($1) WHEN 'AL32UTF8' THEN 873 END::numeric $$;
CREATE FUNCTION ocisim.lengthb(text) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$ SELECT octet_length($1)::numeric $$;
CREATE FUNCTION ocisim.nvl2(text, text, text) RETURNS text LANGUAGE sql IMMUTABLE AS
$$ SELECT CASE WHEN $1 IS NOT NULL THEN $2 ELSE $3 END $$;
CREATE FUNCTION ocisim.regexp_replace(text, text) RETURNS text LANGUAGE sql IMMUTABLE AS
$$ SELECT pg_catalog.regexp_replace($1, $2, '', 'g') $$;
CREATE FUNCTION ocisim.regexp_like(text, text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$ SELECT $1 ~ $2 $$;
CREATE FUNCTION ocisim.regexp_like(text, text, text) RETURNS boolean LANGUAGE sql IMMUTABLE AS
$$ SELECT CASE WHEN $3 = 'i' THEN $1 ~* $2 ELSE $1 ~ $2 END $$;
CREATE FUNCTION ocisim.substr(text, numeric) RETURNS varchar LANGUAGE sql IMMUTABLE AS $$
  SELECT nullif(CASE WHEN $2 < 0 THEN pg_catalog.right($1, -$2::int)
    ELSE pg_catalog.substr($1, greatest($2::int, 1)) END, '')::varchar $$;
CREATE FUNCTION ocisim.substr(text, numeric, numeric) RETURNS varchar LANGUAGE sql IMMUTABLE AS $$
  SELECT nullif(CASE WHEN $2 < 0 THEN pg_catalog.left(pg_catalog.right($1, -$2::int), $3::int)
    ELSE pg_catalog.substr($1, greatest($2::int, 1), $3::int) END, '')::varchar $$;
CREATE FUNCTION ocisim.sys_context(text, text) RETURNS varchar LANGUAGE sql STABLE AS $$
  SELECT CASE upper($2)
    WHEN 'CURRENT_SCHEMA' THEN upper(current_schema()) WHEN 'CURRENT_USER' THEN upper(current_user)
    WHEN 'SESSION_USER' THEN upper(session_user) WHEN 'SID' THEN pg_backend_pid()::text
    WHEN 'SESSIONID' THEN pg_backend_pid()::text WHEN 'DB_NAME' THEN upper(current_database())
    WHEN 'CON_NAME' THEN upper(current_database()) WHEN 'SERVICE_NAME' THEN current_database()
    WHEN 'HOST' THEN 'localhost'
    WHEN 'MODULE' THEN nullif(current_setting('ocisim.module', true), '')
    WHEN 'ACTION' THEN nullif(current_setting('ocisim.action', true), '')
    WHEN 'CLIENT_IDENTIFIER' THEN nullif(current_setting('ocisim.client_identifier', true), '') END::varchar $$;

-- ||: NULL behaves as the empty string.
CREATE FUNCTION ocisim.cat(text, text) RETURNS text LANGUAGE sql IMMUTABLE AS
$$ SELECT nullif(concat($1, $2), '') $$;
CREATE FUNCTION ocisim.cat(text, anynonarray) RETURNS text LANGUAGE sql IMMUTABLE AS
$$ SELECT nullif(concat($1, $2::text), '') $$;
CREATE FUNCTION ocisim.cat(anynonarray, text) RETURNS text LANGUAGE sql IMMUTABLE AS
$$ SELECT nullif(concat($1::text, $2), '') $$;
CREATE OPERATOR ocisim.|| (FUNCTION = ocisim.cat, LEFTARG = text, RIGHTARG = text);
CREATE OPERATOR ocisim.|| (FUNCTION = ocisim.cat, LEFTARG = text, RIGHTARG = anynonarray);
CREATE OPERATOR ocisim.|| (FUNCTION = ocisim.cat, LEFTARG = anynonarray, RIGHTARG = text);

-- NUMBER / NUMBER is never an integer division.
CREATE FUNCTION ocisim.div(int4, int4) RETURNS numeric LANGUAGE sql IMMUTABLE AS 'SELECT $1::numeric / $2::numeric';
CREATE FUNCTION ocisim.div(int8, int8) RETURNS numeric LANGUAGE sql IMMUTABLE AS 'SELECT $1::numeric / $2::numeric';
CREATE FUNCTION ocisim.div(int4, int8) RETURNS numeric LANGUAGE sql IMMUTABLE AS 'SELECT $1::numeric / $2::numeric';
CREATE FUNCTION ocisim.div(int8, int4) RETURNS numeric LANGUAGE sql IMMUTABLE AS 'SELECT $1::numeric / $2::numeric';
CREATE OPERATOR ocisim./ (FUNCTION = ocisim.div, LEFTARG = int4, RIGHTARG = int4);
CREATE OPERATOR ocisim./ (FUNCTION = ocisim.div, LEFTARG = int8, RIGHTARG = int8);
CREATE OPERATOR ocisim./ (FUNCTION = ocisim.div, LEFTARG = int4, RIGHTARG = int8);
CREATE OPERATOR ocisim./ (FUNCTION = ocisim.div, LEFTARG = int8, RIGHTARG = int4);

-- A number added to a date counts days.
CREATE FUNCTION ocisim.add_days(timestamp, numeric) RETURNS timestamp LANGUAGE sql IMMUTABLE AS
$$ SELECT $1 + $2::float8 * interval '1 day' $$;
CREATE FUNCTION ocisim.add_days(timestamptz, numeric) RETURNS timestamptz LANGUAGE sql STABLE AS
$$ SELECT $1 + $2::float8 * interval '24 hours' $$;
CREATE FUNCTION ocisim.sub_days(timestamp, numeric) RETURNS timestamp LANGUAGE sql IMMUTABLE AS
$$ SELECT $1 - $2::float8 * interval '1 day' $$;
CREATE FUNCTION ocisim.sub_days(timestamptz, numeric) RETURNS timestamptz LANGUAGE sql STABLE AS
$$ SELECT $1 - $2::float8 * interval '24 hours' $$;
CREATE OPERATOR ocisim.+ (FUNCTION = ocisim.add_days, LEFTARG = timestamp, RIGHTARG = numeric);
CREATE OPERATOR ocisim.+ (FUNCTION = ocisim.add_days, LEFTARG = timestamptz, RIGHTARG = numeric);
CREATE OPERATOR ocisim.- (FUNCTION = ocisim.sub_days, LEFTARG = timestamp, RIGHTARG = numeric);
CREATE OPERATOR ocisim.- (FUNCTION = ocisim.sub_days, LEFTARG = timestamptz, RIGHTARG = numeric);

-- Statistics that the library publishes as settings of the session.
CREATE FUNCTION ocisim.stat(text) RETURNS numeric LANGUAGE sql STABLE AS
$$ SELECT coalesce(nullif(current_setting('ocisim.' || $1, true), ''), '0')::numeric $$;

-- JSON.
CREATE FUNCTION ocisim.json_parse(text) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$ SELECT $1::jsonb $$;
CREATE FUNCTION ocisim.json_is_object(jsonb, numeric) RETURNS boolean LANGUAGE sql IMMUTABLE AS
$$ SELECT jsonb_typeof($1 -> $2::int) = 'object' $$;
CREATE FUNCTION ocisim.json_string(jsonb, numeric) RETURNS varchar LANGUAGE sql IMMUTABLE AS
$$ SELECT ($1 ->> $2::int)::varchar $$;
CREATE FUNCTION ocisim.json_unique(json) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN CASE json_typeof($1)
    WHEN 'array' THEN NOT EXISTS (SELECT 1 FROM json_array_elements($1) a WHERE NOT ocisim.json_unique(a.value))
    WHEN 'object' THEN NOT EXISTS (SELECT 1 FROM json_each($1) m WHERE NOT ocisim.json_unique(m.value))
      AND NOT EXISTS (SELECT 1 FROM json_each($1) m GROUP BY m.key HAVING count(*) > 1)
    ELSE true END;
END $$;
CREATE FUNCTION ocisim.is_json(text, unique_keys boolean DEFAULT false) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN $1::json IS NOT NULL AND (NOT unique_keys OR ocisim.json_unique($1::json));
EXCEPTION WHEN data_exception THEN
  RETURN false;
END $$;
CREATE FUNCTION ocisim.json_array(text) RETURNS varchar LANGUAGE sql IMMUTABLE AS
$$ SELECT ('[' || to_json($1)::text || ']')::varchar $$;

-- PL/SQL.
CREATE FUNCTION ocisim.raise_application_error(code numeric, message text, keep boolean DEFAULT false) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  IF code NOT BETWEEN -20999 AND -20000 THEN
    RAISE EXCEPTION 'ORA-21000: error number argument to raise_application_error of % is out of range', code;
  END IF;
  RAISE EXCEPTION USING MESSAGE = format('ORA-%s: %s', abs(code), message);
END $$;
CREATE FUNCTION ocisim.no_nested_block() RETURNS void LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'ORA-20998: ocisim: a block in EXECUTE IMMEDIATE is not emulated'; END $$;
CREATE FUNCTION ocisim.sqlcode(state text, message text) RETURNS numeric LANGUAGE sql IMMUTABLE AS $$
  SELECT coalesce(-(substring(message FROM 'ORA-([0-9]+)'))::numeric, CASE state
    WHEN '00000' THEN 0 WHEN '23505' THEN -1 WHEN '23502' THEN -1400 WHEN '23503' THEN -2291 WHEN '23514' THEN -2290
    WHEN '42P07' THEN -955 WHEN '42710' THEN -955 WHEN '42723' THEN -955 WHEN '42P01' THEN -942 WHEN '42704' THEN -942
    WHEN '42701' THEN -1430 WHEN '42P16' THEN -2260 WHEN 'P0002' THEN 100 WHEN 'P0003' THEN -1422 WHEN '55P03' THEN -54
    WHEN '40P01' THEN -60 WHEN '22012' THEN -1476 WHEN '42501' THEN -1031 WHEN '42703' THEN -904 WHEN '22001' THEN -12899
    ELSE -20998 END) $$;
