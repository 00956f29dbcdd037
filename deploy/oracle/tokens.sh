#!/usr/bin/env bash
# Makes the tokens of docker-compose.yml on the database, one file each, in the folder
# that is named (/var/lib/aqueduct): root for an administrator, prometheus for who
# scrapes the nodes. A token that is there stays as it is; a file that is removed is
# made anew, and the token before is good until `engine-node tokens revoke`.
#
#   docker compose run --rm tokens cat /var/lib/aqueduct/root
set -euo pipefail
folder=${1:-/var/lib/aqueduct}
: "${AQUEDUCT_STORE_URL:?is missing: node.sh makes it}"

# token makes one: its name, then its roles.
token() {
	local name=$1 role roles=()
	shift
	for role in "$@"; do roles+=(--role "$role"); done
	if [ -s "$folder/$name" ]; then
		return
	fi
	# A file is whole or not there.
	(umask 0333 && rm -f "$folder/.$name" && engine-node tokens create "$name" "${roles[@]}" --lifetime 365d --store "$AQUEDUCT_STORE_URL" >"$folder/.$name")
	mv "$folder/.$name" "$folder/$name"
}

token root admin operator author viewer
token prometheus viewer
