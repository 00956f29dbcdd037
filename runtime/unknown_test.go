package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// unsure makes the first commits with commands, and says that it does not know.
type unsure struct {
	store.Writer
	left atomic.Int64
	lost bool // what it does not know is not made
}

func (u *unsure) Commit(ctx context.Context, c store.Change) error {
	if u.lost && len(c.Rows.Stream) > 0 && u.left.Add(-1) >= 0 {
		return store.Unknown(errors.New("the line was cut"))
	}
	err := u.Writer.Commit(ctx, c)
	if u.lost {
		time.Sleep(500 * time.Millisecond) // the answer takes its time, and those who look find what was made
		return err
	}
	for _, e := range c.Rows.Stream {
		if err == nil && e.ClaimedBy != "" && u.left.Add(-1) >= 0 {
			return store.Unknown(errors.New("the line was cut"))
		}
	}
	return err
}

// A node that does not know whether it has claimed a command finds out: nobody
// else would perform it as long as this node lives.
func TestCommandOfAnUnknownCommitIsPerformed(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		var calls atomic.Int64
		u := &unsure{}
		u.left.Store(1)
		n, err := open(t.Context(), fresh(), func(p backend.Parts) backend.Parts { u.Writer, p.Writer = p.Writer, u; return p },
			func(context.Context, json.RawMessage) (any, error) { return calls.Add(1), nil }, callDoc)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := n.close(); err != nil {
				t.Error(err)
			}
		}()
		var unknown error
		for unknown == nil { // the node may not be accepting commands yet
			id := fmt.Sprintf("i-%d", calls.Load())
			_, _, unknown = n.rt.Start(t.Context(), id, signal.Start{Definition: "t/call", Input: json.RawMessage(`{"n":1}`)}, nil)
			if unknown == nil {
				n.output(t, id)
				continue
			}
			before := calls.Load()
			if !errors.Is(unknown, store.ErrUnknown) {
				t.Fatal(unknown)
			}
			n.until(t, id, func(i projections.Instance) bool { return i.Status == "completed" })
			if made := calls.Load() - before; made > 1 {
				t.Errorf("the command was performed %d times", made)
			}
		}
	})
}

// A start whose commit was lost, with an outcome that nobody knows, is made again
// by its caller: the commands of the first are not those of the second.
func TestCommandsOfALostCommitAreNotPerformed(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		var mu sync.Mutex
		keys := map[string]bool{}
		u := &unsure{lost: true}
		u.left.Store(3)
		n, err := open(t.Context(), fresh(), func(p backend.Parts) backend.Parts { u.Writer, p.Writer = p.Writer, u; return p },
			func(ctx context.Context, _ json.RawMessage) (any, error) {
				mu.Lock()
				defer mu.Unlock()
				keys[activity.Info(ctx).Key] = true
				return 1, nil
			}, callDoc)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := n.close(); err != nil {
				t.Error(err)
			}
		}()
		for err = store.ErrUnknown; err != nil; {
			if _, _, err = n.rt.Start(t.Context(), "i", signal.Start{Definition: "t/call", Input: json.RawMessage(`{"n":1}`)}, nil); err != nil && !errors.Is(err, store.ErrUnknown) {
				t.Fatal(err)
			}
		}
		n.until(t, "i", func(i projections.Instance) bool { return i.Status == "completed" })
		rows, err := n.store.Streams.Stream(t.Context(), "i", 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, row := range rows {
			delete(keys, row.Key)
		}
		if len(keys) > 0 {
			t.Errorf("performed, and not in the stream: %v", keys)
		}
	})
}
