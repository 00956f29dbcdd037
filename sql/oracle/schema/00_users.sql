-- Aqueduct: owner, runtime user, and the roles of applications and operators. Run once as SYS
-- in the pluggable database (SYSTEM may not grant what belongs to SYS), then
-- set the passwords:
--   sqlplus sys@service as sysdba @00_users.sql AQUEDUCT AQUEDUCT_RUN USERS
-- ORA-01920 and ORA-01921 say that a user or role is there already.
-- The owner is used to install and upgrade only; lock it in between if you like.
DEFINE owner = &1
DEFINE runtime_user = &2
DEFINE tablespace = &3
PROMPT Aqueduct: users &owner and &runtime_user on &tablespace

CREATE USER &owner NO AUTHENTICATION DEFAULT TABLESPACE &tablespace QUOTA UNLIMITED ON &tablespace
/
GRANT CREATE SESSION, CREATE TABLE, CREATE VIEW, CREATE SEQUENCE, CREATE PROCEDURE TO &owner
/
GRANT EXECUTE ON SYS.DBMS_AQ TO &owner
/
GRANT EXECUTE ON SYS.DBMS_AQADM TO &owner
/
CREATE USER &runtime_user NO AUTHENTICATION
/
GRANT CREATE SESSION TO &runtime_user
/
GRANT EXECUTE ON SYS.DBMS_AQ TO &runtime_user
/
-- For engine-node doctor, which says so where it is left out.
GRANT SELECT ON SYS.V_$PARAMETER TO &runtime_user
/
GRANT SELECT ON SYS.V_$RESOURCE_LIMIT TO &runtime_user
/
-- For counting round trips in benchmarks; leave it out if you do not want it.
GRANT SELECT ON SYS.V_$MYSTAT TO &runtime_user
/
GRANT SELECT ON SYS.V_$STATNAME TO &runtime_user
/
CREATE ROLE AQUEDUCT_APPLICATION
/
GRANT AQUEDUCT_APPLICATION TO &owner WITH ADMIN OPTION
/
CREATE ROLE AQUEDUCT_OPERATOR
/
GRANT AQUEDUCT_OPERATOR TO &owner WITH ADMIN OPTION
/
PROMPT Now: ALTER USER &owner IDENTIFIED BY ...; and ALTER USER &runtime_user IDENTIFIED BY ...;
