#!/usr/bin/env bash
# Says whether the node of this container is ready. It asks where the node listens, by TLS where
# the node speaks that: as the environment says, the file that it names, and the flags of the
# first process of the container (or those in the file $1, each ended by a zero byte). The
# certificate is for the names by which others reach the node (-k).
set -euo pipefail

flags=()
mapfile -d '' -t words <"${1:-/proc/1/cmdline}"
for i in "${!words[@]}"; do
	if [ "${words[i]}" = serve ]; then
		flags=("${words[@]:i+1}")
		break
	fi
done

settings=$(engine-node config "${flags[@]}" --json=false)
listen=$(sed -n 's/^listen  *\([^ ]*\) .*/\1/p' <<<"$settings")
tls=s
if grep -q '^tls\.certificate  *"" ' <<<"$settings"; then
	tls=
fi
exec curl -fsSk -o /dev/null "http$tls://${listen/#:/127.0.0.1:}/readyz"
