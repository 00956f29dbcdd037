package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/schedule"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// nodesOn runs a test on every store, with one node and with two.
func nodesOn(t *testing.T, test func(t *testing.T, nodes []*testNode)) {
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		for _, count := range []int{1, 2} {
			t.Run(fmt.Sprintf("nodes=%d", count), func(t *testing.T) {
				t.Parallel()
				place := fresh()
				var nodes []*testNode
				for range count {
					nodes = append(nodes, start(t, place, nil))
				}
				test(t, nodes)
			})
		}
	})
}

// versioned publishes one version of a definition after the other, each at
// another node.
func versioned(t *testing.T, nodes []*testNode, count int, doc func(version string) string) {
	t.Helper()
	for i := range count {
		publish(t, nodes[i%len(nodes)], doc(fmt.Sprintf("1.%d.0", i)))
	}
}

// runs lists the instances of a definition, with its schedules apart.
func (n *testNode) runs(t *testing.T, definition string) (runs []projections.Instance, schedules []snapshot.Snapshot) {
	t.Helper()
	q := backend.InstanceQuery{Definition: definition, Limit: projections.MaxLimit}
	for {
		page, err := n.store.Instances.Instances(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range page.Items {
			if row.BusinessKey != schedule.Key {
				runs = append(runs, row)
				continue
			}
			s, err := n.store.Writer.Load(t.Context(), row.ID)
			if err != nil {
				t.Fatal(err)
			}
			schedules = append(schedules, s)
		}
		if q.After = page.Next; q.After == "" {
			return runs, schedules
		}
	}
}

// TestEveryAcknowledgedEventBeginsOneInstance publishes version after version
// while events come in at every node: each that was acknowledged begins one
// instance, of whatever version.
func TestEveryAcknowledgedEventBeginsOneInstance(t *testing.T) {
	t.Parallel()
	nodesOn(t, func(t *testing.T, nodes []*testNode) {
		doc := func(version string) string {
			return scheduledDoc("heard", version, `{read: data, on: {one: {with: {type: placed}}}}`)
		}
		publish(t, nodes[0], doc("1.0.0"))
		ctx, stop := context.WithCancel(t.Context())
		var events sync.WaitGroup
		acknowledged := make([]int, len(nodes))
		for i, n := range nodes {
			events.Go(func() {
				for ; ctx.Err() == nil; acknowledged[i]++ {
					event := json.RawMessage(fmt.Sprintf(`{"specversion":"1.0","id":"%d","source":"node-%d","type":"placed","data":"%d-%d"}`, acknowledged[i], i, i, acknowledged[i]))
					if _, err := n.rt.PublishEvent(context.WithoutCancel(ctx), event, nil); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		versioned(t, nodes, 12, doc)
		stop()
		events.Wait()
		nodes[0].settles(t)
		runs, schedules := nodes[0].runs(t, "t/heard")
		got := map[string]int{}
		for _, row := range runs {
			got[nodes[0].output(t, row.ID)]++
		}
		total := 0
		for i, count := range acknowledged {
			total += count
			for k := range count {
				if began := got[fmt.Sprintf(`{"got":["%d-%d"]}`, i, k)]; began != 1 {
					t.Errorf("event %d of node %d began %d instances", k, i, began)
				}
			}
		}
		if open := openOnes(schedules); len(runs) != total || len(open) != 1 || open[0].Definition.Version != "1.11.0" {
			t.Errorf("%d runs of %d events, open schedules %+v", len(runs), total, open)
		}
	})
}

func openOnes(list []snapshot.Snapshot) (open []snapshot.Snapshot) {
	for _, s := range list {
		if !s.Status.Closed() {
			open = append(open, s)
		}
	}
	return open
}

// TestNoTickIsLostBetweenVersions publishes version after version, more often
// than the schedule ticks: the ticks go on as if nothing had been published.
func TestNoTickIsLostBetweenVersions(t *testing.T) {
	t.Parallel()
	nodesOn(t, func(t *testing.T, nodes []*testNode) {
		doc := func(version string) string { return scheduledDoc("ticks", version, "{every: PT1S}") }
		publish(t, nodes[0], doc("1.0.0"))
		first := nodes[0].schedule(t, "schedule.t.ticks.1.0.0").Schedule.Due
		count, looks := 0, 0
		eventually(t, "ticks in spite of all that is published", func() bool {
			if looks++; looks%20 != 1 {
				return false
			}
			count++
			publish(t, nodes[count%len(nodes)], doc(fmt.Sprintf("1.%d.0", count)))
			runs, _ := nodes[0].runs(t, "t/ticks")
			return len(runs) >= 3
		})
		nodes[0].settles(t)
		if _, err := nodes[0].rt.Operate(t.Context(), fmt.Sprintf("schedule.t.ticks.1.%d.0", count), engine.Suspend, nil, "olga"); err != nil {
			t.Fatal(err)
		}
		nodes[0].settles(t)
		runs, schedules := nodes[0].runs(t, "t/ticks")
		open := openOnes(schedules)
		if len(open) != 1 {
			t.Fatalf("open schedules %+v", open)
		}
		ticks, missed := 0, 0
		for _, s := range schedules {
			ticks, missed = ticks+s.Schedule.Ticks, missed+int(s.Schedule.Missed)
		}
		if due := int(open[0].Schedule.Due.Sub(first) / time.Second); len(runs) != ticks || ticks+missed != due {
			t.Errorf("%d runs of %d ticks with %d missed, of %d that were due", len(runs), ticks, missed, due)
		}
	})
}

// TestScheduleAfterIsHandedOverInTheMiddleOfARun: the newer version waits for
// the run of the older one before it begins the next.
func TestScheduleAfterIsHandedOverInTheMiddleOfARun(t *testing.T) {
	t.Parallel()
	nodesOn(t, func(t *testing.T, nodes []*testNode) {
		n := nodes[0]
		doc := func(version string) string {
			return strings.Replace(scheduledDoc("pause", version, "{after: PT0.05S}"), "{set: '${ {got: .} }'}", "{listen: {to: {one: {with: {type: go}}}}}", 1)
		}
		publish(t, n, doc("1.0.0"))
		eventually(t, "a run", func() bool { return len(n.children(t, "schedule.t.pause.1.0.0")) == 1 })
		run := n.childOf(t, "schedule.t.pause.1.0.0")
		n.until(t, run.ID, status("waiting"))
		versioned(t, nodes, 3, func(v string) string { return doc("2" + v) })
		n.settles(t)
		if runs, _ := n.runs(t, "t/pause"); len(runs) != 1 {
			t.Fatalf("%d runs at once", len(runs))
		}
		event := json.RawMessage(`{"specversion":"1.0","id":"1","source":"s","type":"go"}`)
		if _, err := n.rt.PublishEvent(t.Context(), event, nil); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the run after", func() bool { return len(n.children(t, "schedule.t.pause.21.2.0")) == 1 })
		if _, schedules := n.runs(t, "t/pause"); len(openOnes(schedules)) != 1 {
			t.Errorf("open schedules %+v", openOnes(schedules))
		}
	})
}

// TestPausedScheduleIsHandedOverPaused: what it has kept goes along.
func TestPausedScheduleIsHandedOverPaused(t *testing.T) {
	t.Parallel()
	nodesOn(t, func(t *testing.T, nodes []*testNode) {
		n := nodes[0]
		doc := func(version string) string {
			return scheduledDoc("paused", version, `{read: data, on: {one: {with: {type: placed}}}}`)
		}
		event := func(i int) {
			raw := json.RawMessage(fmt.Sprintf(`{"specversion":"1.0","id":"%d","source":"s","type":"placed","data":%d}`, i, i))
			if _, err := nodes[i%len(nodes)].rt.PublishEvent(t.Context(), raw, nil); err != nil {
				t.Fatal(err)
			}
		}
		publish(t, n, doc("1.0.0"))
		if _, err := n.rt.Operate(t.Context(), "schedule.t.paused.1.0.0", engine.Suspend, nil, "olga"); err != nil {
			t.Fatal(err)
		}
		for i := range 4 {
			event(i)
		}
		publish(t, nodes[len(nodes)-1], doc("1.1.0"))
		event(4)
		n.settles(t)
		if runs, _ := n.runs(t, "t/paused"); len(runs) != 0 || n.schedule(t, "schedule.t.paused.1.1.0").Status != snapshot.Suspended {
			t.Fatalf("%d runs of a paused schedule", len(runs))
		}
		if _, err := n.rt.Operate(t.Context(), "schedule.t.paused.1.1.0", engine.Resume, nil, "olga"); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the kept events", func() bool { runs, _ := n.runs(t, "t/paused"); return len(runs) == 5 })
	})
}

// TestOneOfManyPublishersSucceeds publishes the first versions of a definition
// at the same time: one schedule is there in the end, of the highest.
func TestOneOfManyPublishersSucceeds(t *testing.T) {
	t.Parallel()
	nodesOn(t, func(t *testing.T, nodes []*testNode) {
		var all sync.WaitGroup
		for i := range 6 {
			all.Go(func() {
				doc := scheduledDoc("race", fmt.Sprintf("1.%d.0", i), "{every: PT1H}")
				if _, _, err := nodes[i%len(nodes)].cat.Publish(t.Context(), "doc.yaml", []byte(doc)); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		_, schedules := nodes[0].runs(t, "t/race")
		if open := openOnes(schedules); len(open) != 1 || open[0].Definition.Version != "1.5.0" {
			t.Errorf("open schedules %+v", open)
		}
	})
}
