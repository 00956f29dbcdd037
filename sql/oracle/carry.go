package oracle

import (
	"bytes"
	"context"
	"database/sql"
	"slices"
	"strconv"
	"time"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
)

// A message brings the snapshot of its instance along, in the round trip of its
// dequeue, where this node has probably none: when another one has written it, or
// this one longer ago than recently. It is as old as the dequeue; who wants the
// one that is committed loads it.

// recently is how long a node is taken to have what it has written.
const recently = time.Minute

// carried finds the id of the instance as envelopes are written, without reading JSON:
// what is found of a message that is none is the snapshot of an instance, too. The
// checksum goes before the bytes. What does not fit is loaded.
const (
	carriedVars = "T VARCHAR2(32767);\nP PLS_INTEGER;\nV VARCHAR2(512);\n"
	carriedHead = `T := UTL_RAW.CAST_TO_VARCHAR2(B);
P := INSTR(T, '"workflowInstanceId":"') + 22;
IF P > 22 THEN
T := SUBSTR(T, P, 512);
V := SUBSTR(T, 1, INSTR(T, '"') - 1);
FOR R IN (`
	carriedTail = `) LOOP
IF DBMS_LOB.GETLENGTH(R.STATE_JSON) <= 32000 THEN
X := UTL_RAW.CONCAT(UTL_RAW.CAST_TO_RAW(TO_CHAR(R.STATE_CHECKSUM) || ';'), DBMS_LOB.SUBSTR(R.STATE_JSON, 32000, 1));
END IF;
END LOOP;
END IF;
`
)

var carriedDo = carriedHead + eachBind(text("state_carry"), func(name string) string {
	if name == "INSTANCE_ID" {
		return "V"
	}
	return ":" + name
}) + carriedTail

// carries says whether the messages of a queue bring a snapshot along.
func (s receivers) carries(name store.Queue) bool {
	return !s.o.Apart && name != store.Commands && !s.unblocked.Load()
}

// dequeue takes the next message of a queue. Where the database does not take the block
// that brings the snapshot along, it does without from then on.
func (s receivers) dequeue(ctx context.Context, session *aq.Session, name store.Queue, q aq.Queue) (*aq.Message, error) {
	if !s.carries(name) {
		return session.Dequeue(ctx, q)
	}
	since := s.opened
	if r := s.o.Now().Add(-recently); r.After(since) {
		since = r
	}
	raw, err := session.DequeueBeside(ctx, q, &aq.Beside{Declare: carriedVars, Do: carriedDo, Args: []sql.NamedArg{
		sql.Named("NODE", s.o.Node), sql.Named("SINCE", stamp(since)),
	}})
	if slices.Contains(aq.Codes(err), codeUncompiled) {
		s.unblocked.Store(true)
		s.log.Warn("oracle: the database does not take a block that dequeues: snapshots are loaded by calls of their own", "error", err)
		return session.Dequeue(ctx, q)
	}
	return raw, err
}

const codeUncompiled = 6550

// carried is the snapshot that came with a message; nil when none did, or none that
// can be read: who loads it learns why.
func carried(b []byte) *snapshot.Snapshot {
	sum, raw, ok := bytes.Cut(b, []byte(";"))
	n, err := strconv.ParseInt(string(sum), 10, 64)
	if !ok || err != nil || n != projections.Sum(raw) {
		return nil
	}
	snap, err := snapshot.Decode(raw)
	if err != nil {
		return nil
	}
	return &snap
}

var _ store.Carrier = (*delivery)(nil)

// Carried implements store.Carrier.
func (d *delivery) Carried() (snap *snapshot.Snapshot, encoded int) {
	snap = carried(d.beside)
	encoded, d.beside = len(d.beside), nil
	return snap, encoded
}
