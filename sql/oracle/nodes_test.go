package oracle

import (
	"context"
	"encoding/binary"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/storetest"
)

// A node that was silent for so long that another has its name ends, and commits nothing
// of what it has in hand.
func TestANodeWhoseNameWasTakenEnds(t *testing.T) {
	t.Parallel()
	s := opened(t, Options{DSN: standIn(t).DSN(), Node: "n"})
	if err := s.Commit(t.Context(), store.Change{Send: []store.Send{{Queue: store.Signals, Body: []byte("a")}}}); err != nil {
		t.Fatal(err)
	}
	held, err := s.Receive(t.Context(), store.Signals, nil)
	if err != nil {
		t.Fatal(err)
	}
	const taken = "BEGIN delete from WF_NODES where RUN_ID = :1; " +
		"insert into WF_NODES (RUN_ID, NODE, STARTED_ON_UTC, BEAT_ON_UTC) values ('another', 'n', SYS_EXTRACT_UTC(SYSTIMESTAMP), SYS_EXTRACT_UTC(SYSTIMESTAMP)); END;"
	if _, err := s.db.ExecContext(t.Context(), taken, s.run); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), lockPatience)
	defer cancel()
	_, err = s.Receive(ctx, store.Signals, nil)
	if !errors.Is(err, store.ErrClosed) || problem.CodeOf(err) != "store.node-in-use" {
		t.Errorf("a receiver is told %v", err)
	}
	for what, err := range map[string]error{
		"what it holds":   held.Commit(t.Context(), store.Change{}),
		"something else":  s.Commit(t.Context(), starting("i")),
		"what comes back": held.Release(t.Context(), nil),
	} {
		if !errors.Is(err, store.ErrClosed) || problem.CodeOf(err) != "store.node-in-use" {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A node that was silent while the database was restored ends when it reaches it again: what it
// remembers is of the epoch that is over. Who restores goes on.
func TestANodeThatOutlivesARestoreEnds(t *testing.T) {
	t.Parallel()
	d := standIn(t)
	silent, restorer := opened(t, Options{DSN: d.DSN(), Node: "silent"}), opened(t, Options{DSN: d.DSN(), Node: "restorer"})
	for _, s := range []*Store{silent, restorer} {
		if epoch, err := s.Parts().Identity.Epoch(t.Context()); err != nil || epoch != 1 {
			t.Fatal(epoch, err)
		}
	}
	err := change(t.Context(), restorer, nil, func(session *aq.Session) error { // as if it had not beaten for long
		if _, err := session.ExecContext(t.Context(), "update WF_NODES set BEAT_ON_UTC = BEAT_ON_UTC - NUMTODSINTERVAL(3600, 'SECOND') where RUN_ID = '"+silent.run+"'"); err != nil {
			return err
		}
		_, to, err := identity{restorer}.raise(t.Context(), session)
		restorer.epoch.CompareAndSwap(1, to)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), lockPatience)
	defer cancel()
	_, err = silent.Receive(ctx, store.Signals, nil)
	if !errors.Is(err, store.ErrClosed) || problem.CodeOf(err) != "store.restored" {
		t.Errorf("a receiver is told %v", err)
	}
	if err := silent.Commit(t.Context(), starting("i")); problem.CodeOf(err) != "store.restored" {
		t.Errorf("a commit: %v", err)
	}
	if err := (member{restorer}).beatOnce(t.Context()); err != nil {
		t.Errorf("who has restored: %v", err)
	}
	if err := restorer.Commit(t.Context(), starting("i")); err != nil {
		t.Errorf("a commit of who has restored: %v", err)
	}
}

// Law: a node that wakes after a restore commits no turn of the epoch that is over, though its
// heart has not beaten yet.
func TestATurnOfAnEpochThatIsOverIsStale(t *testing.T) {
	t.Parallel()
	d := standIn(t)
	s := opened(t, Options{DSN: d.DSN(), Node: "n", Heartbeat: time.Hour, DeadAfter: 10 * time.Hour})
	snap := &snapshot.Snapshot{InstanceID: "i", Status: snapshot.Running}
	step := func() error { return s.Commit(t.Context(), storetest.Step(snap, "n")) }
	if err := step(); err != nil {
		t.Fatal(err)
	}
	raise := func(to uint64) {
		t.Helper()
		o := op{name: "meta_insert", args: []any{epochName + strconv.FormatUint(to, 10), binary.BigEndian.AppendUint64(nil, to)}}
		if err := runStatement(t.Context(), s, &o); err != nil {
			t.Fatal(err)
		}
	}
	raise(2) // as a restore does
	if err := step(); err != nil {
		t.Errorf("who goes by no epoch: %v", err)
	}
	if epoch, err := s.Parts().Identity.Epoch(t.Context()); err != nil || epoch != 2 {
		t.Fatal(epoch, err)
	}
	if err := step(); err != nil {
		t.Errorf("a turn of the epoch that the database has: %v", err)
	}
	raise(300)
	if err := step(); !errors.Is(err, store.ErrStale) && problem.CodeOf(err) != "store.restored" { // where a late first heartbeat has found it
		t.Errorf("a turn of an epoch that is over: %v", err)
	}
}
