package cache

import (
	"encoding/json"
	"fmt"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/definition/openworkflow"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// TestCacheCountsWhatItKeeps: what the cache believes to keep is about what it
// keeps. It looks at the heap, so it runs beside no other test.
func TestCacheCountsWhatItKeeps(t *testing.T) {
	p, err := openworkflow.Parse("w.yaml", []byte("document: {dsl: '1.0.3', namespace: t, name: w, version: 1.0.0}\ndo: [{sleep: {wait: PT1H}}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	heap := func() uint64 {
		var m goruntime.MemStats
		goruntime.GC()
		goruntime.GC()
		goruntime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for _, size := range []int{10, 4_000} {
		c := New(1<<30, 0)
		before := heap()
		const n = 4_000
		for i := range n {
			input, _ := json.Marshal(map[string]string{"x": fmt.Sprintf("%*d", size, i)}) // cannot fail
			out, err := engine.Begin(p.Definition, fmt.Sprintf("018f0000-0000-7000-8000-%012d", i), signal.Start{Input: input}, engine.Input{Now: time.Now(), Key: []byte("k"), Incarnation: "i"})
			if err != nil {
				t.Fatal(err)
			}
			raw, err := out.Snapshot.Encode()
			if err != nil {
				t.Fatal(err)
			}
			c.Put(&out.Snapshot, len(raw))
		}
		kept := int(heap() - before)
		if kept > c.size*5/4 || kept < c.size/3 {
			t.Errorf("inputs of %d bytes: %d bytes a snapshot, counted as %d", size, kept/n, c.size/n)
		} else {
			t.Logf("inputs of %d bytes: %d bytes a snapshot, counted as %d", size, kept/n, c.size/n)
		}
		goruntime.KeepAlive(c)
	}
}

// Only who has nothing to do forgets, and then all.
func TestACacheThatRestsForgets(t *testing.T) {
	t.Parallel()
	c := New(1<<20, 0)
	if c.Rest() {
		t.Error("nothing was forgotten")
	}
	for _, id := range []string{"a", "b"} {
		c.Put(&snapshot.Snapshot{InstanceID: id, Version: 1, Status: snapshot.Waiting}, 100)
	}
	if c.Rest() || c.Get("a") == nil {
		t.Error("what was put since is forgotten")
	}
	if !c.Rest() || c.Get("a") != nil || c.Get("b") != nil || c.size != 0 {
		t.Errorf("%d bytes are kept", c.size)
	}
	if c.Rest() {
		t.Error("it is forgotten twice")
	}
	c.Put(&snapshot.Snapshot{InstanceID: "a", Version: 2, Status: snapshot.Waiting}, 100)
	if c.Get("a") == nil {
		t.Error("it keeps nothing any more")
	}
}

// An id may be another instance's since: what is kept of the one before is forgotten in time,
// and when the other is put, whatever their versions.
func TestNothingIsKeptOfAnInstanceThatWasDeleted(t *testing.T) {
	if short, long := New(1, time.Millisecond).age, New(1, time.Hour).age; short != time.Millisecond/2 || long != maxAge {
		t.Error(short, long)
	}
	c := New(1<<20, 0)
	first := snapshot.Snapshot{InstanceID: "i", Incarnation: "one", Version: 1, Status: snapshot.Waiting}
	c.Put(&first, 100)
	if c.Get("i") == nil {
		t.Error("it is not kept at all")
	}
	if c.age = -time.Second; c.Get("i") != nil || c.size != 0 {
		t.Error("it is kept for ever")
	}
	c.age = maxAge
	c.Put(&first, 100)
	second := first
	second.Incarnation = "two"
	c.Put(&second, 100)
	if s := c.Get("i"); s != nil {
		t.Errorf("%s is kept", s.Incarnation)
	}
	c.Put(&second, 100)
	if s := c.Get("i"); s == nil || s.Incarnation != "two" {
		t.Errorf("%+v", s)
	}
}
