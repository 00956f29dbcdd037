package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/definition/openworkflow"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/memory"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/signal"
)

// TestTurnsWaitForMemory: a turn that finds none waits and changes nothing, its
// instance is free when its caller leaves, and all that was taken is given back.
func TestTurnsWaitForMemory(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		st, err := testdb.Open(t.Context(), fresh())
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		catalogue := definition.New(st, openworkflow.Parsers(), time.Now)
		if _, _, err := catalogue.Publish(t.Context(), "a.yaml", []byte("document: {dsl: '1.0.3', namespace: t, name: long, version: '1.0.0'}\ndo: [{a: {wait: PT1H}}]\n")); err != nil {
			t.Fatal(err)
		}
		budget := memory.New(64 << 20)
		rt, err := runtime.New(t.Context(), runtime.Config{
			Store: st.Parts, Definitions: catalogue, Performer: activity.New(activity.Config{}), Now: time.Now, Memory: budget,
			CacheBytes: 1, // so that the snapshot is loaded
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"a", "b"} {
			if _, _, err := rt.Start(t.Context(), id, signal.Start{Definition: "t/long", Input: json.RawMessage(`{}`)}, nil); err != nil {
				t.Fatal(err)
			}
		}
		for _, pool := range []*memory.Pool{budget.Turns, budget.Loads} {
			part, err := pool.Take(t.Context(), pool.Size())
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			left := make(chan error, 1)
			go func() {
				_, err := rt.Operate(ctx, "a", engine.Suspend, nil, "eve")
				left <- err
			}()
			eventually(t, "it waits for memory", func() bool { return pool.Waiting() > 0 })
			cancel()
			if err := <-left; !errors.Is(err, context.Canceled) {
				t.Errorf("without memory: %v", err)
			}
			part.Release()
		}
		for _, id := range []string{"a", "b"} {
			if did, err := rt.Operate(t.Context(), id, engine.Suspend, nil, "eve"); err != nil || did != engine.Applied {
				t.Errorf("%s with memory: %s, %v", id, did, err)
			}
		}
		if budget.Turns.Used() != 0 || budget.Loads.Used() != 0 || budget.Turns.Waits() == 0 || budget.Loads.Waits() == 0 {
			t.Errorf("used %d and %d, waited %d and %d", budget.Turns.Used(), budget.Loads.Used(), budget.Turns.Waits(), budget.Loads.Waits())
		}
	})
}
