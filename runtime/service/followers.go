package service

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// Told is called with what a turn has committed. It has nothing of it for longer than
// the call without a copy, changes nothing of it, and does not block: the next turn of
// the instance waits for it.
type Told func(s *snapshot.Snapshot, rows *projections.Rows)

// Followers tell callers on this node what it commits of the instances that they follow,
// so that nobody asks a database whether something has happened yet. What another node
// commits they do not know.
type Followers struct {
	some atomic.Int64 // that there are: a turn looks for none where nobody follows
	mu   sync.Mutex
	of   map[string][]*Told
}

// Follow has told called after each turn of an instance that this node commits, until
// leave is called, perhaps while leave runs.
func (f *Followers) Follow(id string, told func(*snapshot.Snapshot, *projections.Rows)) (leave func()) {
	t := Told(told)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of == nil {
		f.of = map[string][]*Told{}
	}
	f.of[id] = append(f.of[id], &t)
	f.some.Add(1)
	return sync.OnceFunc(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.some.Add(-1)
		left := slices.DeleteFunc(slices.Clone(f.of[id]), func(other *Told) bool { return other == &t })
		if f.of[id] = left; len(left) == 0 {
			delete(f.of, id)
		}
	})
}

// Tell tells those who follow the instance of a turn.
func (f *Followers) Tell(c *turn.Committed) {
	if f.some.Load() == 0 {
		return
	}
	f.mu.Lock()
	list := f.of[c.Outcome.Snapshot.InstanceID]
	f.mu.Unlock()
	for _, told := range list {
		(*told)(&c.Outcome.Snapshot, &c.Rows)
	}
}
