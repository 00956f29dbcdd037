package oracle

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/aqueduct-engine/aqueduct/internal/ocisim"
	"github.com/aqueduct-engine/aqueduct/internal/oracletest"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/store/backend"
	"github.com/aqueduct-engine/aqueduct/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestStore runs the suite as the owner of the schema on connections of its
// own, and as a runtime user with the grants of the script on pooled ones, with
// changes in calls of their own.
func TestStore(t *testing.T) {
	t.Run("standalone, as the owner", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) storetest.Harness { return harness(t, Options{DSN: fresh(t)}) })
	})
	t.Run("pooled, as the runtime user", func(t *testing.T) {
		storetest.Run(t, func(t *testing.T) storetest.Harness {
			o := Options{Pooled: true, Apart: true}
			o.DSN, o.Schema = freshApart(t)
			h := harness(t, o)
			if !oracletest.Real() { // there it is the owner
				o.DSN = strings.Replace(o.DSN, "AQUEDUCT_RUN", "AQUEDUCT", 1)
				h.Damage = harness(t, o).Damage // the runtime user may not change an event
			}
			return h
		})
	})
}

// freshApart gives an empty schema and the data source name of a runtime user
// of it: one of its own on the stand-in.
func freshApart(t testing.TB) (dsn, schema string) {
	t.Helper()
	if oracletest.Real() {
		return fresh(t), ""
	}
	d := ocisim.Start(t).NewCopy(t, "apart", func(ctx context.Context, d *ocisim.Database) error {
		users, err := scripts.ReadFile("schema/00_users.sql")
		if err == nil {
			err = d.Script(ctx, "app", string(users), []string{"AQUEDUCT", "AQUEDUCT_RUN", "USERS"}, nil)
		}
		if err == nil {
			_, _, err = Migrate(ctx, Installation{DSN: d.UserDSN("AQUEDUCT"), RuntimeUser: "AQUEDUCT_RUN"})
		}
		return err
	})
	return d.UserDSN("AQUEDUCT_RUN"), "AQUEDUCT"
}

// quick are options under which a node hears of another's death soon; one that
// lives may be late, as it is on a busy machine.
func quick(o Options) Options {
	o.Wait, o.Heartbeat, o.DeadAfter = time.Second, 250*time.Millisecond, 10*time.Second
	return o
}

// install is Migrate as package oracletest takes it.
func install(ctx context.Context, dsn string) error {
	_, _, err := Migrate(ctx, Installation{DSN: dsn})
	return err
}

// fresh gives an empty schema, and its data source name.
func fresh(t testing.TB) string {
	t.Helper()
	return oracletest.Fresh(t, install)
}

// standIn gives an empty schema on the stand-in.
func standIn(t testing.TB) *ocisim.Database {
	t.Helper()
	return oracletest.StandIn(t, install)
}

func harness(t *testing.T, o Options) storetest.Harness {
	o = quick(o)
	var mu sync.Mutex
	var before []*Store
	return storetest.Harness{
		Open: func(ctx context.Context, node string) (backend.Store, error) {
			mu.Lock()
			defer mu.Unlock()
			for _, s := range before {
				s.ledger.settle() // who joins learns what is noted by then, and the rest with a heartbeat
			}
			o := o
			o.Node = node
			s, err := Open(ctx, o)
			if err != nil {
				return nil, err
			}
			before = append(before, s)
			return s, nil
		},
		Kill: func(s backend.Store) {
			if err := s.(*Store).kill(); err != nil {
				t.Error(err)
			}
		},
		Damage: func(table, column, id string) error { return damage(o, table, column, id) },
	}
}

// kill ends s as the death of its process would: its sessions end, nothing is
// said to the other nodes, and it is over when they can know: its last heartbeat
// was long ago.
func (s *Store) kill() error {
	s.ledger.settle() // the process dies in the turn, not in the round trip before it
	s.died.Store(true)
	s.end()
	s.beats.Wait()
	_, err := s.db.ExecContext(context.Background(), "update WF_NODES set BEAT_ON_UTC = CAST(:1 AS TIMESTAMP(6)) where RUN_ID = :2", stamp(time.Now().Add(-24*time.Hour)), s.run)
	return errors.Join(err, s.Close())
}

// damage changes a byte in the middle of a column.
func damage(o Options, table, column, id string) error {
	s, err := Open(context.Background(), o)
	if err != nil {
		return err
	}
	defer s.Close()
	if strings.Contains(column, " = ") {
		_, err = s.db.Exec("update "+table+" set "+column+" where INSTANCE_ID = :1", id)
		return err
	}
	var old any
	if err := s.db.QueryRow("select "+column+" from "+table+" where INSTANCE_ID = :1", id).Scan(&old); err != nil {
		return err
	}
	var raw []byte
	if err := (&rows.Into{To: &raw}).Scan(old); err != nil {
		return err
	}
	raw[len(raw)/2] ^= 1
	if _, isText := old.(string); isText {
		old = string(raw)
	} else {
		old = raw
	}
	_, err = s.db.Exec("update "+table+" set "+column+" = :1 where INSTANCE_ID = :2", old, id)
	return err
}

// A new program does not migrate under a live node of an old one; under one of
// its own it changes nothing.
func TestNoMigrationUnderALiveNode(t *testing.T) {
	t.Parallel()
	dsn := fresh(t)
	s := opened(t, Options{DSN: dsn, Node: "old", Version: "v1.0.0"})
	from, to, err := Migrate(t.Context(), Installation{DSN: dsn, Version: "v1.1.0"})
	if problem.CodeOf(err) != "store.in-use" || !strings.Contains(err.Error(), "old v1.0.0") || from != to {
		t.Fatal(from, to, err)
	}
	if _, _, err := Migrate(t.Context(), Installation{DSN: dsn, Version: "v1.0.0"}); err != nil {
		t.Error("of the same version: ", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Migrate(t.Context(), Installation{DSN: dsn, Version: "v1.1.0"}); err != nil {
		t.Error("after the node has ended: ", err)
	}
}

func TestMigrateMayRunAgain(t *testing.T) {
	dsn := fresh(t)
	from, to, err := Migrate(t.Context(), Installation{DSN: dsn})
	if from != schemaVersion || to != schemaVersion || err != nil {
		t.Fatal(from, to, err)
	}
}

// An operator has stopped a queue: a migration leaves it so. One that is gone comes back
// and is started.
func TestMigrateStartsNoQueueThatIsThere(t *testing.T) {
	t.Parallel()
	dsn := fresh(t)
	s := opened(t, Options{DSN: dsn, Node: "n", Version: "v1"})
	const stop = "BEGIN DBMS_AQADM.STOP_QUEUE(queue_name => 'WF_COMMAND_Q'); END;"
	const drop = "BEGIN DBMS_AQADM.DROP_QUEUE_TABLE(queue_table => 'WF_SCHEDULE_QTAB', force => TRUE); END;"
	for _, block := range []string{stop, drop} {
		if _, err := s.db.ExecContext(t.Context(), block); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := Migrate(t.Context(), Installation{DSN: dsn, Version: "v1"}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"WF_COMMAND_Q": "NO", "WF_SCHEDULE_Q": "YES", "WF_SIGNAL_Q": "YES"} {
		var enabled string
		err := s.db.QueryRowContext(t.Context(), "select TRIM(Q.DEQUEUE_ENABLED) from USER_QUEUES Q where Q.NAME = :1", name).Scan(&enabled)
		if err != nil || enabled != want {
			t.Errorf("%s is enabled: %s, not %s: %v", name, enabled, want, err)
		}
	}
}
