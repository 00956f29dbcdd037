// Package model compares the stores: random operations are done to a node on
// each of them, and what may be seen is the same after every one. The plainest
// of them, package memory, is the model. A difference is made small by rapid.
package model

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/model/memory"
	"github.com/aqueduct-engine/aqueduct/internal/oracletest"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/sql/embedded"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
	"github.com/aqueduct-engine/aqueduct/store"
)

// worlds are a node on each store.
func worlds(t *testing.T, set ...func(*world)) []*world {
	t.Helper()
	clocks := [3]*clock{{}, {}, {}}
	db := memory.New(clocks[0].now)
	sick := &atomic.Bool{}
	file := testdb.OnFile(t)()
	schema, leap := "", (func(context.Context, time.Duration) error)(nil)
	if oracletest.Real() {
		schema = testdb.OnOracle(t)() // whose clock is its own
	} else {
		standIn := oracletest.StandIn(t, testdb.Install)
		schema, leap = standIn.DSN(), leapOf(standIn)
	}
	list := []*world{
		{name: "memory", clock: clocks[0], sick: sick, open: func(context.Context) (*testdb.Database, error) { return testdb.At(db.Open("")) }},
		{name: "sqlite", clock: clocks[1], place: file, sick: sick, open: func(ctx context.Context) (*testdb.Database, error) {
			return testdb.At(embedded.Open(ctx, sqlite.Options{Path: file, Now: clocks[1].now}))
		}},
		{name: "oracle", clock: clocks[2], leap: leap, place: schema, sick: sick, open: func(ctx context.Context) (*testdb.Database, error) { return testdb.Open(ctx, schema) }},
	}
	for _, w := range list {
		for _, do := range set {
			do(w)
		}
		if err := w.start(t.Context()); err != nil {
			t.Fatalf("%s: %v", w.name, err)
		}
	}
	t.Cleanup(func() {
		for _, w := range list {
			if err := w.close(); err != nil {
				t.Errorf("%s: %v", w.name, err)
			}
		}
	})
	for place, name := range map[string]string{file: "sqlite", schema: "oracle"} {
		t.Cleanup(func() {
			ctx := context.WithoutCancel(t.Context())
			if err := errors.Join(testdb.Verify(ctx, place), testdb.Remade(ctx, place)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	return list
}

// TestStoresAreEqual does random operations to a node on every store. The flag
// -rapid.checks says how many runs there are, and -rapid.seed repeats one.
func TestStoresAreEqual(t *testing.T) {
	bounded(t)
	list := worlds(t)
	run := 0
	check := func(rt *rapid.T) {
		run++
		c := &comparison{t: rt, ctx: t.Context(), list: list, prefix: fmt.Sprintf("r%d-", run)}
		c.sick(false)
		operations := c.operations()
		maps.Copy(operations, c.timely())
		rt.Repeat(operations)
		c.alive()
	}
	rapid.Check(t, check)
	// What happens seldom may not happen in as many runs as were asked for.
	for more := 0; more < moreRuns && !t.Failed() && run >= manyRuns && len(never()) > 0; more += someRuns {
		if err := flag.Set("rapid.checks", strconv.Itoa(someRuns)); err != nil {
			t.Fatal(err)
		}
		rapid.Check(t, check)
	}
	seen(t, run)
}

// Runs that are made, some at a time, until everything has happened.
const (
	someRuns = 5
	moreRuns = 120
)

// bounded lets rapid make few runs where nobody asks for more.
func bounded(t *testing.T) {
	t.Helper()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "rapid.checks" })
	for name, value := range map[string]string{"rapid.checks": "4", "rapid.steps": "15", "rapid.nofailfile": "true"} {
		if name == "rapid.nofailfile" || !asked {
			if err := flag.Set(name, value); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// comparison is one run.
type comparison struct {
	t      *rapid.T
	ctx    context.Context
	list   []*world
	prefix string
	last   state // of the model

	published int // versions of schedules
}

// each does the same to every world, and compares what is said and what is
// seen afterwards. It returns what all have said.
func (c *comparison) each(do func(w *world) string) (words string) {
	var seen []byte
	for i, w := range c.list {
		said := do(w)
		s, err := w.quiet(c.ctx, c.prefix)
		if err == nil {
			err = w.verify(c.ctx)
		}
		if err != nil {
			c.t.Fatal(err)
		}
		raw, err := json.MarshalIndent(s, "", " ")
		if err != nil {
			c.t.Fatal(err)
		}
		if i == 0 {
			words, seen, c.last = said, raw, s
			c.t.Logf("says %s", said)
			continue
		}
		if said != words {
			c.t.Fatalf("%s says %s, the model says %s", w.name, said, words)
		}
		if string(raw) != string(seen) {
			c.t.Fatalf("%s has\n%s\nthe model has\n%s", w.name, raw, seen)
		}
	}
	c.notice()
	return words
}

func (c *comparison) sick(on bool) { c.list[0].sick.Store(on) }

// id is an instance: one that is there, or, now and then, one that is not.
func (c *comparison) id() string {
	n := len(c.last.Instances)
	i := rapid.IntRange(0, n).Draw(c.t, "instance")
	if i == n {
		return c.prefix + "none"
	}
	return c.last.Instances[i].ID
}

func (c *comparison) task() string {
	n := len(c.last.Tasks)
	i := rapid.IntRange(0, n).Draw(c.t, "task")
	if i == n {
		return c.prefix + "none"
	}
	return c.last.Tasks[i].ID
}

func (c *comparison) user() string {
	return rapid.SampledFrom([]string{"ann", "bob"}).Draw(c.t, "user")
}

// operations are what may happen.
func (c *comparison) operations() map[string]func(*rapid.T) {
	clerks := []string{"clerks"}
	few := rapid.IntRange(0, 3)
	return map[string]func(*rapid.T){
		"start": func(*rapid.T) {
			id := c.prefix + fmt.Sprint(few.Draw(c.t, "id"))
			start := signal.Start{
				Definition: rapid.SampledFrom([]string{"m/flow", "m/flow", "m/ack", "m/ack", "m/timed", "m/family", "m/hours", "m/hours", "m/late", "m/late", "m/none"}).Draw(c.t, "definition"),
				Input:      json.RawMessage(fmt.Sprintf(`{"fails":%t,"who":%q}`, rapid.Bool().Draw(c.t, "fails"), c.who())),
			}
			c.each(func(w *world) string {
				_, isNew, err := w.rt.Start(c.ctx, id, start, nil)
				return said(isNew, err)
			})
		},
		"trigger": func(*rapid.T) {
			key, sig := fmt.Sprint(few.Draw(c.t, "key")), fmt.Sprint("t", few.Draw(c.t, "signal"))
			start := signal.Start{
				Definition: "m/flow", Input: json.RawMessage(`{}`), BusinessKey: c.prefix + key, StartKey: "k",
				Signal: &signal.FirstSignal{ID: sig, Type: "go", Data: json.RawMessage(`1`)},
			}
			c.each(func(w *world) string {
				_, isNew, did, err := w.rt.StartOrSignal(c.ctx, c.prefix+"t"+key, start, nil)
				return said(fmt.Sprint(isNew, did), err)
			})
		},
		"signal": func(*rapid.T) {
			id, sig := c.id(), fmt.Sprint("s", few.Draw(c.t, "signal"))
			c.each(func(w *world) string { return said(w.rt.Signal(c.ctx, envelope(w.of(id), sig, "go"))) })
		},
		"message": func(*rapid.T) {
			id, sig := c.id(), fmt.Sprint("s", few.Draw(c.t, "signal"))
			c.each(func(w *world) string { return said("sent", w.send(c.ctx, w.of(id), sig)) })
		},
		"claim": func(*rapid.T) {
			id, user := c.task(), c.user()
			c.each(func(w *world) string {
				k, err := w.rt.ClaimTask(c.ctx, w.of(id), user, clerks)
				return said(k.Assignee, err)
			})
		},
		"release": func(*rapid.T) {
			id, user := c.task(), c.user()
			c.each(func(w *world) string {
				k, err := w.rt.ReleaseTask(c.ctx, w.of(id), user)
				return said(k.Status, err)
			})
		},
		"delegate": func(*rapid.T) {
			id, user, to := c.task(), c.user(), c.user()
			c.each(func(w *world) string {
				k, err := w.rt.DelegateTask(c.ctx, w.of(id), user, to)
				return said(k.Assignee, err)
			})
		},
		"complete": func(*rapid.T) {
			id, user, outcome := c.task(), c.user(), rapid.SampledFrom([]string{"yes", "no", "perhaps"}).Draw(c.t, "outcome")
			c.each(func(w *world) string {
				k, err := w.rt.CompleteTask(c.ctx, w.of(id), user, clerks, outcome, nil)
				return said(k.Outcome, err)
			})
		},
		"operate": func(*rapid.T) {
			id := c.id()
			op := rapid.SampledFrom([]engine.Operation{engine.Cancel, engine.Suspend, engine.Resume, engine.Resume, engine.Retry, engine.Skip}).Draw(c.t, "operation")
			c.each(func(w *world) string {
				return said(w.rt.Operate(c.ctx, w.of(id), op, nil, "ann"))
			})
		},
		"acknowledge": func(*rapid.T) {
			id, kind := c.id(), rapid.SampledFrom([]string{"processed", "failed", "delivered"}).Draw(c.t, "outcome")
			c.each(func(w *world) string { return said(w.acknowledge(c.ctx, w.of(id), kind)) })
		},
		"sicken": func(*rapid.T) { c.sick(rapid.IntRange(0, 3).Draw(c.t, "sick") > 0) },
		"letter": func(*rapid.T) {
			if len(c.last.DeadLetters) == 0 {
				c.t.Skip("there is none")
			}
			i, replay := rapid.IntRange(0, len(c.last.DeadLetters)-1).Draw(c.t, "letter"), rapid.Bool().Draw(c.t, "replay")
			c.each(func(w *world) string { return said("done", w.deadLetter(c.ctx, c.prefix, i, replay)) })
		},
		"retain": func(*rapid.T) {
			c.each(func(w *world) string { return said("done", w.purge(c.ctx)) })
		},
		"restart": func(*rapid.T) {
			if rapid.IntRange(0, 3).Draw(c.t, "now") > 0 {
				c.t.Skip("not now")
			}
			c.each(func(w *world) string {
				err := w.close()
				if err == nil {
					err = w.start(c.ctx)
				}
				return said("done", err)
			})
		},
	}
}

// alive is the end of a run: what can go on does, to its end.
func (c *comparison) alive() {
	c.sick(false)
	for range 16 {
		c.each(func(w *world) string { return said("asked", nil) })
		going, asleep := false, false
		for _, i := range c.last.Instances {
			if i.Status == "completed" || i.Status == "cancelled" || strings.HasPrefix(i.ID, scheduleOf(c.prefix)) {
				continue
			}
			asleep = asleep || i.At == "rest"
			going = true
			c.push(i)
		}
		if !going {
			c.over()
			return
		}
		if asleep {
			c.advance(65 * time.Minute)
		}
	}
	c.t.Fatalf("it does not come to an end: %+v", c.last)
}

// push does for one instance what it waits for.
func (c *comparison) push(i instance) {
	c.each(func(w *world) string {
		switch {
		case i.Status == "suspended":
			_, err := w.rt.Operate(c.ctx, w.of(i.ID), engine.Resume, nil, "ann")
			return said("resumed", err)
		case i.Status == "faulted":
			_, err := w.rt.Operate(c.ctx, w.of(i.ID), engine.Skip, json.RawMessage(`{}`), "ann")
			return said("skipped", err)
		case i.At == "go":
			return said(w.rt.Signal(c.ctx, envelope(w.of(i.ID), fmt.Sprint("end-", i.Version), "go")))
		case i.At == "ask":
			return said("answered", w.answer(c.ctx, w.of(i.ID)))
		case i.At == "hear":
			_, err := w.rt.Operate(c.ctx, w.of(i.ID), engine.Cancel, nil, "ann")
			return said("cancelled", err)
		case i.At == "tell":
			return said(w.acknowledge(c.ctx, w.of(i.ID), "processed"))
		}
		return "left alone"
	})
}

// send puts a signal on the queue.
func (w *world) send(ctx context.Context, id, sig string) error {
	body, err := envelope(w.of(id), sig, "go").Encode()
	if err != nil {
		return err
	}
	return w.st.Writer.Commit(ctx, store.Change{Send: []store.Send{{Queue: store.Signals, Body: body}}})
}

// purge deletes everything that has ended.
func (w *world) purge(ctx context.Context) error {
	_, err := w.st.Retention.Purge(ctx, w.clock.now().Add(time.Hour), 1000)
	return err
}
