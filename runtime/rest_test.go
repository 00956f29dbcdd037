package runtime_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// shrunk counts how often a node gives memory back; its store has the same.
type shrunk struct {
	backend.Caches
	n *atomic.Int64
}

func (s shrunk) Shrink(ctx context.Context) error {
	err := s.Caches.Shrink(ctx)
	s.n.Add(1)
	return err
}

// A node that has had no turn for a while gives memory back, once, and goes on with its
// instances all the same.
func TestANodeThatRestsGivesMemoryBack(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	node := startSet(t, testdb.OnFile(t)(), func(c *runtime.Config) {
		c.StraysEvery, c.Store.Caches = 100*time.Millisecond, shrunk{c.Store.Caches, &n}
	}, nil, listenDoc)
	for i := range 2 {
		id := string(rune('a' + i))
		node.begin(t, id, "t/listen", map[string]any{"order": i})
		eventually(t, "a rest", func() bool { return n.Load() == int64(i+1) })
	}
	node.event(t, paid("e", 0), 1)
	node.output(t, "a")
	node.event(t, paid("f", 1), 1)
	node.output(t, "b")
}
