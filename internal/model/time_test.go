package model

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/ocisim"
	"github.com/aqueduct-engine/aqueduct/signal"
)

// clock is that of one world: the node's and its database's.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time {
	if c == nil {
		return time.Now()
	}
	return time.Now().Add(time.Duration(c.ahead.Load()))
}

// advance lets time pass while the node is down, as in an outage: what was due
// meanwhile is late when it comes back.
func (w *world) advance(ctx context.Context, d time.Duration) error {
	err := w.close()
	w.clock.ahead.Add(int64(d))
	if err == nil && w.leap != nil {
		err = w.leap(ctx, d)
	}
	if err == nil {
		err = w.start(ctx)
	}
	return err
}

// leapOf advances the clock of the stand-in, and with it its messages.
func leapOf(db *ocisim.Database) func(ctx context.Context, d time.Duration) error {
	return func(ctx context.Context, d time.Duration) error {
		by := fmt.Sprintf("interval '%d seconds'", int(d.Seconds()))
		_, err := db.Postgres(ctx, "update ocisim.clock set ahead = ahead + "+by+"; update ocisim.aq_msg set visible_at = visible_at - "+by)
		return err
	}
}

// scheduled are the documents of a run that begin instances by themselves.
func scheduled(prefix string, version int) map[string]string {
	document := func(name, schedule string) string {
		return fmt.Sprintf("document: {dsl: '1.0.3', namespace: m, name: %s%s, version: '1.%d.0'}\nschedule: %s\ndo:\n  - run: {call: effect, with: {name: run, version: %[3]d}}\n", prefix, name, version, schedule)
	}
	return map[string]string{
		"tick": document("tick", "{every: PT1H}"),
		"born": document("born", fmt.Sprintf("{read: data, on: {one: {with: {type: %sborn}}}}", prefix)),
	}
}

// scheduleOf is how the ids of the schedule instances of a run begin.
func scheduleOf(prefix string) string { return "schedule.m." + prefix }

// timely are the operations of clocks, schedules and events.
func (c *comparison) timely() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"advance": func(*rapid.T) {
			if c.list[2].leap == nil {
				c.t.Skip("the clock of this database is its own")
			}
			if rapid.IntRange(0, 2).Draw(c.t, "now") > 0 {
				c.t.Skip("not now") // it takes as long as all else
			}
			c.advance(rapid.SampledFrom([]time.Duration{25 * time.Minute, 65 * time.Minute, 190 * time.Minute}).Draw(c.t, "by"))
		},
		"schedule": func(*rapid.T) {
			kind := rapid.SampledFrom([]string{"tick", "born"}).Draw(c.t, "kind")
			c.published++
			text := scheduled(c.prefix, c.published)[kind]
			c.each(func(w *world) string {
				_, isNew, err := w.cat.Publish(c.ctx, kind+".yaml", []byte(text))
				return said(isNew, err)
			})
		},
		"listen": func(*rapid.T) {
			id := c.prefix + "e" + fmt.Sprint(rapid.IntRange(0, 3).Draw(c.t, "id"))
			start := signal.Start{Definition: "m/ear", Input: json.RawMessage(fmt.Sprintf(`{"who":%q}`, c.who()))}
			c.each(func(w *world) string {
				_, isNew, err := w.rt.Start(c.ctx, id, start, nil)
				return said(isNew, err)
			})
		},
		"event": func(*rapid.T) {
			kind := rapid.SampledFrom([]string{"cry", "cry", c.prefix + "born"}).Draw(c.t, "type")
			event, err := json.Marshal(map[string]any{
				"specversion": "1.0", "source": "model", "type": kind, "id": c.prefix + fmt.Sprint(rapid.IntRange(0, 5).Draw(c.t, "event")),
				"data": map[string]string{"who": c.who()},
			})
			if err != nil {
				c.t.Fatal(err)
			}
			if reached := c.each(func(w *world) string { return said(w.rt.PublishEvent(c.ctx, event, nil)) }); reached != "0" {
				sometimes(map[string]string{"cry": "an event reaches a listen"}[kind])
			}
		},
	}
}

// who is what events are correlated by.
func (c *comparison) who() string {
	return c.prefix + fmt.Sprint(rapid.IntRange(0, 1).Draw(c.t, "who"))
}

// over ends the schedules of a run, and forgets it: it has no part in the runs
// that follow.
func (c *comparison) over() {
	for _, i := range c.last.Instances {
		if strings.HasPrefix(i.ID, scheduleOf(c.prefix)) && i.Status == "waiting" {
			c.each(func(w *world) string {
				_, err := w.rt.Operate(c.ctx, w.of(i.ID), engine.Cancel, nil, "ann")
				return said("cancelled", err)
			})
		}
	}
	c.each(func(w *world) string { return said("done", w.purge(c.ctx)) })
}

func (c *comparison) advance(d time.Duration) {
	c.each(func(w *world) string { return said("done", w.advance(c.ctx, d)) })
}

// seldom counts what a run must have come to now and then, for the test to say
// something about it.
var seldom = map[string]int{
	"a tick begins a run": 0, "a tick is missed": 0, "an event begins a run": 0, "an event reaches a listen": 0, "a schedule is handed over": 0,
	"a deadline passes": 0, "a timer comes after an outage": 0, "a child is there": 0, "an instance is faulted": 0, "an instance is suspended": 0,
	"a task is held": 0, "a dead letter": 0, "an instance is cancelled": 0, "a command waits for its acknowledgement": 0,
}

func sometimes(what string) {
	if _, ok := seldom[what]; ok {
		seldom[what]++
	}
}

// notice counts what is to be seen in a state.
func (c *comparison) notice() {
	for _, i := range c.last.Instances {
		stream := strings.Join(i.Stream, "\n")
		for what, so := range map[string]bool{
			"a tick begins a run":                     strings.HasPrefix(i.Parent, scheduleOf(c.prefix)+"tick"),
			"an event begins a run":                   strings.HasPrefix(i.Parent, scheduleOf(c.prefix)+"born"),
			"a tick is missed":                        strings.Contains(stream, "TicksMissed"),
			"a schedule is handed over":               strings.HasPrefix(i.ID, scheduleOf(c.prefix)) && i.Status == "cancelled",
			"a deadline passes":                       strings.HasSuffix(i.Error, "/timeout"),
			"a timer comes after an outage":           i.Definition == "m/hours" && strings.Contains(stream, "TimerDue"),
			"a child is there":                        i.Parent != "" && !strings.HasPrefix(i.Parent, "schedule."),
			"an instance is faulted":                  i.Status == "faulted",
			"an instance is suspended":                i.Status == "suspended",
			"an instance is cancelled":                i.Status == "cancelled",
			"a command waits for its acknowledgement": i.Definition == "m/ack" && i.At == "tell",
		} {
			if so {
				sometimes(what)
			}
		}
	}
	for _, k := range c.last.Tasks {
		if k.Assignee != "" {
			sometimes("a task is held")
		}
	}
	if len(c.last.DeadLetters) > 0 {
		sometimes("a dead letter")
	}
}

// manyRuns is how many runs must have come to everything.
const manyRuns = 40

// seen says how often things have happened; after many runs each must have.
func seen(t *testing.T, runs int) {
	t.Helper()
	for _, what := range slices.Sorted(maps.Keys(seldom)) {
		t.Logf("%6d  %s", seldom[what], what)
	}
	if list := never(); len(list) > 0 && runs >= manyRuns {
		t.Errorf("in %d runs it never happened: %q", runs, list)
	}
}

// never lists what has not happened yet.
func never() []string {
	var list []string
	for _, what := range slices.Sorted(maps.Keys(seldom)) {
		if seldom[what] == 0 {
			list = append(list, what)
		}
	}
	return list
}
