package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/sql/embedded"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// killer is a definition that ends the process that decides on it.
type killer struct{ engine.Definition }

func (killer) Ref() snapshot.Definition {
	return snapshot.Definition{Name: "t/killer", Version: "1.0.0", Digest: "k"}
}
func (killer) Begin(*engine.Turn, json.RawMessage) error { die(); return nil }

// killerChild is a node that lives until nothing kills it any more: its
// command and its message have been taken out of circulation.
func killerChild() int {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	lethal := func(context.Context, json.RawMessage) (any, error) { die(); return nil, nil }
	n, err := open(ctx, os.Getenv("AQUEDUCT_TEST_FILE"), nil, lethal, callDoc)
	if err == nil {
		err = n.cat.Register(killer{})
	}
	if err == nil {
		err = survive(ctx, n, os.Getenv("AQUEDUCT_TEST_URL"))
	}
	if err == nil {
		err = n.close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		return 1
	}
	return 0
}

// survive sends what kills, unless it was sent before, and waits for the end.
func survive(ctx context.Context, n *testNode, what string) error {
	body := []byte(`{"signalId":"s","workflowInstanceId":"i","runtimeProvider":"aqueduct","signalType":"StartRequest","expectedVersion":0,"occurredAtUtc":"2026-01-01T00:00:00Z","payload":{"definition":"t/killer"}}`)
	over := func() bool {
		page, err := n.store.DeadLetters.DeadLetters(ctx, backend.DeadLetterQuery{})
		return err == nil && len(page.Items) == 1 && page.Items[0].Reason == "message.crash-loop"
	}
	begin := func() error {
		return n.store.Writer.Commit(ctx, store.Change{Send: []store.Send{{Queue: store.Signals, Body: body}}})
	}
	if what == "command" {
		over = func() bool {
			row, err := n.store.Instances.Instance(ctx, "i")
			return err == nil && row.Status == "faulted" && row.ErrorType == engine.ErrorBase+engine.ErrRuntime
		}
		begin = func() error {
			_, _, err := n.rt.Start(ctx, "i", signal.Start{Definition: "t/call"}, nil)
			return err
		}
	}
	if os.Getenv("AQUEDUCT_TEST_AT") == "first" {
		if err := begin(); err != nil {
			return err
		}
	}
	for !over() {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

// TestWhatKillsProcessesIsTakenOutOfCirculation: a command becomes the
// workflow's error, a message a dead letter, after a few processes.
func TestWhatKillsProcessesIsTakenOutOfCirculation(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		for _, what := range []string{"command", "message"} {
			place := fresh()
			kills, at := 0, "first"
			for ; kills < 12; kills++ {
				if child(t, "killer", place, what, "AQUEDUCT_TEST_AT="+at).Run() == nil {
					break
				}
				at = "again"
			}
			if kills < 2 || kills == 12 {
				t.Errorf("a %s killed %d processes", what, kills)
			}
			if filepath.IsAbs(place) {
				if err := embedded.CheckIntegrity(place); err != nil {
					t.Error(err)
				}
			}
		}
	})
}
