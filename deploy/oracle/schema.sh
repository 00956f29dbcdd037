#!/usr/bin/env bash
# Installs the schema with SQL*Plus: users as SYS, the rest as the owner, in the
# order of the numbers. It may run again: what is there already is left.
# An error that says anything else ends the job with 1.
#
#   CONNECT     HOST:PORT/SERVICE of the pluggable database
#   OWNER, RUNTIME_USER, TABLESPACE
#   SCRIPTS     folder of the scripts
#   SECRETS     folder with sys_password, owner_password, runtime_password
set -euo pipefail
connect=${CONNECT:-oracle:1521/FREEPDB1}
owner=${OWNER:-AQUEDUCT}
runtime_user=${RUNTIME_USER:-AQUEDUCT_RUN}
tablespace=${TABLESPACE:-USERS}
scripts=${SCRIPTS:-/schema}
secrets=${SECRETS:-/run/secrets}
export NLS_LANG=AMERICAN_AMERICA.AL32UTF8

# Script and arguments; those of the owner come after those of SYS.
sys_scripts=(
	"00_users.sql $owner $runtime_user $tablespace"
)
owner_scripts=(
	"10_tables.sql"
	"20_queues.sql"
	"30_views.sql"
	"40_package.sql"
	"45_admin.sql"
	"50_grants.sql $runtime_user"
)

# Codes that say that an object is there already, and the line that follows one.
harmless='ORA-(00955|01408|01430|01920|01921|02260|02261|02275|24001|24006|24034|06512)'

# secret prints a password that SQL*Plus can be given in quotes.
secret() {
	local text
	text=$(<"$secrets/$1")
	if [ -z "$text" ] || [[ $text == *[\"[:cntrl:]]* ]]; then
		echo "schema.sh: $1 is empty, or holds a quote or a control character" >&2
		return 1
	fi
	printf '%s' "$text"
}
sys_password=$(secret sys_password)
owner_password=$(secret owner_password)
runtime_password=$(secret runtime_password)

# run feeds SQL*Plus from standard input, so that no password is an argument,
# shows what it says, and judges it.
run() {
	local said strange
	if ! said=$(sqlplus -S -L /nolog 2>&1); then
		printf '%s\n' "$said"
		echo "schema.sh: SQL*Plus failed" >&2
		return 1
	fi
	printf '%s\n' "$said"
	strange=$(grep -Eo '(ORA|PLS|SP2|TNS)-[0-9]{4,5}|created with compilation errors|AQUEDUCT-INVALID .*' <<<"$said" | grep -Evx "$harmless" || true)
	if [ -n "$strange" ]; then
		printf 'schema.sh: this was not to be expected:\n%s\n' "$strange" >&2
		return 1
	fi
}

# begin prints how a session starts: a password may hold an ampersand.
begin() { printf 'SET DEFINE OFF ECHO OFF SQLBLANKLINES ON SERVEROUTPUT ON\nCONNECT %s/"%s"@//%s %s\n' "$1" "$2" "$connect" "${3:-}"; }

# call prints the scripts with their arguments.
call() {
	echo 'SET DEFINE ON VERIFY OFF'
	printf "@$scripts/%s\n" "$@"
	echo 'SET DEFINE OFF'
}

{
	begin SYS "$sys_password" 'AS SYSDBA'
	call "${sys_scripts[@]}"
	printf 'ALTER USER %s IDENTIFIED BY "%s" ACCOUNT UNLOCK;\n' "$owner" "$owner_password"
	printf 'ALTER USER %s IDENTIFIED BY "%s";\n' "$runtime_user" "$runtime_password"
	echo EXIT
} | run

{
	begin "$owner" "$owner_password"
	call "${owner_scripts[@]}"
	cat <<'SQL'
INSERT INTO WF_META (NAME, VALUE)
SELECT 'schema-version', HEXTORAW('02') FROM DUAL
WHERE NOT EXISTS (SELECT 1 FROM WF_META WHERE NAME = 'schema-version');
COMMIT;
GRANT EXECUTE ON AQUEDUCT_API TO AQUEDUCT_APPLICATION;
SELECT 'AQUEDUCT-INVALID ' || OBJECT_NAME FROM USER_OBJECTS
WHERE STATUS <> 'VALID' AND (OBJECT_NAME IN ('AQUEDUCT_API', 'AQUEDUCT_ADMIN') OR OBJECT_NAME LIKE 'WF\_V\_%' ESCAPE '\');
EXIT
SQL
} | run
echo "schema.sh: $owner is installed on $connect, runtime user $runtime_user"
