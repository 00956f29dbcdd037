#!/usr/bin/env bash
# Leaves what TestInstancesOutliveEachUpgrade begins with: a database of the embedded
# store with instances in every kind of wait, by a program that is killed. Made with the
# last program of a schema version, before the script of the next is written:
#
#   go build -o /some/engine-node ./cmd/engine-node
#   runtime/testdata/upgrade/make.sh /some/engine-node runtime/testdata/upgrade/17.db.gz
set -euo pipefail
node=$1 out=$(realpath "$2") here=$(cd "$(dirname "$0")" && pwd)
place=$(mktemp -d) api=127.0.0.1:19187
export AQUEDUCT_SERVER=http://$api

# up starts a node with more settings, and waits until it answers.
up() {
	"$node" serve --store-url "sqlite://$place/a.db" --listen $api --node old "$@" >>"$place/log" 2>&1 &
	pid=$!
	until "$node" list >/dev/null 2>&1; do sleep 0.1; done
}

up --activity-attempts 1 --events-sink http://127.0.0.1:9/ # nobody listens there
for document in "$here"/*.yaml; do
	"$node" publish "$document" || echo "this version does not know $document"
done
for id in emits done faulty; do "$node" start "up/$id" --id $id; done
"$node" start up/call --id failed
until "$node" dlq list | grep -q event.undelivered; do sleep 0.1; done
until "$node" list --status faulted | grep -q failed; do sleep 0.1; done
kill $pid && wait $pid

"$node" config accept --store-url "sqlite://$place/a.db" >>"$place/log" 2>&1 || true # there is no sink any more; versions before it compare nothing
up --activity-attempts 50 --activity-delay 1m
for id in person event timer call all parent; do "$node" start "up/$id" --id $id || true; done
"$node" start up/event --id held
"$node" suspend held
sleep 2 # every instance has come to its wait
"$node" list
kill -9 $pid
wait $pid || true
python3 -c 'import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute("pragma wal_checkpoint(truncate)").fetchone())' "$place/a.db"
gzip -9nc "$place/a.db" >"$out"
rm -r "$place"
