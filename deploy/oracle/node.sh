#!/usr/bin/env bash
# Starts a program of the image. With STORE_PASSWORD_FILE it first makes the
# address of the store from its parts. The password stays in its file, which the
# node reads for each connection:
#
#   STORE_USER           runtime user of the database
#   STORE_PASSWORD_FILE  file that holds its password
#   STORE_CONNECT        HOST:PORT/SERVICE
#   STORE_SCHEMA         owner of the tables; unset = the user's own
#
# The names do not begin with AQUEDUCT_: a node refuses variables of that form
# which are no settings.
set -euo pipefail

# encoded prints a text as part of a URL.
encoded() {
	local LC_ALL=C text=$1 i c
	for ((i = 0; i < ${#text}; i++)); do
		c=${text:i:1}
		case $c in
		[a-zA-Z0-9._~-]) printf '%s' "$c" ;;
		*) printf '%%%02X' "$(($(printf '%d' "'$c") & 255))" ;;
		esac
	done
}

if [ -n "${STORE_PASSWORD_FILE:-}" ]; then
	: "${STORE_USER:?is missing}" "${STORE_CONNECT:?is missing}"
	if ! [ -s "$STORE_PASSWORD_FILE" ]; then
		echo "node.sh: $STORE_PASSWORD_FILE is empty" >&2
		exit 2
	fi
	url="oracle://$(encoded "$STORE_USER")@$STORE_CONNECT"
	if [ -n "${STORE_SCHEMA:-}" ]; then
		url+="?schema=$(encoded "$STORE_SCHEMA")"
	fi
	export AQUEDUCT_STORE_URL=$url AQUEDUCT_STORE_PASSWORD_FILE=$STORE_PASSWORD_FILE
	unset url
fi

exec "$@"
