-- Aqueduct: from version 1 of the schema to 2. Run as the owner, while no node runs
-- and after a backup:
--   sqlplus owner@service @upgrade_2.sql RUNTIME_USER
-- It ends at the first error, and notes the version when everything is valid.
WHENEVER OSERROR EXIT FAILURE ROLLBACK
WHENEVER SQLERROR EXIT FAILURE ROLLBACK
SET VERIFY OFF
PROMPT Aqueduct: upgrade to version 2 for &1

@@upgrade/2.sql
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
UPDATE WF_META SET VALUE = HEXTORAW('02') WHERE NAME = 'schema-version' AND VALUE = HEXTORAW('01')
/
COMMIT
/
