package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/definition/openworkflow"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/schedule"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store/backend"
	"github.com/prometheus/client_golang/prometheus"
)

// TestWhatFeedsItselfIsPaced: an instance that starts its own definition, by
// itself, by another, or by an event, instances that feed each other events, and
// a loop that never waits: each goes on, no faster than its rate after a burst.
// Sub-workflows of others are not slowed.
func TestWhatFeedsItselfIsPaced(t *testing.T) {
	t.Parallel()
	const burst, rate, late = 3, 2, 5
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		coarse := time.Duration(0)
		place := fresh()
		if !filepath.IsAbs(place) {
			coarse = time.Second // of the times that Oracle's queues keep
		}
		n := paced(t, place, runtime.Rates{Starts: rate, Events: rate, Loops: rate, Burst: burst},
			doc("self", `
  - again: {run: {workflow: {namespace: t, name: self, version: latest}, await: false}}
`), doc("ping", `
  - on: {run: {workflow: {namespace: t, name: pong, version: latest}, await: false}}
`), doc("pong", `
  - back: {run: {workflow: {namespace: t, name: ping, version: latest}, await: false}}
`), `document: {dsl: '1.0.3', namespace: t, name: echo, version: 1.0.0}
schedule: {on: {one: {with: {type: echo}}}}
do: [{again: {emit: {event: {with: {type: echo}}}}}]
`, doc("talk", `
  - hear: {listen: {to: {one: {with: {type: left}}}}}
  - say: {emit: {event: {with: {type: right}}}, then: hear}
`), doc("answer", `
  - hear: {listen: {to: {one: {with: {type: right}}}}}
  - say: {emit: {event: {with: {type: left}}}, then: hear}
`), doc("spin", `
  - a: {set: {x: 1}}
  - b: {set: {x: 2}, then: a}
`), doc("wide", `
  - all: {for: {each: n, in: '${ [range(40)] }'}, do: [{one: {run: {workflow: {namespace: t, name: small, version: latest}, await: false}}}]}
`), doc("small", `
  - a: {set: {x: 1}}
`))
		for _, name := range []string{"self", "ping", "talk", "answer", "spin", "wide"} {
			n.begin(t, name, "t/"+name, nil)
		}
		for _, kind := range []string{"echo", "left"} {
			event := fmt.Sprintf(`{"specversion":"1.0","id":"1","source":"test","type":%q}`, kind)
			if _, err := n.rt.PublishEvent(t.Context(), json.RawMessage(event), nil); err != nil {
				t.Fatal(err)
			}
		}
		starts := func(name string) (times []time.Time) {
			page, err := n.store.Instances.Instances(t.Context(), backend.InstanceQuery{Definition: "t/" + name, Limit: projections.MaxLimit})
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range page.Items {
				if row.BusinessKey != schedule.Key {
					times = append(times, row.StartedAt)
				}
			}
			return times
		}
		takes := func(instance string, kind signal.Type) (times []time.Time) {
			rows, err := n.store.Streams.Stream(t.Context(), instance, 0, projections.MaxLimit)
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range rows {
				if row.Type == string(kind) {
					times = append(times, row.CreatedAt)
				}
			}
			return times
		}
		cause := map[string]string{"self": "start", "ping": "start", "echo": "event", "talk": "event", "spin": "loop"}
		feeds := map[string]func() []time.Time{
			"self": func() []time.Time { return starts("self") }, "ping": func() []time.Time { return starts("ping") },
			"echo": func() []time.Time { return starts("echo") },
			"talk": func() []time.Time { return takes("talk", signal.ExternalSignal) },
			"spin": func() []time.Time { return takes("spin", signal.InternalContinue) },
		}
		for name, times := range feeds {
			eventually(t, name, func() bool { return len(times()) >= burst+late })
			all := times()
			slices.SortFunc(all, time.Time.Compare)
			for i, at := range all[1:] { // the first had another cause, or went at once
				if soonest := all[0].Add(time.Second / rate * time.Duration(i-burst)); at.Before(soonest.Add(-coarse)) {
					t.Errorf("%s: number %d came %s too early", name, i+2, soonest.Sub(at))
				}
			}
		}
		eventually(t, "small", func() bool { return len(starts("small")) == 40 })
		if coarse > 0 { // on a busy machine Oracle's queues are slower than the rate
			return
		}
		for _, what := range []string{"start", "event", "loop"} { // or comes slower than the rate, on a busy machine
			eventually(t, "a "+what+" is paced", func() bool {
				if n.counted(t, "aqueduct_paced_total")[what] > 0 {
					return true
				}
				for name, times := range feeds {
					all := times()
					if cause[name] == what && slices.MaxFunc(all, time.Time.Compare).Sub(slices.MinFunc(all, time.Time.Compare)) > time.Second/rate*time.Duration(len(all)) {
						return true
					}
				}
				return false
			})
		}
	})
}

// paced starts a node with rates, whose turns have ten tasks.
func paced(t *testing.T, place string, rates runtime.Rates, documents ...string) *testNode {
	t.Helper()
	st, err := testdb.Open(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	n := &testNode{store: st, metrics: prometheus.NewRegistry(), done: make(chan error, 1)}
	n.cat = definition.New(st, openworkflow.Parsers(), time.Now)
	for _, d := range documents {
		publish(t, n, d)
	}
	n.rt, err = runtime.New(t.Context(), runtime.Config{
		Store: st.Parts, Definitions: n.cat, Performer: activity.New(activity.Config{}), Now: st.Clock.Now, Metrics: n.metrics,
		Rates: rates, Limits: engine.Limits{Steps: 10}, SignalConsumers: 4, ScheduleConsumers: 4, CommandConsumers: 4,
	})
	if err != nil {
		t.Fatal(err)
	}
	run, stop := context.WithCancel(t.Context())
	n.stop = stop
	go func() { n.done <- n.rt.Run(run) }()
	t.Cleanup(func() {
		if err := n.close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// unqueued is a store whose queues cannot be measured.
type unqueued struct{ backend.BacklogReader }

func (unqueued) Queues(context.Context) ([]backend.Queue, error) {
	return nil, problem.New(problem.Unavailable, "store.unreachable", "away")
}

// What of the database can be measured is, also when something else cannot, and what cannot is told: an
// alert whose gauge is gone is quiet.
func TestAScrapeSaysWhatItCannotMeasure(t *testing.T) {
	t.Parallel()
	n := startSet(t, testdb.OnFile(t)(), func(c *runtime.Config) { c.Store.Backlog = unqueued{c.Store.Backlog} }, nil)
	families, err := n.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := map[string]int{}
	for _, f := range families {
		if series[f.GetName()] = len(f.GetMetric()); f.GetName() == "aqueduct_database_unmeasured" && f.GetMetric()[0].GetGauge().GetValue() != 1 {
			t.Errorf("%v", f)
		}
	}
	for name, want := range map[string]int{
		"aqueduct_database_unmeasured": 1, "aqueduct_dead_letters": 3, "aqueduct_instances": 5, "aqueduct_sequence_gaps": 1, "aqueduct_commands_unserved": 1, "aqueduct_queue_messages": 0,
	} {
		if series[name] != want {
			t.Errorf("%s: %d series, want %d", name, series[name], want)
		}
	}
}
