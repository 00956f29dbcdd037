#!/usr/bin/env bash
# Notes in .env the SHA-256 of the Instant Client that the Dockerfile names, for
# docker compose. Compare what it prints with the checksum on Oracle's download
# page: from then on every build gets that file or fails.
#
#   client-sum.sh [VERSION FOLDER]      for example 23.26.3.0.0 2326300
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)

# argument prints the default of a build argument.
argument() { sed -n "s/^ARG $1=//p" "$root/Dockerfile"; }
version=${1:-$(argument INSTANT_CLIENT_VERSION)}
folder=${2:-$(argument INSTANT_CLIENT_FOLDER)}
url=https://download.oracle.com/otn_software/linux/instantclient/$folder/instantclient-basiclite-linux.x64-$version.zip

file=$(mktemp)
trap 'rm -f "$file"' EXIT
curl -fsSL --retry 3 -o "$file" "$url"
sum=$(sha256sum "$file" | cut -d' ' -f1)
echo "$url"
echo "sha256  $sum"
echo "cksum   $(cksum <"$file")"

env=$root/.env
touch "$env"
kept=$(grep -v '^INSTANT_CLIENT_' "$env" || true)
{
	if [ -n "$kept" ]; then printf '%s\n' "$kept"; fi
	printf 'INSTANT_CLIENT_VERSION=%s\nINSTANT_CLIENT_FOLDER=%s\nINSTANT_CLIENT_SHA256=%s\n' "$version" "$folder" "$sum"
} >"$env"
