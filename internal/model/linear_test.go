package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/model/memory"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
	"github.com/aqueduct-engine/aqueduct/store/storetest"
)

// step is one call in a history: what was asked, about what, by whom, and what
// was said.
type step struct{ thing, op, who, arg string }

// sequential says what one thing does when nobody else is there: the state
// after a step with an answer, and whether that answer is possible.
type sequential func(state, op, who, arg, said string) (bool, string)

// history is what several callers did at once.
type history struct {
	mu    sync.Mutex
	begun time.Time
	list  []porcupine.Operation
}

// call makes a step and notes when it began and ended.
func (h *history) call(client int, in step, do func() string) {
	begin := time.Since(h.begun).Nanoseconds()
	out := do()
	end := time.Since(h.begun).Nanoseconds()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, porcupine.Operation{ClientId: client, Input: in, Call: begin, Output: out, Return: end})
}

// check looks for an order in which one caller after the other would have been
// told the same.
func (h *history) check(t *testing.T, initial string, do sequential) {
	t.Helper()
	model := porcupine.Model{
		Partition: func(list []porcupine.Operation) [][]porcupine.Operation {
			by := map[string][]porcupine.Operation{}
			for _, o := range list {
				by[o.Input.(step).thing] = append(by[o.Input.(step).thing], o)
			}
			var parts [][]porcupine.Operation
			for _, part := range by {
				parts = append(parts, part)
			}
			return parts
		},
		Init: func() any { return initial },
		Step: func(state, input, output any) (bool, any) {
			in := input.(step)
			ok, next := do(state.(string), in.op, in.who, in.arg, output.(string))
			return ok, next
		},
		DescribeOperation: func(input, output any) string { return fmt.Sprint(input, " -> ", output) },
	}
	result, info := porcupine.CheckOperationsVerbose(model, h.list, 10*time.Minute)
	if result == porcupine.Ok {
		return
	}
	f, err := os.CreateTemp("", "aqueduct-history-*.html")
	if err == nil {
		err = errors.Join(porcupine.Visualize(model, info, f), f.Close())
	}
	for _, part := range model.Partition(h.list) {
		if porcupine.CheckOperations(model, part) {
			continue
		}
		slices.SortFunc(part, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
		for _, o := range part {
			t.Logf("%9d to %9d: %v -> %v", o.Call, o.Return, o.Input, o.Output)
		}
	}
	t.Errorf("%d calls are not linearizable (%s); drawn in %s (%v)", len(h.list), result, f.Name(), err)
}

// pairs runs a test on every store, with two nodes on one database.
func pairs(t *testing.T, test func(t *testing.T, nodes [2]*world)) {
	t.Helper()
	for name, open := range map[string]func() func(context.Context) (*testdb.Database, error){
		"memory": func() func(context.Context) (*testdb.Database, error) {
			db := memory.New(nil)
			return func(context.Context) (*testdb.Database, error) { return testdb.At(db.Open("")) }
		},
		"sqlite": func() func(context.Context) (*testdb.Database, error) {
			file := testdb.OnFile(t)()
			return func(ctx context.Context) (*testdb.Database, error) { return testdb.Open(ctx, file) }
		},
		"oracle": func() func(context.Context) (*testdb.Database, error) {
			schema := testdb.OnOracle(t)()
			return func(ctx context.Context) (*testdb.Database, error) { return testdb.OpenLasting(ctx, schema) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			opening := open()
			var nodes [2]*world
			for i := range nodes {
				nodes[i] = &world{name: name, open: opening, sick: &atomic.Bool{}}
				if err := nodes[i].start(t.Context()); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					if err := nodes[i].close(); err != nil {
						t.Error(err)
					}
				})
			}
			test(t, nodes)
		})
	}
}

// crowd has callers make calls at once, half of them on each node.
func crowd(nodes [2]*world, callers, calls int, do func(h *history, caller int, w *world, r *rand.Rand)) *history {
	h := &history{begun: time.Now()}
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 7))
			for range calls {
				do(h, i, nodes[i%2], r)
			}
		})
	}
	all.Wait()
	return h
}

// code is what a caller is told: ok, or why not.
func code(err error) string {
	if err == nil {
		return "ok"
	}
	if c := problem.CodeOf(err); c != "" {
		return c
	}
	return err.Error()
}

// Claims, releases and completions of a task have an order.
func TestTasksAreLinearizable(t *testing.T) {
	pairs(t, func(t *testing.T, nodes [2]*world) {
		var ids []string
		for i := range 4 {
			id := fmt.Sprint("i", i)
			_, _, _, err := nodes[0].rt.StartOrSignal(t.Context(), id, signal.Start{
				Definition: "m/flow", Input: json.RawMessage(`{}`), Signal: &signal.FirstSignal{ID: "s", Type: "go"},
			}, nil)
			if err != nil {
				t.Fatal(err)
			}
		}
		s, err := nodes[0].quiet(t.Context(), "i")
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range s.Tasks {
			ids = append(ids, nodes[0].of(k.ID))
		}
		if len(ids) != 4 {
			t.Fatalf("%d tasks", len(ids))
		}
		h := crowd(nodes, 6, 25, func(h *history, caller int, w *world, r *rand.Rand) {
			in := step{thing: ids[r.IntN(len(ids))], who: fmt.Sprint("u", caller%3), op: []string{"claim", "claim", "claim", "release", "release", "complete"}[r.IntN(6)]}
			h.call(caller, in, func() string {
				var err error
				switch in.op {
				case "claim":
					_, err = w.rt.ClaimTask(t.Context(), in.thing, in.who, []string{"clerks"})
				case "release":
					_, err = w.rt.ReleaseTask(t.Context(), in.thing, in.who)
				case "complete":
					_, err = w.rt.CompleteTask(t.Context(), in.thing, in.who, nil, "yes", nil)
				}
				return code(err)
			})
		})
		h.check(t, "", func(holder, op, who, _, said string) (bool, string) {
			const completed = "completed"
			switch {
			case holder == completed:
				return said != "ok", holder
			case op == "complete" && holder == "":
				return said == "task.not-claimed", holder
			case op == "claim" && holder != "" && holder != who:
				return said == "task.taken", holder
			case holder != "" && holder != who:
				return said == "task.not-yours", holder
			case op == "claim":
				return said == "ok", who
			case op == "release": // one that nobody holds is given back already
				return said == "ok", ""
			}
			return said == "ok", completed
		})
	})
}

// Of many starts with one key one begins an instance, and all are told which.
func TestStartKeysAreLinearizable(t *testing.T) {
	pairs(t, func(t *testing.T, nodes [2]*world) {
		h := crowd(nodes, 6, 12, func(h *history, caller int, w *world, r *rand.Rand) {
			in := step{thing: fmt.Sprint("key", r.IntN(8)), op: "start"}
			h.call(caller, in, func() string {
				id, isNew, err := w.rt.Start(t.Context(), "", signal.Start{Definition: "m/flow", Input: json.RawMessage(`{}`), StartKey: in.thing}, nil)
				return fmt.Sprint(id, " ", isNew, " ", code(err))
			})
		})
		h.check(t, "", func(id, _, _, _, said string) (bool, string) {
			var got string
			var isNew bool
			var how string
			if _, err := fmt.Sscan(said, &got, &isNew, &how); err != nil || how != "ok" {
				return false, id
			}
			return isNew == (id == "") && (id == "" || id == got), got
		})
	})
}

// queued is what is known when a caller is told that its signal is in the queue, for
// the instance was locked just then: it is not decided, and may be at any time.
func queued(had string) string {
	if had == "" {
		return "perhaps"
	}
	return had
}

// Of many signals with one id one is applied.
func TestSignalIDsAreLinearizable(t *testing.T) {
	pairs(t, func(t *testing.T, nodes [2]*world) {
		if _, _, err := nodes[0].rt.Start(t.Context(), "i", signal.Start{Definition: "m/flow", Input: json.RawMessage(`{}`)}, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := nodes[0].quiet(t.Context(), "i"); err != nil {
			t.Fatal(err)
		}
		h := crowd(nodes, 6, 8, func(h *history, caller int, w *world, r *rand.Rand) {
			in := step{thing: fmt.Sprint("s", r.IntN(10)), op: "signal"}
			h.call(caller, in, func() string {
				did, err := w.rt.Signal(t.Context(), envelope("i", in.thing, "go"))
				if err != nil {
					return code(err)
				}
				return string(did)
			})
		})
		h.check(t, "", func(had, _, _, _, said string) (bool, string) {
			switch engine.Disposition(said) {
			case engine.Applied, engine.Buffered:
				return had != "had", "had"
			case "duplicate":
				return had != "", "had"
			}
			return said == "queued", queued(had)
		})
	})
}

// Of many messages of one tick, as when nodes die with it in hand, one begins a
// run; whoever comes later is told that it is stale.
func TestTicksAreLinearizable(t *testing.T) {
	pairs(t, func(t *testing.T, nodes [2]*world) {
		if _, _, err := nodes[0].cat.Publish(t.Context(), "tick.yaml", []byte(scheduled("ticks-", 1)["tick"])); err != nil {
			t.Fatal(err)
		}
		id := scheduleOf("ticks-") + "tick.1.1.0"
		h := crowd(nodes, 6, 8, func(h *history, caller int, w *world, _ *rand.Rand) {
			snap, err := w.st.Writer.Load(t.Context(), id)
			if err != nil || len(snap.Waits) != 1 {
				t.Errorf("%v: %+v", err, snap.Waits)
				return
			}
			h.call(caller, step{thing: snap.Waits[0].Token, op: "tick"}, func() string {
				did, err := w.rt.Signal(t.Context(), signal.Envelope{
					SignalID: fmt.Sprint("tick-", caller), InstanceID: id, Type: signal.TimerDue, WaitingToken: snap.Waits[0].Token, OccurredAt: time.Now(), DueAt: snap.Waits[0].Until,
				})
				if err != nil {
					return code(err)
				}
				return string(did)
			})
		})
		h.check(t, "", func(had, _, _, _, said string) (bool, string) {
			switch said {
			case string(engine.Applied):
				return had != "had", "had"
			case string(engine.Stale), "signal.stale":
				return had != "", "had"
			}
			return said == "queued", queued(had)
		})
		if _, err := nodes[0].quiet(t.Context(), "ticks-"); err != nil {
			t.Fatal(err)
		}
		snap, err := nodes[0].st.Writer.Load(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		page, err := nodes[0].st.Instances.Instances(t.Context(), backend.InstanceQuery{Limit: projections.MaxLimit})
		if err != nil {
			t.Fatal(err)
		}
		began := 0
		for _, row := range page.Items {
			if row.ParentID == id {
				began++
			}
		}
		if began != snap.Schedule.Ticks || snap.Schedule.Ticks < 2 {
			t.Errorf("%d ticks have begun %d runs", snap.Schedule.Ticks, began)
		}
	})
}

// A claim of a command compares and sets.
func TestClaimsAreLinearizable(t *testing.T) {
	pairs(t, func(t *testing.T, nodes [2]*world) {
		claim := commands(t, nodes[0].st.Writer)
		h := crowd(nodes, 6, 25, func(h *history, caller int, w *world, r *rand.Rand) {
			owners := []string{"", nodes[0].st.Nodes.Node(), nodes[1].st.Nodes.Node()}
			in := step{thing: fmt.Sprint(2 + r.IntN(3)), op: "claim", who: owners[r.IntN(3)], arg: owners[r.IntN(3)]}
			h.call(caller, in, func() string {
				var position int64
				if _, err := fmt.Sscan(in.thing, &position); err != nil {
					return err.Error()
				}
				c := store.Change{Claims: []store.Claim{{InstanceID: claim, Position: position, Expect: in.arg, Owner: in.who}}}
				err := w.st.Writer.Commit(t.Context(), c)
				for problem.CodeOf(err) == "store.locked" { // another had the row for too long
					err = w.st.Writer.Commit(t.Context(), c)
				}
				switch {
				case err == nil:
					return "ok"
				case errors.Is(err, store.ErrTaken):
					return "taken"
				}
				return err.Error()
			})
		})
		h.check(t, "", func(owner, _, to, expect, said string) (bool, string) {
			switch said {
			case "ok":
				return owner == expect, to
			case "taken":
				return owner != expect, owner
			}
			return false, owner
		})
	})
}

// A lock has one owner at most.
func TestLocksAreLinearizable(t *testing.T) {
	pairs(t, func(t *testing.T, nodes [2]*world) {
		h := crowd(nodes, 4, 30, func(h *history, caller int, w *world, r *rand.Rand) {
			in := step{thing: fmt.Sprint("lock", r.IntN(2)), who: w.st.Nodes.Node(), op: []string{"lock", "unlock"}[r.IntN(2)]}
			h.call(caller, in, func() string {
				if in.op == "unlock" {
					return code(w.st.Locks.Unlock(t.Context(), in.thing))
				}
				ok, err := w.st.Locks.Lock(t.Context(), in.thing, time.Hour)
				return fmt.Sprint(ok, code(err))
			})
		})
		h.check(t, "", func(owner, op, who, _, said string) (bool, string) {
			switch {
			case op == "unlock" && owner == who:
				return said == "ok", ""
			case op == "unlock":
				return said == "ok", owner
			case said == "trueok":
				return owner == "" || owner == who, who
			}
			return said == "falseok", owner // of two who try at once, both may be told no
		})
	})
}

// commands is an instance with three open commands, at positions 2 to 4, that no
// node performs.
func commands(t *testing.T, st store.Writer) string {
	t.Helper()
	change, err := storetest.Whole("commands", time.Now().UTC())
	if err != nil {
		t.Fatal(err)
	}
	change.Rows.Stream = change.Rows.Stream[:2] // an event, and a command
	for position := int64(3); position <= 4; position++ {
		more := change.Rows.Stream[1]
		more.Position = position
		change.Rows.Stream = append(change.Rows.Stream, more)
	}
	change.Send = nil
	if err := st.Commit(t.Context(), change); err != nil {
		t.Fatal(err)
	}
	return "commands"
}
