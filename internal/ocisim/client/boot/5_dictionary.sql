-- The dictionary, as far as the project reads it.
CREATE TABLE ocisim.fault (client text, spec text);
CREATE TABLE ocisim.parameter (name varchar(80) PRIMARY KEY, value varchar(4000), isdefault varchar(9));
INSERT INTO ocisim.parameter VALUES ('aq_tm_processes', '1', 'TRUE'), ('processes', '300', 'TRUE'),
  ('sessions', '472', 'TRUE'), ('job_queue_processes', '20', 'TRUE'), ('open_cursors', '300', 'TRUE'), ('compatible', '19.0.0', 'TRUE'),
  ('cursor_sharing', 'EXACT', 'TRUE');

CREATE VIEW ocisim.v$parameter AS SELECT row_number() OVER (ORDER BY name)::numeric AS num, name, value, isdefault FROM ocisim.parameter;
CREATE VIEW ocisim.v$version AS
  SELECT 'Oracle Database 23ai Free Release 23.0.0.0.0 - ocisim stand-in on PostgreSQL'::varchar(160) AS banner,
    'Oracle Database 23ai Free Release 23.0.0.0.0 - ocisim stand-in on PostgreSQL'::varchar(160) AS banner_full;
CREATE VIEW ocisim.product_component_version AS
  SELECT 'Oracle Database 23ai Free (ocisim)'::varchar(160) AS product, '23.0.0.0.0'::varchar(160) AS version,
    '23.6.0.24.10'::varchar(160) AS version_full, 'stand-in'::varchar(160) AS status;
CREATE VIEW ocisim.v$instance AS
  SELECT 1::numeric AS instance_number, 'free'::varchar(16) AS instance_name, 'localhost'::varchar(64) AS host_name,
    '23.0.0.0.0'::varchar(17) AS version, 'OPEN'::varchar(12) AS status, pg_postmaster_start_time()::timestamp(0) AS startup_time;
CREATE TABLE ocisim.nls_parameter (parameter varchar(128) PRIMARY KEY, value varchar(64));
INSERT INTO ocisim.nls_parameter VALUES ('NLS_CHARACTERSET', 'AL32UTF8'), ('NLS_NCHAR_CHARACTERSET', 'AL16UTF16'),
  ('NLS_LENGTH_SEMANTICS', 'BYTE'), ('NLS_SORT', 'BINARY'), ('NLS_COMP', 'BINARY');
CREATE VIEW ocisim.nls_database_parameters AS SELECT parameter, value FROM ocisim.nls_parameter;
CREATE VIEW ocisim.nls_session_parameters AS SELECT parameter, value FROM ocisim.nls_parameter WHERE parameter NOT LIKE '%CHARACTERSET';
CREATE VIEW ocisim.v$statname AS
  SELECT 1::numeric AS "statistic#", 'SQL*Net roundtrips to/from client'::varchar AS name
  UNION ALL SELECT 2, 'ocisim libpq requests' UNION ALL SELECT 3, 'ocisim calls counted for op all';
CREATE VIEW ocisim.v$mystat AS
  SELECT pg_backend_pid()::numeric AS sid, 1::numeric AS "statistic#", ocisim.stat('roundtrips') AS value
  UNION ALL SELECT pg_backend_pid(), 2, ocisim.stat('requests')
  UNION ALL SELECT pg_backend_pid(), 3, ocisim.stat('counted');
CREATE VIEW ocisim.v$session AS
  SELECT pid::numeric AS sid, 1::numeric AS "serial#", upper(usename)::varchar(128) AS username,
    substr(application_name, 8)::varchar(84) AS program, (CASE state WHEN 'active' THEN 'ACTIVE' ELSE 'INACTIVE' END)::varchar(8) AS status,
    backend_start::timestamp(0) AS logon_time, 'USER'::varchar(10) AS type
  FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'ocisim:%';

CREATE VIEW ocisim.v$resource_limit AS
  SELECT p.name::varchar(30) AS resource_name,
    (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')::numeric AS current_utilization,
    lpad(p.value, 10)::varchar(10) AS limit_value
  FROM ocisim.parameter p WHERE p.name IN ('processes', 'sessions');

-- What a user sees of the dictionary: his own, and what he has a right on.
CREATE FUNCTION ocisim.is_mine(role text) RETURNS boolean LANGUAGE sql STABLE AS
$$ SELECT lower(role) = 'public' OR coalesce(pg_has_role(to_regrole(quote_ident(lower(role)))::oid, 'MEMBER'), false) $$;
CREATE FUNCTION ocisim.sees(c pg_class) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT pg_has_role(c.relowner, 'MEMBER') OR CASE c.relkind WHEN 'i' THEN false
    WHEN 'S' THEN has_sequence_privilege(c.oid, 'SELECT') ELSE has_table_privilege(c.oid, 'SELECT, INSERT, UPDATE, DELETE') END $$;
CREATE FUNCTION ocisim.sees_package(o text, n text) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT ocisim.is_mine(o) OR EXISTS (SELECT 1 FROM ocisim.package_grant g
    WHERE g.owner = o AND g.name = n AND ocisim.is_mine(g.grantee)) $$;
CREATE FUNCTION ocisim.sees_queue(q ocisim.aq_queue) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT ocisim.is_mine(q.owner) OR EXISTS (SELECT 1 FROM ocisim.aq_grant g WHERE g.qid = q.qid AND ocisim.is_mine(g.grantee)) $$;
-- Nothing becomes invalid by itself here: tests note what is.
CREATE TABLE ocisim.invalid (owner text, name text);

CREATE VIEW ocisim.session_roles AS
  SELECT p.privilege::varchar(128) AS role FROM ocisim.sys_priv p WHERE ocisim.is_mine(p.grantee)
    AND (p.privilege IN ('DBA', 'RESOURCE', 'CONNECT', 'AQ_ADMINISTRATOR_ROLE', 'AQ_USER_ROLE')
      OR EXISTS (SELECT 1 FROM ocisim.account a WHERE a.is_role AND upper(a.name) = p.privilege))
  UNION SELECT 'DBA' FROM pg_roles WHERE rolname = current_user AND rolsuper;
CREATE VIEW ocisim.session_privs AS
  SELECT p.privilege::varchar(40) FROM ocisim.sys_priv p WHERE ocisim.is_mine(p.grantee)
    AND p.privilege NOT IN (SELECT role FROM ocisim.session_roles)
  UNION SELECT v.privilege FROM (VALUES ('CREATE SESSION'), ('CREATE TABLE'), ('DROP ANY TABLE'), ('ALTER SYSTEM')) v (privilege)
    WHERE EXISTS (SELECT 1 FROM ocisim.session_roles WHERE role = 'DBA');
CREATE VIEW ocisim.user_sys_privs AS
  SELECT grantee::varchar(128) AS username, privilege::varchar(40), 'NO'::varchar(3) AS admin_option
  FROM ocisim.sys_priv WHERE grantee = upper(current_user);
CREATE VIEW ocisim.user_role_privs AS
  SELECT upper(current_user)::varchar(128) AS username, role AS granted_role FROM ocisim.session_roles;
CREATE VIEW ocisim.all_tab_privs AS
  SELECT upper(g.grantor::regrole::text)::varchar(128) AS grantor,
    (CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE upper(g.grantee::regrole::text) END)::varchar(128) AS grantee,
    upper(n.nspname)::varchar(128) AS table_schema, upper(c.relname)::varchar(128) AS table_name,
    g.privilege_type::varchar(40) AS privilege
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_roles r ON r.rolname = n.nspname,
    aclexplode(c.relacl) g
  WHERE g.grantee <> c.relowner AND NOT (c.relkind = 'S' AND g.privilege_type = 'USAGE')
    AND (g.grantee = 0 OR pg_has_role(g.grantee, 'MEMBER') OR pg_has_role(c.relowner, 'MEMBER'))
  UNION ALL SELECT upper(owner), upper(grantee), upper(owner), upper(name), 'EXECUTE' FROM ocisim.package_grant
    WHERE ocisim.is_mine(grantee) OR ocisim.is_mine(owner)
  UNION ALL SELECT q.owner, g.grantee, q.owner, q.name, g.privilege FROM ocisim.aq_grant g JOIN ocisim.aq_queue q ON q.qid = g.qid
    WHERE ocisim.is_mine(g.grantee) OR ocisim.is_mine(q.owner)
  UNION ALL SELECT 'SYS', CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE upper(g.grantee::regrole::text) END, 'SYS', upper(n.nspname), 'EXECUTE'
    FROM pg_namespace n, aclexplode(n.nspacl) g WHERE n.nspname ~ '^(dbms|utl)_' AND g.privilege_type = 'USAGE'
    AND g.grantee <> n.nspowner AND (g.grantee = 0 OR pg_has_role(g.grantee, 'MEMBER'));
CREATE VIEW ocisim.user_tab_privs AS
  SELECT grantee, table_schema AS owner, table_name, grantor, privilege FROM ocisim.all_tab_privs WHERE grantee = upper(current_user);

CREATE VIEW ocisim.all_users AS
  SELECT upper(n.nspname)::varchar(128) AS username FROM pg_namespace n JOIN pg_roles r ON r.rolname = n.nspname;
CREATE VIEW ocisim.user_users AS
  SELECT upper(current_user)::varchar(128) AS username, 'OPEN'::varchar(32) AS account_status;
CREATE VIEW ocisim.all_errors AS
  SELECT upper(e.owner)::varchar(128) AS owner, upper(e.name)::varchar(128) AS name, e.type::varchar(12) AS type,
    row_number() OVER (PARTITION BY e.owner, e.name, e.type)::numeric AS sequence, e.line::numeric AS line,
    e.at::numeric AS position, e.text::varchar(4000) AS text, 'ERROR'::varchar(9) AS attribute
  FROM ocisim.compile_error e WHERE ocisim.sees_package(e.owner, e.name);
CREATE VIEW ocisim.user_errors AS
  SELECT name, type, sequence, line, position, text, attribute FROM ocisim.all_errors WHERE owner = upper(current_schema());
CREATE VIEW ocisim.all_objects AS
  SELECT o.owner, o.object_name, o.object_type, (CASE WHEN EXISTS (SELECT 1 FROM ocisim.invalid i
    WHERE upper(i.owner) = o.owner AND upper(i.name) = o.object_name) OR EXISTS (SELECT 1 FROM ocisim.compile_error e
    WHERE upper(e.owner) = o.owner AND upper(e.name) = o.object_name AND e.type = o.object_type) THEN 'INVALID' ELSE 'VALID' END)::varchar(7) AS status
  FROM (SELECT upper(n.nspname)::varchar(128) AS owner, upper(c.relname)::varchar(128) AS object_name,
      (CASE c.relkind WHEN 'r' THEN 'TABLE' WHEN 'v' THEN 'VIEW' WHEN 'i' THEN 'INDEX' WHEN 'S' THEN 'SEQUENCE' END)::varchar(23) AS object_type
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_roles r ON r.rolname = n.nspname
    WHERE c.relkind IN ('r', 'v', 'i', 'S') AND ocisim.sees(c)
    UNION ALL SELECT upper(owner), upper(name), 'PACKAGE' FROM ocisim.package WHERE ocisim.sees_package(owner, name)
    UNION ALL SELECT upper(owner), upper(name), 'PACKAGE BODY' FROM ocisim.package WHERE has_body AND ocisim.is_mine(owner)
    UNION ALL SELECT q.owner, q.name, 'QUEUE' FROM ocisim.aq_queue q WHERE ocisim.sees_queue(q)) o;
CREATE VIEW ocisim.user_objects AS
  SELECT object_name, object_type, status FROM ocisim.all_objects WHERE owner = upper(current_schema());
CREATE VIEW ocisim.all_tables AS
  SELECT owner, object_name AS table_name FROM ocisim.all_objects WHERE object_type = 'TABLE';
CREATE VIEW ocisim.user_tables AS SELECT table_name FROM ocisim.all_tables WHERE owner = upper(current_schema());
CREATE VIEW ocisim.user_views AS SELECT object_name AS view_name FROM ocisim.user_objects WHERE object_type = 'VIEW';
CREATE VIEW ocisim.user_sequences AS
  SELECT object_name AS sequence_name FROM ocisim.user_objects WHERE object_type = 'SEQUENCE';
CREATE VIEW ocisim.user_indexes AS
  SELECT upper(i.relname)::varchar(128) AS index_name, upper(t.relname)::varchar(128) AS table_name,
    (CASE WHEN x.indisunique THEN 'UNIQUE' ELSE 'NONUNIQUE' END)::varchar(9) AS uniqueness
  FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class t ON t.oid = x.indrelid
  JOIN pg_namespace n ON n.oid = i.relnamespace WHERE n.nspname = current_schema();
CREATE VIEW ocisim.all_indexes AS
  SELECT upper(n.nspname)::varchar(128) AS owner, upper(i.relname)::varchar(128) AS index_name,
    upper(n.nspname)::varchar(128) AS table_owner, upper(t.relname)::varchar(128) AS table_name,
    (CASE WHEN x.indisvalid THEN 'VALID' ELSE 'UNUSABLE' END)::varchar(8) AS status
  FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_class t ON t.oid = x.indrelid
  JOIN pg_namespace n ON n.oid = i.relnamespace JOIN pg_roles r ON r.rolname = n.nspname WHERE ocisim.sees(t);
CREATE VIEW ocisim.user_constraints AS
  SELECT upper(c.conname)::varchar(128) AS constraint_name, upper(t.relname)::varchar(128) AS table_name,
    (CASE c.contype WHEN 'p' THEN 'P' WHEN 'u' THEN 'U' WHEN 'f' THEN 'R' ELSE 'C' END)::varchar(1) AS constraint_type
  FROM pg_constraint c JOIN pg_class t ON t.oid = c.conrelid JOIN pg_namespace n ON n.oid = t.relnamespace
  WHERE n.nspname = current_schema();
CREATE VIEW ocisim.all_tab_columns AS
  SELECT upper(n.nspname)::varchar(128) AS owner, upper(c.relname)::varchar(128) AS table_name,
    upper(a.attname)::varchar(128) AS column_name, a.attnum::numeric AS column_id,
    (CASE t.typname WHEN 'numeric' THEN 'NUMBER' WHEN 'int8' THEN 'NUMBER' WHEN 'varchar' THEN 'VARCHAR2'
      WHEN 'timestamptz' THEN 'TIMESTAMP(6) WITH TIME ZONE' WHEN 'float8' THEN 'BINARY_DOUBLE'
      WHEN 'timestamp' THEN CASE WHEN a.atttypmod = 0 THEN 'DATE' ELSE 'TIMESTAMP(6)' END
      ELSE upper(t.typname) END)::varchar(128) AS data_type,
    (CASE WHEN t.typname = 'varchar' THEN a.atttypmod - 4 END)::numeric AS char_length,
    (CASE WHEN t.typname = 'numeric' AND a.atttypmod >= 4 THEN ((a.atttypmod - 4) >> 16) & 65535 END)::numeric AS data_precision,
    (CASE WHEN a.attnotnull THEN 'N' ELSE 'Y' END)::varchar(1) AS nullable
  FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_type t ON t.oid = a.atttypid JOIN pg_roles r ON r.rolname = n.nspname
  WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'v');
CREATE VIEW ocisim.user_tab_columns AS
  SELECT table_name, column_name, column_id, data_type, char_length, data_precision, nullable
  FROM ocisim.all_tab_columns WHERE owner = upper(current_schema());
CREATE VIEW ocisim.user_tab_comments AS
  SELECT upper(c.relname)::varchar(128) AS table_name, (CASE c.relkind WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END)::varchar(11) AS table_type,
    obj_description(c.oid)::varchar(4000) AS comments
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = current_schema() AND c.relkind IN ('r', 'v');
CREATE VIEW ocisim.user_col_comments AS
  SELECT upper(c.relname)::varchar(128) AS table_name, upper(a.attname)::varchar(128) AS column_name,
    col_description(c.oid, a.attnum)::varchar(4000) AS comments
  FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = current_schema() AND a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'v');

CREATE VIEW ocisim.all_queues AS
  SELECT owner::varchar(128), name::varchar(128), queue_table::varchar(128), qid::numeric, queue_type::varchar(20),
    max_retries::numeric, retry_delay::numeric,
    (CASE WHEN enq THEN '  YES  ' ELSE '  NO  ' END)::varchar(7) AS enqueue_enabled,
    (CASE WHEN deq THEN '  YES  ' ELSE '  NO  ' END)::varchar(7) AS dequeue_enabled, retention::varchar(40)
  FROM ocisim.aq_queue q WHERE ocisim.sees_queue(q);
CREATE VIEW ocisim.dba_queues AS SELECT * FROM ocisim.all_queues;
CREATE VIEW ocisim.user_queues AS
  SELECT name, queue_table, qid, queue_type, max_retries, retry_delay, enqueue_enabled, dequeue_enabled, retention
  FROM ocisim.all_queues WHERE owner = upper(current_schema());
CREATE VIEW ocisim.all_queue_tables AS
  SELECT owner::varchar(128), name::varchar(128) AS queue_table, payload_type::varchar(7) AS type,
    (CASE WHEN by_priority THEN 'PRIORITY, ENQUEUE_TIME' ELSE 'ENQUEUE_TIME' END)::varchar(22) AS sort_order,
    (CASE WHEN multi THEN 'MULTIPLE' ELSE 'SINGLE' END)::varchar(8) AS recipients FROM ocisim.aq_queue_table;
CREATE VIEW ocisim.user_queue_tables AS
  SELECT queue_table, type, sort_order, recipients FROM ocisim.all_queue_tables WHERE owner = upper(current_schema());

-- Subprograms: of packages, by the heads of their specifications. Procedures that stand alone and synonyms of
-- packages are not emulated: tests note their heads, which the dictionary shows.
CREATE TABLE ocisim.standalone (owner text, head text);
CREATE TABLE ocisim.synonym (owner text, name text, table_owner text, table_name text, db_link text);
CREATE VIEW ocisim.all_synonyms AS
  SELECT upper(owner)::varchar(128) AS owner, upper(name)::varchar(128) AS synonym_name, upper(table_owner)::varchar(128) AS table_owner,
    upper(table_name)::varchar(128) AS table_name, db_link::varchar(128) AS db_link FROM ocisim.synonym;
CREATE VIEW ocisim.subprogram AS
  SELECT upper(p.owner)::varchar(128) AS owner, upper(p.name)::varchar(128) AS object_name,
    split_part(u.head, ' ', 2)::varchar(128) AS procedure_name, hashtext(p.owner || '.' || p.name)::numeric AS object_id,
    u.id::numeric AS subprogram_id, 'PACKAGE'::varchar(13) AS object_type, u.head
  FROM ocisim.package p, unnest(p.heads) WITH ORDINALITY AS u (head, id) WHERE ocisim.sees_package(p.owner, p.name)
  UNION ALL SELECT upper(p.owner), upper(p.name), NULL, hashtext(p.owner || '.' || p.name), 0, 'PACKAGE', ''
  FROM ocisim.package p WHERE ocisim.sees_package(p.owner, p.name)
  UNION ALL SELECT upper(s.owner), split_part(s.head, ' ', 2), NULL, hashtext(s.owner || '.' || s.head), 1, split_part(s.head, ' ', 1), s.head
  FROM ocisim.standalone s;
CREATE VIEW ocisim.all_procedures AS
  SELECT owner, object_name, procedure_name, object_id, subprogram_id, object_type FROM ocisim.subprogram;
CREATE FUNCTION ocisim.plsql_type(t text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN t LIKE '%\% ROWTYPE' THEN 'PL/SQL RECORD' WHEN t LIKE '%\% TYPE' THEN 'VARCHAR2' WHEN t LIKE '%. %TABLE' THEN 'PL/SQL TABLE'
    WHEN t LIKE '%. %' THEN 'PL/SQL RECORD' WHEN t = 'BOOLEAN' THEN 'PL/SQL BOOLEAN' WHEN t = 'PLS_INTEGER' THEN 'BINARY_INTEGER'
    WHEN t IN ('INTEGER', 'INT', 'SMALLINT', 'DECIMAL') THEN 'NUMBER' WHEN t = 'SYS_REFCURSOR' THEN 'REF CURSOR' ELSE t END $$;
CREATE VIEW ocisim.all_arguments AS
  SELECT s.owner, (CASE s.object_type WHEN 'PACKAGE' THEN s.object_name END)::varchar(128) AS package_name,
    coalesce(s.procedure_name, s.object_name)::varchar(128) AS object_name, s.object_id, s.subprogram_id,
    a.word[1]::varchar(128) AS argument_name, a.position::numeric AS position, 0::numeric AS data_level,
    (CASE replace(trim(coalesce(a.word[2], 'IN')), ' ', '/') WHEN 'OUT' THEN 'OUT' WHEN 'IN/OUT' THEN 'IN/OUT' ELSE 'IN' END)::varchar(9) AS in_out,
    ocisim.plsql_type(a.word[3])::varchar(30) AS data_type, (CASE WHEN a.text LIKE '% DEFAULT %' THEN 'Y' ELSE 'N' END)::varchar(1) AS defaulted
  FROM ocisim.subprogram s, LATERAL (SELECT x.text, x.position,
      regexp_match(split_part(x.text, ' DEFAULT ', 1), '^([^ ]+) ((?:IN )?(?:OUT )?)(?:NOCOPY )?(.*)$') AS word
    FROM unnest(string_to_array(substring(s.head from '^[A-Z]+ [^ ]+ \( (.*) \)(?: RETURN .*)?$'), ' , '))
      WITH ORDINALITY AS x (text, position)) a
  UNION ALL SELECT s.owner, CASE s.object_type WHEN 'PACKAGE' THEN s.object_name END, coalesce(s.procedure_name, s.object_name), s.object_id,
    s.subprogram_id, NULL, 0, 0, 'OUT', ocisim.plsql_type(substring(s.head from ' RETURN (.*)$')), 'N'
  FROM ocisim.subprogram s WHERE s.head LIKE 'FUNCTION %';
