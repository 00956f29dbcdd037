package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// scheduledDoc is a definition with a schedule.
func scheduledDoc(name, version, schedule string) string {
	return "document: {dsl: '1.0.3', namespace: t, name: " + name + ", version: '" + version + "'}\nschedule: " + schedule +
		"\ndo:\n  - a: {set: '${ {got: .} }'}\n"
}

// children lists what an instance started.
func (n *testNode) children(t *testing.T, id string) []projections.Instance {
	t.Helper()
	page, err := n.store.Instances.Instances(t.Context(), backend.InstanceQuery{ParentID: id, Limit: projections.MaxLimit})
	if err != nil {
		t.Fatal(err)
	}
	return page.Items
}

// schedule returns the state of a schedule instance.
func (n *testNode) schedule(t *testing.T, id string) snapshot.Snapshot {
	t.Helper()
	var s snapshot.Snapshot
	eventually(t, "schedule "+id, func() bool {
		var err error
		s, err = n.store.Writer.Load(t.Context(), id)
		return err == nil
	})
	return s
}

// TestScheduleEvery is scenario 25: three nodes, and each tick begins one
// instance. Publishing again seeds nothing, and a newer version ends it.
func TestScheduleEvery(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		place := fresh()
		doc := scheduledDoc("every", "1.0.0", "{every: PT1S}")
		n := start(t, place, nil, doc)
		others := []*testNode{start(t, place, nil), start(t, place, nil, doc)}
		const id = "schedule.t.every.1.0.0"
		eventually(t, "three runs", func() bool { return len(n.children(t, id)) >= 3 })
		published := time.Now()
		publish(t, others[0], scheduledDoc("every", "1.1.0", "{every: PT1H}"))
		eventually(t, "the end of the old schedule", func() bool { return n.schedule(t, id).Status == snapshot.Cancelled })
		old := n.schedule(t, id)
		n.settles(t) // the start of the last may be on its way
		if runs := len(n.children(t, id)); runs != old.Schedule.Ticks {
			t.Errorf("%d runs of %d ticks", runs, old.Schedule.Ticks)
		}
		if s := n.schedule(t, "schedule.t.every.1.1.0"); s.Schedule == nil || s.Status != snapshot.Waiting || !s.Waits[0].Until.After(published.Add(59*time.Minute)) {
			t.Errorf("the new schedule: %+v", s)
		}
		publish(t, n, scheduledDoc("every", "1.0.9", "{every: PT1S}"))
		n.settles(t)
		if _, err := n.store.Writer.Load(t.Context(), "schedule.t.every.1.0.9"); err == nil {
			t.Error("an older version has a schedule")
		}
	})
}

// settles waits until only timers are in the queues.
func (n *testNode) settles(t *testing.T) {
	t.Helper()
	calm := 0
	eventually(t, "queues", func() bool {
		queues, err := n.store.Backlog.Queues(t.Context())
		busy := 0
		for _, q := range queues {
			busy += q.Ready + q.Leased
		}
		if calm++; err != nil || busy > 0 {
			calm = 0
		}
		return calm > 50
	})
}

// TestMissedTicksBeginOneRun is the second part of scenario 25: what fell due
// while no node ran begins one late run, and then comes the next tick.
func TestMissedTicksBeginOneRun(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		place := fresh()
		const id = "schedule.t.missed.1.0.0"
		n := start(t, place, nil, scheduledDoc("missed", "1.0.0", "{every: PT1S}"))
		n.schedule(t, id)
		n.stop()
		if err := <-n.done; err != nil {
			t.Fatal(err)
		}
		before := n.schedule(t, id).Schedule.Ticks
		time.Sleep(5 * time.Second)
		resumed := time.Now().UTC()
		n.done <- nil
		n.run(t)
		eventually(t, "the late tick", func() bool { return n.schedule(t, id).Schedule.Ticks > before })
		s := n.schedule(t, id).Schedule
		if s.Missed < 2 || !s.Due.After(resumed.Add(-time.Second)) {
			t.Errorf("after five seconds without a node, until %s: %+v", resumed, s)
		}
	})
}

// TestScheduleAfterWaitsForTheRun is the third part of scenario 25.
func TestScheduleAfterWaitsForTheRun(t *testing.T) {
	t.Parallel()
	const id = "schedule.t.after.1.0.0"
	n := start(t, testdb.OnFile(t)(), nil, strings.Replace(scheduledDoc("after", "1.0.0", "{after: PT0.1S}"), "{set: '${ {got: .} }'}", "{listen: {to: {one: {with: {type: go}}}}}", 1))
	eventually(t, "a run", func() bool { return len(n.children(t, id)) == 1 })
	run := n.childOf(t, id)
	n.until(t, run.ID, status("waiting"))
	time.Sleep(300 * time.Millisecond)
	if list := n.children(t, id); len(list) != 1 {
		t.Fatalf("%d runs at once", len(list))
	}
	event := json.RawMessage(`{"specversion":"1.0","id":"1","source":"s","type":"go"}`)
	if _, err := n.rt.PublishEvent(t.Context(), event, nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the next run", func() bool { return len(n.children(t, id)) == 2 })
	// The end of the schedule is not the end of a run.
	next := n.children(t, id)[0]
	n.until(t, next.ID, status("waiting"))
	if _, err := n.rt.Operate(t.Context(), id, engine.Cancel, nil, "olga"); err != nil {
		t.Fatal(err)
	}
	n.settles(t)
	if row, err := n.store.Instances.Instance(t.Context(), next.ID); err != nil || row.Status != "waiting" {
		t.Errorf("%+v, %v", row, err)
	}
}

// TestEventBeginsAnInstance publishes each event twice, at several nodes.
func TestEventBeginsAnInstance(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		place := fresh()
		const id = "schedule.t.on.1.0.0"
		n := start(t, place, nil, scheduledDoc("on", "1.0.0", `{read: data, on: {any: [{with: {type: placed}}, {with: {type: placed, source: shop}}, {with: {type: moved}}]}}`))
		other := start(t, place, nil)
		eventually(t, "the subscription", func() bool { return len(n.schedule(t, id).Waits) == 3 })
		event := func(typ string, i int) json.RawMessage {
			return json.RawMessage(fmt.Sprintf(`{"specversion":"1.0","id":"%s-%d","source":"shop","type":"%s","data":%d}`, typ, i, typ, i))
		}
		for i := range 4 {
			for _, node := range []*testNode{n, other} {
				_, err := node.rt.PublishEvent(t.Context(), event("placed", i), nil)
				_, moved := node.rt.PublishEvent(t.Context(), event("moved", i), nil)
				if err := errors.Join(err, moved); err != nil {
					t.Fatal(err)
				}
			}
		}
		eventually(t, "eight runs", func() bool { return len(n.children(t, id)) >= 8 })
		n.settles(t)
		got := map[string]int{}
		for _, c := range n.children(t, id) {
			got[n.output(t, c.ID)]++
		}
		if len(n.children(t, id)) != 8 || got[`{"got":[3]}`] != 2 {
			t.Errorf("runs %v", got)
		}
		// Paused, it keeps events; resumed, it takes them.
		if _, err := n.rt.Operate(t.Context(), id, engine.Suspend, nil, "olga"); err != nil {
			t.Fatal(err)
		}
		for _, i := range []int{7, 3} {
			if _, err := n.rt.PublishEvent(t.Context(), event("moved", i), nil); err != nil {
				t.Fatal(err)
			}
		}
		n.settles(t)
		if runs := len(n.children(t, id)); runs != 8 {
			t.Errorf("%d runs while it is paused", runs)
		}
		if _, err := n.rt.Operate(t.Context(), id, engine.Resume, nil, "olga"); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the kept event", func() bool { return len(n.children(t, id)) == 9 })
		// A newer version without a schedule hears nothing.
		publish(t, n, strings.Replace(scheduledDoc("on", "2.0.0", ""), "schedule: \n", "", 1))
		if _, err := n.rt.PublishEvent(t.Context(), event("moved", 9), nil); err != nil {
			t.Fatal(err)
		}
		n.settles(t)
		if runs := len(n.children(t, id)); runs != 9 {
			t.Errorf("%d runs after a version without a schedule", runs)
		}
	})
}

// TestScheduleOfAFailedPublication leaves nothing: a version that loses against
// another has no schedule.
func TestScheduleOfAFailedPublication(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		place := fresh()
		n := start(t, place, nil, scheduledDoc("never", "1.0.0", "{every: PT1H}"))
		other := start(t, place, nil)
		if err := other.cat.Through(t.Context(), func(ctx context.Context, versions []definition.Version) (bool, error) {
			if len(versions) != 1 || versions[0].Record.Version != "1.1.0" || !versions[0].Newest {
				t.Fatalf("%+v", versions)
			}
			publish(t, n, scheduledDoc("never", "1.2.0", "{every: PT1H}")) // while the other is about to
			if created, err := other.rt.Publish(ctx, versions); created || err != nil {
				t.Errorf("published as well: %t, %v", created, err)
			}
			return false, errors.New("power failure")
		}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := other.cat.Publish(t.Context(), "doc.yaml", []byte(scheduledDoc("never", "1.1.0", "{every: PT1S}"))); err == nil {
			t.Fatal("published")
		}
		_, schedules := n.runs(t, "t/never")
		if open := openOnes(schedules); len(schedules) != 2 || len(open) != 1 || open[0].Definition.Version != "1.2.0" {
			t.Errorf("schedules %+v", schedules)
		}
	})
}
