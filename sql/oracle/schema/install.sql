-- Aqueduct: the whole schema, in one that is empty. Run as the owner, after
-- 00_users.sql:
--   sqlplus owner@service @install.sql RUNTIME_USER
-- It ends at the first error, and notes the version of the schema when everything
-- is valid. One that has tables already is upgraded by engine-node migrate,
-- or by upgrade_2.sql.
WHENEVER OSERROR EXIT FAILURE ROLLBACK
WHENEVER SQLERROR EXIT FAILURE ROLLBACK
SET VERIFY OFF
PROMPT Aqueduct: installation for &1

@@10_tables.sql
@@20_queues.sql
@@30_views.sql
@@40_package.sql
@@45_admin.sql
@@50_grants.sql &1

-- SQL*Plus takes a package that does not compile for a warning. Of what the compiler warns of
-- itself, where PLSQL_WARNINGS has it do so, the package works all the same.
BEGIN
  FOR E IN (SELECT NAME, LINE, TEXT FROM USER_ERRORS WHERE ATTRIBUTE = 'ERROR' ORDER BY NAME, LINE) LOOP
    RAISE_APPLICATION_ERROR(-20800, 'not compiled: ' || E.NAME || ', line ' || E.LINE || ': ' || E.TEXT);
  END LOOP;
END;
/
INSERT INTO WF_META (NAME, VALUE) VALUES ('schema-version', HEXTORAW('02'))
/
COMMIT
/
