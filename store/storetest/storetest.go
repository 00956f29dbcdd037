// Package storetest is the suite that every store passes.
//
// A store's own test is one call of [Run]. Each case has a database of its own
// and runs beside the others; none sleeps, and none depends on another. What
// databases do differently is a case here, never a condition at a caller. The
// benchmarks of [Bench] are the same for every store.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// Harness is one empty database.
type Harness struct {
	// Open opens a store on the database, as a node of that name. It may be
	// called again: for a second node, or after Close for a restart.
	Open func(ctx context.Context, node string) (backend.Store, error)
	// Kill ends a store as the death of its process would: nothing is given
	// back. Nil skips the cases of a crash.
	Kill func(backend.Store)
	// Damage changes a byte of a column, or what it names as assignments of an
	// SQL update, in the rows that an instance has in a table. Nil, or
	// errors.ErrUnsupported, skips.
	Damage func(table, column, instanceID string) error
}

// patience bounds every wait of a case: it is never waited out where the store
// is right.
const patience = 20 * time.Minute

// at is a moment with microseconds, which every store keeps.
var at = time.Date(2026, 2, 3, 4, 5, 6, 789_012_000, time.UTC)

// testCase is what a case works with.
type testCase struct {
	*testing.T
	h   Harness
	s   *opened // opened as node-a
	ctx context.Context
}

// Run runs every case on databases made by fresh, but those of the parts that the
// store lacks: fields of [backend.Parts].
func Run(t *testing.T, fresh func(t *testing.T) Harness, lacks ...string) {
	cases := map[string]bool{}
	groups := []map[string]func(*testCase){queueCases, largeCases, commitCases, damageCases, publishCases, readCases, backlogCases, taskCases, partCases, inboxCases, nodeCases, widthCases, fieldCases, attributeCases, insideCases, overdueCases, functionCases, noticeCases, peopleCases, activityCases, retentionCases, bulkCases, deadLetterCases, scopeCases}
	for _, group := range groups {
		for name, run := range group {
			cases[name] = true
			if left(name, lacks) {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				k := &testCase{T: t, h: fresh(t), ctx: ctx}
				k.s = k.open("node-a")
				run(k)
			})
		}
	}
	checkNeeds(t, cases, lacks)
}

// opened is an open store, with its parts at hand.
type opened struct {
	backend.Parts
	backend.Store
}

// open opens a further store and closes it with the case.
func (k *testCase) open(node string) *opened {
	k.Helper()
	s, err := k.h.Open(k.ctx, node)
	if err != nil {
		k.Fatal(err)
	}
	k.Cleanup(func() {
		if err := s.Close(); err != nil {
			k.Error(err)
		}
	})
	return &opened{s.Parts(), s}
}

func (k *testCase) crash(s *opened) {
	k.Helper()
	if k.h.Kill == nil {
		k.Skip("the harness cannot kill a node")
	}
	k.h.Kill(s.Store)
}

// ok fails the case on an error.
func (k *testCase) ok(err error) {
	k.Helper()
	if err != nil {
		k.Fatal(err)
	}
}

// is fails the case unless err is want.
func (k *testCase) is(err, want error) {
	k.Helper()
	if !errors.Is(err, want) {
		k.Fatalf("got error %v, want %v", err, want)
	}
}

func equal[T any](k *testCase, got, want T) {
	k.Helper()
	if !reflect.DeepEqual(got, want) {
		k.Fatalf("\n got %+v\nwant %+v", got, want)
	}
}

func (k *testCase) commit(c store.Change) {
	k.Helper()
	k.ok(k.s.Writer.Commit(k.ctx, c))
}

// retryCommit commits again when another writer of the instance had its rows for too long.
func retryCommit(k *testCase, c store.Change) error {
	for {
		if err := k.s.Writer.Commit(k.ctx, c); problem.CodeOf(err) != "store.locked" {
			return err
		}
	}
}

func (k *testCase) send(m ...store.Send) {
	k.Helper()
	k.commit(store.Change{Send: m})
}

func (k *testCase) receive(s *opened, q store.Queue) store.Delivery {
	k.Helper()
	d, err := s.Queue.Receive(k.ctx, q, nil)
	if err != nil {
		k.Fatalf("receive from %s: %v", q, err)
	}
	return d
}

// take receives a message, checks its body, and consumes it.
func (k *testCase) take(q store.Queue, body string) store.Message {
	k.Helper()
	d := k.receive(k.s, q)
	equal(k, string(d.Message().Body), body)
	k.ok(d.Commit(k.ctx, store.Change{}))
	return d.Message()
}

// empty shows that a queue has nothing ready: a message that everything else
// precedes is the first.
func (k *testCase) empty(q store.Queue) {
	k.Helper()
	k.send(store.Send{Queue: q, Body: []byte("the last"), Priority: 9})
	k.take(q, "the last")
}

func sig(body string) store.Send { return store.Send{Queue: store.Signals, Body: []byte(body)} }

// snap is a snapshot with a little of everything.
func snap(id string, version int64) *snapshot.Snapshot {
	return &snapshot.Snapshot{
		Incarnation: "INC", Epoch: 1,
		InstanceID: id, Version: version, Status: snapshot.Waiting, Position: version, StartedAt: at, UpdatedAt: at,
		Definition: snapshot.Definition{Name: "default/d", Version: "1.0.0", Digest: "00"},
		State:      snapshot.State{Input: []byte(`{"a":1}`)},
	}
}

// turn is the change of a usual turn.
func turn(id string, version int64) store.Change {
	s := snap(id, version)
	return store.Change{Snapshot: s, Encoded: encode(s), Runtime: store.Runtime{LastSignalID: "s", ExecutedBy: "node-a", ExecutedAt: at},
		Rows: projections.Rows{Instance: instance(id, version)}}
}

func encode(s *snapshot.Snapshot) []byte {
	b, err := s.Encode()
	if err != nil {
		panic(fmt.Sprint("storetest: ", err)) // the suite's own snapshot
	}
	return b
}

func instance(id string, version int64) *projections.Instance {
	return &projections.Instance{ID: id, Definition: "default/d", DefVersion: "1.0.0", Status: "waiting", Position: "review",
		Version: version, StartedAt: at, UpdatedAt: at.Add(time.Duration(version) * time.Microsecond)}
}

func yes(b bool) *bool { return &b }

// command is an unprocessed command of an instance.
func command(id string, position int64, node string) projections.Entry {
	return projections.Entry{InstanceID: id, Position: position, Kind: "command", Direction: "out", Type: "call", Data: []byte(`{"x":1}`),
		CreatedAt: at, Processed: yes(false), ClaimedBy: node}
}
