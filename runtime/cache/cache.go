// Package cache keeps the snapshots that a node committed last, so that the next
// turn of a busy instance needs no read.
package cache

import (
	"container/list"
	"sync"
	"time"

	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// Cache implements turn.Cache. A stale snapshot does no harm: its version check
// fails and the turn loads the row. That says nothing of another instance that has
// the id since: so none is kept for as long as one is that has ended. It is bounded
// by the bytes the snapshots have when encoded.
type Cache struct {
	mu    sync.Mutex
	max   int
	age   time.Duration
	size  int
	order *list.List // front = used last
	byID  map[string]*list.Element
	used  bool // since Rest was called
}

type cached struct {
	snap snapshot.Snapshot
	size int
	put  time.Time
}

// cachedOverhead is what an entry costs beside its bytes, roughly: the decoded
// form repeats them and adds slices and maps.
const cachedOverhead = 1_024

// maxAge is how long a snapshot is kept at most: half of the shortest time for which
// nodes keep an instance that has ended.
const maxAge = 30 * time.Second

// New makes a cache of so many bytes, for instances that are there for keep when they
// have ended; 0 = for ever.
func New(max int, keep time.Duration) *Cache {
	age := maxAge
	if keep > 0 {
		age = min(age, keep/2)
	}
	return &Cache{max: max, age: age, order: list.New(), byID: map[string]*list.Element{}}
}

// spare are snapshots whose turn is over.
var spare = sync.Pool{New: func() any { return new(snapshot.Snapshot) }}

// Get returns a copy that the caller gives back by Release, or nil.
func (c *Cache) Get(id string) *snapshot.Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.byID[id]
	if !ok {
		return nil
	}
	if time.Since(e.Value.(*cached).put) > c.age {
		c.remove(e)
		return nil
	}
	c.order.MoveToFront(e)
	snap := spare.Get().(*snapshot.Snapshot)
	*snap = e.Value.(*cached).snap
	return snap
}

// Release takes a copy back whose turn is over.
func (c *Cache) Release(s *snapshot.Snapshot) { spare.Put(s) }

// Put keeps a copy of s unless a newer version is there already. A closed instance is
// forgotten: nothing more is expected of it. So is another one of the same id.
func (c *Cache) Put(s *snapshot.Snapshot, encoded int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used = true
	e, ok := c.byID[s.InstanceID]
	switch {
	case ok && e.Value.(*cached).snap.Incarnation == s.Incarnation && e.Value.(*cached).snap.Version >= s.Version:
		return
	case s.Status.Closed(), ok && e.Value.(*cached).snap.Incarnation != s.Incarnation:
		if ok {
			c.remove(e)
		}
		return
	case !ok:
		e = c.order.PushFront(&cached{})
		c.byID[s.InstanceID] = e
	}
	c.order.MoveToFront(e)
	kept, size := e.Value.(*cached), 2*encoded+cachedOverhead
	c.size += size - kept.size
	*kept = cached{snap: *s, size: size, put: time.Now()}
	for c.size > c.max {
		c.remove(c.order.Back())
	}
}

// Drop forgets an instance.
func (c *Cache) Drop(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.byID[id]; ok {
		c.remove(e)
	}
}

// Rest forgets all when nothing was put since it was called last, and reports whether
// there was something to forget.
func (c *Cache) Rest() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	idle := !c.used
	if c.used = false; !idle || len(c.byID) == 0 {
		return false
	}
	c.order.Init()
	c.byID, c.size = map[string]*list.Element{}, 0
	return true
}

func (c *Cache) remove(e *list.Element) {
	old := c.order.Remove(e).(*cached)
	delete(c.byID, old.snap.InstanceID)
	c.size -= old.size
}
