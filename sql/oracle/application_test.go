package oracle

import (
	"context"
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
)

// An application that signals in its own transaction sends nothing when it
// rolls back, and one envelope when it commits.
func TestAnApplicationSignalsInItsOwnTransaction(t *testing.T) {
	dsn := fresh(t)
	db, err := sql.Open("godror", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s := opened(t, Options{DSN: dsn, Node: "n"})
	ctx := t.Context()
	call := func(commit bool, block string, args ...any) error {
		tx, err := db.BeginTx(context.WithoutCancel(ctx), nil)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, block, args...)
		if err == nil && commit {
			return tx.Commit()
		}
		tx.Rollback()
		return err
	}
	const signalBlock = "DECLARE V RAW(16); BEGIN V := AQUEDUCT_API.SIGNAL(p_instance_id => :1, p_data => :2, p_type => :3); END;"
	err = call(false, signalBlock, "a", `{"n":1}`, "paid")
	if err != nil {
		t.Fatal(err)
	}
	if err := call(true, signalBlock, "a", `{"n":2,"text":"Ω \"quoted\""}`, "paid"); err != nil {
		t.Fatal(err)
	}
	d, err := s.Receive(ctx, store.Signals, nil)
	if err != nil {
		t.Fatal(err)
	}
	e, err := signal.Decode(d.Message().Body)
	if err != nil {
		t.Fatal(err, string(d.Message().Body))
	}
	if e.InstanceID != "a" || e.Type != signal.ExternalSignal || !strings.Contains(string(e.Payload), `"type":"paid"`) || !strings.Contains(string(e.Payload), `"n":2`) ||
		time.Since(e.OccurredAt).Abs() > 15*time.Minute {
		t.Fatalf("%+v", e)
	}
	if err := d.Commit(ctx, store.Change{}); err != nil {
		t.Fatal(err)
	}
	if n := messages(t, s); n != 0 {
		t.Fatalf("%d messages are left", n)
	}
	for _, bad := range [][3]string{{"", "{}", ""}, {"a b", "{}", ""}, {"a", "{", "t"}, {"a", "1", ""}, {"a", "1},{", "t"}} {
		if err := call(true, signalBlock, bad[0], bad[1], bad[2]); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
