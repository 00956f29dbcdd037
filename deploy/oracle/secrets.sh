#!/usr/bin/env bash
# Makes the passwords of docker-compose.yml, one file each, in deploy/secrets.
# Files that are there stay as they are.
#
# The folder is yours alone. The files are readable by all, because containers
# read them as users that this host does not know.
set -euo pipefail
folder=$(cd "$(dirname "$0")/.." && pwd)/secrets
names=(sys_password owner_password runtime_password grafana_password)

mkdir -p "$folder"
chmod 0700 "$folder"
for name in "${names[@]}"; do
	if [ -s "$folder/$name" ]; then
		continue
	fi
	# 24 characters that mean nothing to a shell, to SQL*Plus or in a URL. The
	# first is a letter.
	random=$(od -An -N512 -tx1 /dev/urandom | tr -d ' \n' | cut -c1-23)
	printf 'p%s' "$random" >"$folder/$name"
	chmod 0444 "$folder/$name"
	echo "$folder/$name"
done
