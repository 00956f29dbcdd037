package oracle

import (
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/storetest"
)

// about is a change that another node writes of an instance, with a signal to it.
func about(snap *snapshot.Snapshot, node string) store.Change {
	c := storetest.Step(snap, node)
	c.Send = []store.Send{{Queue: store.Signals, Body: []byte(`{"signalId":"s","workflowInstanceId":"` + snap.InstanceID + `"}`)}}
	return c
}

// What another node has written comes with the message, in the round trip of the
// dequeue: a turn takes two.
func TestADequeueBringsTheSnapshot(t *testing.T) {
	t.Parallel()
	dsn := fresh(t)
	here, there := opened(t, Options{DSN: dsn, Node: "here"}), opened(t, Options{DSN: dsn, Node: "there"})
	snap := &snapshot.Snapshot{InstanceID: "a", Status: snapshot.Running}
	for _, k := range []struct {
		name  string
		by    *Store
		ago   time.Duration
		large int
		comes bool
	}{
		{"another node has written it", there, 0, 0, true},
		{"this one has", here, 0, 0, false},
		{"this one has, before it was opened", here, time.Hour, 0, true},
		{"it is large", there, 0, 20_000, true},
		{"no message holds it", there, 0, 40_000, false},
	} {
		snap.Headers = map[string]string{"x": strings.Repeat("x", k.large)}
		c := about(snap, k.by.o.Node)
		c.Runtime.ExecutedAt = c.Runtime.ExecutedAt.Add(-k.ago)
		if err := k.by.Commit(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		calls := here.Counts().Calls
		d, err := here.Receive(t.Context(), store.Signals, nil)
		if err != nil {
			t.Fatal(err)
		}
		got, encoded := d.(store.Carrier).Carried()
		if (got != nil) != k.comes || k.comes && (got.Version != c.Snapshot.Version || got.Headers["x"] != snap.Headers["x"] || encoded < k.large) {
			t.Errorf("%s: %v came, of %d bytes", k.name, got != nil, encoded)
		}
		if again, _ := d.(store.Carrier).Carried(); again != nil {
			t.Errorf("%s: it comes again", k.name)
		}
		if err := d.Commit(t.Context(), store.Change{}); err != nil {
			t.Fatal(err)
		}
		if n := here.Counts().Calls - calls; k.name != "another node has written it" && n != 2 { // the first begins a transaction
			t.Errorf("%s: %d calls", k.name, n)
		}
	}
}

// A message is what it is, whoever reads it: the block says the same of it as the
// client library.
func TestABlockTakesTheSameMessage(t *testing.T) {
	t.Parallel()
	var got [2]store.Message
	for i, apart := range []bool{false, true} {
		s := opened(t, Options{DSN: fresh(t), Node: "n", Apart: apart})
		body := []byte(`{"signalId":"s","workflowInstanceId":"ä\"","x":";"}`)
		if err := s.Commit(t.Context(), store.Change{Send: []store.Send{{Queue: store.Signals, Body: body, Priority: 3, Attempts: 2}}}); err != nil {
			t.Fatal(err)
		}
		d, err := s.Receive(t.Context(), store.Signals, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Release(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if d, err = s.Receive(t.Context(), store.Signals, nil); err != nil {
			t.Fatal(err)
		}
		got[i] = d.Message()
		if age := time.Since(got[i].EnqueuedAt); age < -2*time.Second || age > 15*time.Minute {
			t.Errorf("enqueued at %s", got[i].EnqueuedAt)
		}
		if len(got[i].ID) != 32 {
			t.Errorf("id %q", got[i].ID)
		}
		got[i].ID, got[i].EnqueuedAt = "", time.Time{}
		if err := d.Commit(t.Context(), store.Change{}); err != nil {
			t.Fatal(err)
		}
	}
	a, b := got[0], got[1]
	if string(a.Body) != string(b.Body) || a.Priority != b.Priority || a.Attempts != b.Attempts || a.Queue != b.Queue || !a.DueAt.Equal(b.DueAt) {
		t.Errorf("by the block %+v, by the client library %+v", a, b)
	}
}
