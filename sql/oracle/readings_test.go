package oracle

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// Readings are put together from a file and what is asked for: here they are noted,
// so that those who look at statements see them whole.

// reading is a statement as it is executed, and the values of its binds.
type reading struct {
	name, text string
	args       []driver.NamedValue
}

var errNoted = errors.New("the reading is noted")

// notepad is a database that notes what it is asked.
type notepad struct{ list []reading }

func (n *notepad) Connect(context.Context) (driver.Conn, error) { return n, nil }
func (n *notepad) Driver() driver.Driver                        { return nil }
func (n *notepad) Prepare(string) (driver.Stmt, error)          { return nil, errNoted }
func (n *notepad) Begin() (driver.Tx, error)                    { return nil, errNoted }
func (n *notepad) Close() error                                 { return nil }
func (n *notepad) CheckNamedValue(*driver.NamedValue) error     { return nil }

func (n *notepad) QueryContext(_ context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	n.list = append(n.list, reading{text: text, args: args})
	return nil, errNoted
}

// asked are the calls that put a reading together, each with all that it may ask for
// and with the least.
func asked(ctx context.Context) []func(*Store) (string, error) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	instance := func(q backend.InstanceQuery) func(*Store) (string, error) {
		return func(s *Store) (string, error) { _, err := instances{s}.Instances(ctx, q); return "instances", err }
	}
	task := func(q backend.TaskQuery) func(*Store) (string, error) {
		return func(s *Store) (string, error) { _, err := tasks{s}.Tasks(ctx, q); return "tasks", err }
	}
	wait := func(hash, after string) func(*Store) (string, error) {
		return func(s *Store) (string, error) {
			_, err := waits{s}.Waits(ctx, "paid", "spec", hash, projections.Wait{Token: after}, 5)
			return "waits", err
		}
	}
	definitions := func(after string) func(*Store) (string, error) {
		return func(s *Store) (string, error) { _, err := s.Definitions(ctx, after, 5); return "definitions", err }
	}
	late := func(after string) func(*Store) (string, error) {
		return func(s *Store) (string, error) { _, err := overdue{s}.Overdue(ctx, at, after, 5); return "overdue", err }
	}
	kept := func(kind string, behind backend.Event) func(*Store) (string, error) {
		return func(s *Store) (string, error) {
			_, err := inbox{s}.KeptEvents(ctx, backend.KeptQuery{Type: kind}, at, behind)
			return "events", err
		}
	}
	dead := func(q backend.DeadLetterQuery) func(*Store) (string, error) {
		return func(s *Store) (string, error) {
			_, err := deadLetters{s}.DeadLetters(ctx, q)
			return "dead letters", err
		}
	}
	commands := func(q backend.CommandQuery) func(*Store) (string, error) {
		return func(s *Store) (string, error) { _, err := streams{s}.Commands(ctx, q); return "commands", err }
	}
	return []func(*Store) (string, error){
		commands(backend.CommandQuery{}), commands(backend.CommandQuery{InstanceID: "i-1", Type: "charge", Before: at, Error: "Unsent", After: "3.i-0", Limit: 5}),
		instance(backend.InstanceQuery{}),
		instance(backend.InstanceQuery{Definition: "d", Status: "waiting", BusinessKey: "b", ParentID: "p", After: "1700000000000000.i-1", Limit: 5}),
		instance(backend.InstanceQuery{Version: "1.0.0", Live: true, State: "review", ErrorCode: "timeout", Text: "100%", Before: at}),
		func(s *Store) (string, error) { _, err := instances{s}.Instance(ctx, "i-1"); return "instance", err },
		func(s *Store) (string, error) { _, err := bulk{s}.Bulk(ctx, "b-1"); return "plan", err },
		func(s *Store) (string, error) {
			_, err := bulk{s}.Bulks(ctx, "1700000000000000.b-1", 5)
			return "plans", err
		},
		func(s *Store) (string, error) {
			_, err := bulk{s}.BulkItems(ctx, backend.BulkItemQuery{ID: "b-1", Outcome: backend.BulkItemOpen, After: "7", Limit: 5})
			return "items", err
		},
		func(s *Store) (string, error) {
			_, err := instances{s}.Started(ctx, "d", "b", "k")
			return "started", err
		},
		func(s *Store) (string, error) { _, err := streams{s}.Stream(ctx, "i-1", 0, 5); return "stream", err },
		func(s *Store) (string, error) { _, err := streams{s}.Pending(ctx, "i-1", 5); return "pending", err },
		func(s *Store) (string, error) { _, err := streams{s}.Pending(ctx, "", 5); return "pending", err },
		wait("", ""), wait("hash", "w-1"),
		func(s *Store) (string, error) {
			_, err := deadLetters{s}.DeadLetter(ctx, "d-1")
			return "dead letter", err
		},
		dead(backend.DeadLetterQuery{}), dead(backend.DeadLetterQuery{Queue: "signal", Reason: "r", InstanceID: "i-1", After: "7", Limit: 5}),
		dead(backend.DeadLetterQuery{Definition: "d", Text: "late", Before: at}),
		func(s *Store) (string, error) { _, err := tasks{s}.Task(ctx, "t-1"); return "task", err },
		task(backend.TaskQuery{}), task(backend.TaskQuery{Status: backend.TaskOpen, User: "ann"}), task(backend.TaskQuery{Groups: []string{"g", "h"}}),
		task(backend.TaskQuery{Status: "ready", Assignee: "ann", InstanceID: "i-1", User: "ann", Groups: []string{"g", "h"}, After: "5.7", Limit: 5}),
		late(""), late("1700000000000000.i-1"),
		kept("", backend.Event{}), kept("paid", backend.Event{Key: "e-1", ReceivedAt: at}),
		definitions(""), definitions("order"), definitions("order@1"),
	}
}

// readings lists them.
func readings(t *testing.T) []reading {
	t.Helper()
	n := &notepad{}
	s := &Store{db: sql.OpenDB(n)}
	defer s.db.Close()
	for _, ask := range asked(t.Context()) {
		before := len(n.list)
		name, err := ask(s)
		if !errors.Is(err, errNoted) || len(n.list) != before+1 {
			t.Fatalf("%s: %v, %d readings", name, err, len(n.list)-before)
		}
		n.list[before].name = name
	}
	return n.list
}

// Each value is bound, and each has its place in the text.
func TestReadingsBindEachValue(t *testing.T) {
	t.Parallel()
	for _, r := range readings(t) {
		binds := bindsOf(r.text)
		values := 0
		for _, a := range r.args {
			if _, err := driver.DefaultParameterConverter.ConvertValue(a.Value); err == nil { // an option of the driver is none
				values++
			}
		}
		if len(binds) != values {
			t.Errorf("%s has %d binds and %d values:\n%s", r.name, len(binds), values, r.text)
		}
	}
}
