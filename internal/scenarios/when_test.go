package scenarios_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cucumber/godog"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// when are the steps in which something happens.
func (w *world) when(sc *godog.ScenarioContext) {
	sc.Step(`^instance "([^"]+)" of "([^"]+)" starts with (.+)$`, w.starts)
	sc.Step(`^the node dies$`, w.die)
	sc.Step(`^the node dies in place of its next commit$`, w.diesBeforeCommit)
	sc.Step(`^a second node joins$`, func(ctx context.Context) error {
		if err := w.start(ctx, immortal); err != nil {
			return err
		}
		n, err := boot(ctx, w, immortal)
		w.more = append(w.more, n)
		return err
	})
	sc.Step(`^the function "([^"]+)" is let go$`, func(name string) { w.function(name).release() })
	sc.Step(`^the wait at "([^"]+)" of "([^"]+)" is called "([^"]+)"$`, w.names)
	sc.Step(`^the timeout at "([^"]+)" of "([^"]+)" is called "([^"]+)"$`, w.namesTimeout)
	sc.Step(`^the result (.+) arrives for "([^"]+)"$`, w.result)
	sc.Step(`^the timer of "([^"]+)" fires$`, w.timer)
	sc.Step(`^signal "([^"]+)" (\{.*\}) is enqueued for "([^"]+)"$`, func(ctx context.Context, id, payload, instance string) error {
		return w.signals(ctx, id, payload, instance, 1)
	})
	sc.Step(`^signal "([^"]+)" (\{.*\}) is enqueued for "([^"]+)" (\d+) times$`, w.signals)
	sc.Step(`^signal "([^"]+)" (\{.*\}) is sent to "([^"]+)"$`, w.sends)
	sc.Step(`^a signal of (\d+) bytes is sent to "([^"]+)"$`, func(ctx context.Context, n int, instance string) error {
		return w.sends(ctx, "big", `{"big": "`+strings.Repeat("x", n)+`"}`, instance)
	})
	sc.Step(`^"([^"]+)" and "([^"]+)" of "([^"]+)" claim the task of "([^"]+)" at once$`, w.race)
	sc.Step(`^the event (\{.*\}) is published$`, w.publishes)
	sc.Step(`^the operator (suspend|resume|retrie|skip|cancel)s "([^"]+)"$`, w.operates)
	sc.Step(`^"([^"]+)" claims the task of "([^"]+)"$`, func(ctx context.Context, user, id string) error { return w.claims(ctx, user, "", id) })
	sc.Step(`^"([^"]+)" of "([^"]+)" claims the task of "([^"]+)"$`, w.claims)
	sc.Step(`^"([^"]+)" completes the task of "([^"]+)" with "([^"]*)" and (.+)$`,
		func(ctx context.Context, user, id, outcome, data string) error {
			return w.completes(ctx, user, nil, id, outcome, data)
		})
	sc.Step(`^"([^"]+)" of "([^"]*)" completes the task of "([^"]+)" with "([^"]*)" and (.+)$`,
		func(ctx context.Context, user, group, id, outcome, data string) error {
			return w.completes(ctx, user, []string{group}, id, outcome, data)
		})
	sc.Step(`^"([^"]+)" delegates the task of "([^"]+)" to "([^"]+)"$`, w.delegates)
	sc.Step(`^(\S+) passes$`, func(text string) error {
		d, err := duration(text)
		time.Sleep(d)
		return err
	})
}

// told keeps a refusal for a later step; other errors fail this one.
func (w *world) told(err error) error {
	w.refused = nil
	if k := problem.KindOf(err); err != nil && k != problem.Internal && k != problem.Unavailable {
		w.refused = err
		return nil
	}
	return err
}

func (w *world) starts(ctx context.Context, id, definition, input string) error {
	if w.notes["instance"] == "" {
		w.notes["instance"], w.notes["definition"], w.notes["input"] = id, definition, input
		w.begun = time.Now()
	}
	return w.told(w.with(ctx, func(n *node) error {
		_, _, err := n.rt.Start(ctx, id, signal.Start{Definition: definition, Input: json.RawMessage(input)}, nil)
		return err
	}))
}

// diesBeforeCommit boots a node that makes its next decision in vain.
func (w *world) diesBeforeCommit(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.node != nil {
		old := w.node
		w.node = nil
		old.life.end()
		if err := old.close(); err != nil {
			return err
		}
	}
	return w.replace(ctx, beforeCommit)
}

// names notes a wait that an instance has at a pointer, when it has it.
func (w *world) names(ctx context.Context, pointer, id, name string) error {
	return w.note(ctx, pointer, id, name, false)
}

func (w *world) namesTimeout(ctx context.Context, pointer, id, name string) error {
	return w.note(ctx, pointer, id, name, true)
}

func (w *world) note(ctx context.Context, pointer, id, name string, timeout bool) error {
	return w.until(ctx, id, func(s snapshot.Snapshot) error {
		for _, x := range s.Waits {
			if x.Pointer == pointer && (x.Kind == snapshot.WaitTimeout) == timeout {
				for _, known := range w.waits {
					if known.Token == x.Token {
						return fmt.Errorf("the wait at %s is one that has a name", pointer)
					}
				}
				w.waits[name] = x
				w.notes[name] = id
				return nil
			}
		}
		return fmt.Errorf("no wait at %s: %+v", pointer, s.Waits)
	})
}

func (w *world) result(ctx context.Context, output, name string) error {
	token := name // of a wait that nobody knows
	if x, ok := w.waits[name]; ok {
		token = x.Token
	}
	id := w.notes[name]
	if id == "" {
		id = w.notes["instance"]
	}
	return w.enqueue(ctx, signal.Envelope{
		SignalID: fmt.Sprintf("late-%d", time.Now().UnixNano()), InstanceID: id, Type: signal.TaskCompleted,
		WaitingToken: token, Payload: json.RawMessage(`{"output":` + output + `}`),
	}, 1)
}

func (w *world) timer(ctx context.Context, name string) error {
	return w.enqueue(ctx, signal.Envelope{
		SignalID: fmt.Sprintf("timer-%d", time.Now().UnixNano()), InstanceID: w.notes[name], Type: signal.TimerDue,
		WaitingToken: w.waits[name].Token,
	}, 1)
}

func (w *world) signals(ctx context.Context, id, payload, instance string, times int) error {
	return w.enqueue(ctx, signal.Envelope{SignalID: id, InstanceID: instance, Type: signal.ExternalSignal, Payload: json.RawMessage(payload)}, times)
}

func (w *world) sends(ctx context.Context, id, payload, instance string) error {
	return w.told(w.with(ctx, func(n *node) error {
		d, err := n.rt.Signal(ctx, signal.Envelope{
			SignalID: id, InstanceID: instance, Type: signal.ExternalSignal, OccurredAt: time.Now(), Payload: json.RawMessage(payload),
		})
		w.answer = string(d)
		return err
	}))
}

func (w *world) publishes(ctx context.Context, event string) error {
	return w.told(w.with(ctx, func(n *node) error {
		_, err := n.rt.PublishEvent(ctx, json.RawMessage(event), nil)
		return err
	}))
}

func (w *world) operates(ctx context.Context, verb, id string) error {
	op := engine.Operation(strings.Replace(verb, "retrie", "retry", 1))
	return w.told(w.with(ctx, func(n *node) error {
		_, err := n.rt.Operate(ctx, w.id(id), op, nil, "operator")
		return err
	}))
}

// task finds the newest task of an instance, as soon as there is one that was
// not yet answered, or when there is none such, the newest.
func (w *world) task(ctx context.Context, id string) (t projections.Task, err error) {
	err = eventually(func() error {
		return w.with(ctx, func(n *node) error {
			page, err := n.db.Parts().Tasks.Tasks(ctx, backend.TaskQuery{InstanceID: id})
			if err != nil {
				return err
			}
			if len(page.Items) == 0 {
				return errors.New("the instance has no task")
			}
			t = page.Items[0]
			for _, x := range page.Items {
				if x.EndedAt.IsZero() {
					t = x
				}
			}
			return nil
		})
	})
	return t, err
}

func (w *world) claims(ctx context.Context, user, group, id string) error {
	t, err := w.task(ctx, id)
	if err != nil {
		return err
	}
	var groups []string
	if group != "" {
		groups = []string{group}
	}
	return w.told(w.with(ctx, func(n *node) error {
		_, err := n.rt.ClaimTask(ctx, t.ID, user, groups)
		return err
	}))
}

func (w *world) completes(ctx context.Context, user string, groups []string, id, outcome, data string) error {
	t, err := w.task(ctx, id)
	if err != nil {
		return err
	}
	return w.told(w.with(ctx, func(n *node) error {
		_, err := n.rt.CompleteTask(ctx, t.ID, user, groups, outcome, json.RawMessage(data))
		return err
	}))
}

// race has two people claim a task at the same time.
func (w *world) race(ctx context.Context, one, other, group, id string) error {
	t, err := w.task(ctx, id)
	if err != nil {
		return err
	}
	results := make(chan error, 2)
	for _, user := range []string{one, other} {
		go func() {
			results <- w.with(ctx, func(n *node) error {
				_, err := n.rt.ClaimTask(ctx, t.ID, user, []string{group})
				return err
			})
		}()
	}
	w.answer = ""
	for range 2 {
		switch err := <-results; {
		case err == nil:
			w.answer += "got it "
		case problem.CodeOf(err) == "task.taken":
			w.answer += "taken "
		default:
			return err
		}
	}
	return nil
}

func (w *world) delegates(ctx context.Context, user, id, to string) error {
	t, err := w.task(ctx, id)
	if err != nil {
		return err
	}
	return w.told(w.with(ctx, func(n *node) error {
		_, err := n.rt.DelegateTask(ctx, t.ID, user, to)
		return err
	}))
}
