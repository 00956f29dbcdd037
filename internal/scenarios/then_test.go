package scenarios_test

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/cucumber/godog"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// then are the steps that look.
func (w *world) then(sc *godog.ScenarioContext) {
	sc.Step(`^"([^"]+)" is (pending|running|waiting|suspended|cancelled|faulted|completed)$`, w.is)
	sc.Step(`^"([^"]+)" is completed with (.+)$`, w.isCompleted)
	sc.Step(`^"([^"]+)" is faulted with (\d+) at "([^"]+)"$`, w.isFaulted)
	sc.Step(`^the error of "([^"]+)" says "([^"]+)"$`, func(ctx context.Context, id, text string) error {
		s, err := w.snapshot(ctx, id)
		if err != nil {
			return err
		}
		if s.Error == nil || !strings.Contains(s.Error.Type+" "+s.Error.Title+" "+s.Error.Detail, text) {
			return fmt.Errorf("error %+v", s.Error)
		}
		return nil
	})
	sc.Step(`^"([^"]+)" waits at "([^"]+)"$`, func(ctx context.Context, id, pointer string) error {
		return w.until(ctx, id, func(s snapshot.Snapshot) error {
			for _, x := range s.Waits {
				if x.Pointer == pointer {
					return nil
				}
			}
			return fmt.Errorf("waits %+v", s.Waits)
		})
	})
	sc.Step(`^"([^"]+)" has (\d+) waits$`, func(ctx context.Context, id string, n int) error {
		return w.until(ctx, id, func(s snapshot.Snapshot) error {
			if len(s.Waits) != n {
				return fmt.Errorf("%d waits: %+v", len(s.Waits), s.Waits)
			}
			return nil
		})
	})
	sc.Step(`^the function "([^"]+)" has been called (\d+) times? under (\d+) keys?$`, w.called)
	sc.Step(`^the function "([^"]+)" is being performed$`, func(name string) error {
		return eventually(func() error {
			if w.function(name).count() == 0 {
				return fmt.Errorf("function %s was not called", name)
			}
			return nil
		})
	})
	sc.Step(`^the stream of "([^"]+)" has (\d+) "([^"]+)"$`, func(ctx context.Context, id string, n int, typ string) error {
		return w.streams(ctx, id, n, typ, "")
	})
	sc.Step(`^the stream of "([^"]+)" has (\d+) "([^"]+)" that (?:is|are) (applied|stale|closed|buffered)$`, w.streams)
	sc.Step(`^the snapshot of "([^"]+)" is noted$`, func(ctx context.Context, id string) error {
		s, err := w.snapshot(ctx, id)
		if err != nil {
			return err
		}
		raw, err := s.Encode()
		w.notes["snapshot "+id] = string(raw)
		return err
	})
	sc.Step(`^the snapshot of "([^"]+)" has not changed$`, func(ctx context.Context, id string) error {
		s, err := w.snapshot(ctx, id)
		if err != nil {
			return err
		}
		raw, err := s.Encode()
		if err == nil && string(raw) != w.notes["snapshot "+id] {
			err = fmt.Errorf("now it is %s", raw)
		}
		return err
	})
	sc.Step(`^the answer is "([^"]+)"$`, func(want string) error {
		if w.answer != want || w.refused != nil {
			return fmt.Errorf("the answer is %q, %v", w.answer, w.refused)
		}
		return nil
	})
	sc.Step(`^it is refused with "([^"]+)"$`, func(code string) error {
		if problem.CodeOf(w.refused) != code {
			return fmt.Errorf("told %v", w.refused)
		}
		return nil
	})
	sc.Step(`^it is not refused$`, func() error { return w.refused })
	sc.Step(`^the task of "([^"]+)" is (ready|reserved|completed|cancelled|expired)$`, func(ctx context.Context, id, status string) error {
		return eventually(func() error {
			t, err := w.task(ctx, id)
			if err == nil && t.Status != status {
				err = fmt.Errorf("task %s is %s", t.ID, t.Status)
			}
			return err
		})
	})
	w.thenPeople(sc)
	sc.Step(`^no message is left$`, func(ctx context.Context) error { return w.drained(ctx, false) })
	sc.Step(`^no message is left but later$`, func(ctx context.Context) error { return w.drained(ctx, true) })
	sc.Step(`^one of them has it$`, func() error {
		if w.answer != "got it taken " && w.answer != "taken got it " {
			return fmt.Errorf("they were told: %s", w.answer)
		}
		return nil
	})
	sc.Step(`^it took at least (\S+) from the start of "([^"]+)" to its last turn$`, w.took)
	sc.Step(`^the "([^"]+)" of "([^"]+)" came (\S+) or more after it started, by this clock$`, w.came)
	sc.Step(`^the wait at "([^"]+)" of "([^"]+)" is due a calendar month after it began$`, w.monthly)
	sc.Step(`^nothing of "([^"]+)" contains "([^"]+)"$`, w.without)
	sc.Step(`^it ends as when it is not disturbed$`, w.undisturbed)
	sc.Step(`^the first decision and the committed one have the same bytes$`, w.sameBytes)
}

func (w *world) is(ctx context.Context, id, status string) error {
	return w.until(ctx, id, func(s snapshot.Snapshot) error {
		if string(s.Status) != status {
			return fmt.Errorf("%s is %s, error %+v, waits %+v", id, s.Status, s.Error, s.Waits)
		}
		return nil
	})
}

func (w *world) isCompleted(ctx context.Context, id, output string) error {
	if err := w.is(ctx, id, "completed"); err != nil {
		return err
	}
	s, err := w.snapshot(ctx, id)
	if err != nil {
		return err
	}
	return same(s.State.Output, []byte(output))
}

func (w *world) isFaulted(ctx context.Context, id string, status int, pointer string) error {
	return w.until(ctx, id, func(s snapshot.Snapshot) error {
		if s.Status != snapshot.Faulted || s.Error.Status != status || s.Error.Instance != pointer {
			return fmt.Errorf("%s is %s, error %+v, waits %+v", id, s.Status, s.Error, s.Waits)
		}
		return nil
	})
}

func (w *world) called(name string, calls, keys int) error {
	return eventually(func() error {
		f := w.function(name)
		if f.count() != calls || len(f.keys()) != keys {
			return fmt.Errorf("function %s was called %d times under %d keys", name, f.count(), len(f.keys()))
		}
		return nil
	})
}

func (w *world) streams(ctx context.Context, id string, n int, typ, disposition string) error {
	return eventually(func() error {
		all, err := w.stream(ctx, id)
		if err != nil {
			return err
		}
		found := 0
		for _, e := range all {
			if e.Type == typ && is(e, disposition) {
				found++
			}
		}
		if found != n {
			return fmt.Errorf("%d of them in\n%s", found, printed(all))
		}
		return nil
	})
}

// is reports whether an entry has a disposition; "" is any.
func is(e projections.Entry, disposition string) bool {
	has := strings.Contains(string(e.Metadata), `"disposition":`)
	switch disposition {
	case "":
		return true
	case "applied":
		return !has || strings.Contains(string(e.Metadata), `"disposition":"applied"`)
	}
	return strings.Contains(string(e.Metadata), `"disposition":"`+disposition+`"`)
}

func printed(all []projections.Entry) string {
	var b strings.Builder
	for _, e := range all {
		fmt.Fprintf(&b, "%d %s %s %s %s %s\n", e.Position, e.Kind, e.Direction, e.Type, e.Data, e.Metadata)
	}
	return b.String()
}

// drained says that every queue is empty, and no dead letter was made.
func (w *world) drained(ctx context.Context, later bool) error {
	return eventually(func() error {
		return w.with(ctx, func(n *node) error {
			queues, err := n.db.Parts().Backlog.Queues(ctx)
			if err != nil {
				return err
			}
			for _, q := range queues {
				if later {
					q.Delayed = 0
				}
				if q.Ready+q.Delayed+q.Leased > 0 {
					return fmt.Errorf("queue %+v", q)
				}
			}
			deadLetters, err := n.db.Parts().DeadLetters.DeadLetters(ctx, backend.DeadLetterQuery{})
			if err == nil && len(deadLetters.Items) > 0 {
				err = fmt.Errorf("dead letters %+v", deadLetters.Items)
			}
			return err
		})
	})
}

// without looks for a text in everything that is kept of an instance.
func (w *world) without(ctx context.Context, id, text string) error {
	s, err := w.snapshot(ctx, id)
	if err != nil {
		return err
	}
	raw, err := s.Encode()
	if err != nil {
		return err
	}
	all, err := w.stream(ctx, id)
	if err != nil {
		return err
	}
	if kept := string(raw) + printed(all); strings.Contains(kept, text) {
		return fmt.Errorf("found in\n%s", kept)
	}
	return nil
}

// undisturbed runs the scenario's first instance again, in a database of its
// own with a node that lives, and compares what is left.
func (w *world) undisturbed(ctx context.Context) error {
	id, definition, input := w.notes["instance"], w.notes["definition"], w.notes["input"]
	if err := w.is(ctx, id, "completed"); err != nil {
		return err
	}
	if w.lives < 3 {
		return fmt.Errorf("only %d nodes died", w.lives)
	}
	where, err := w.elsewhere()
	if err != nil {
		return err
	}
	twin := newWorld(where)
	twin.documents, twin.limits = w.documents, w.limits
	for name, f := range w.functions {
		twin.function(name).answers = f.answers
	}
	defer twin.close()
	if err := twin.starts(ctx, id, definition, input); err != nil {
		return err
	}
	if err := twin.is(ctx, id, "completed"); err != nil {
		return err
	}
	mine, err := w.left(ctx, id)
	if err != nil {
		return err
	}
	its, err := twin.left(ctx, id)
	if err == nil && mine != its {
		err = fmt.Errorf("disturbed:\n%s\nundisturbed:\n%s", mine, its)
	}
	return err
}

// left is what a completed instance leaves: its output, its stream but for
// times and secrets, and what reached the functions, once for each key.
func (w *world) left(ctx context.Context, id string) (string, error) {
	s, err := w.snapshot(ctx, id)
	if err != nil {
		return "", err
	}
	all, err := w.stream(ctx, id)
	if err != nil {
		return "", err
	}
	lines := []string{fmt.Sprintf("version %d position %d output %s", s.Version, s.Position, s.State.Output)}
	for _, e := range all {
		lines = append(lines, fmt.Sprintf("%d %s %s %s", e.Position, e.Kind, e.Direction, e.Type))
	}
	var effects []string
	for name, f := range w.functions {
		seen := map[string]bool{}
		f.mu.Lock()
		for _, c := range f.calls {
			if !seen[c.key] {
				effects = append(effects, name+" "+c.input)
			}
			seen[c.key] = true
		}
		f.mu.Unlock()
	}
	sort.Strings(effects)
	return strings.Join(append(lines, effects...), "\n"), nil
}

// sameBytes compares the decision that a node did not live to commit with the
// snapshot that its successor committed.
func (w *world) sameBytes(ctx context.Context) error {
	first := w.lost.Load()
	if first == nil {
		return fmt.Errorf("no decision was lost")
	}
	return w.until(ctx, first.Snapshot.InstanceID, func(s snapshot.Snapshot) error {
		raw, err := s.Encode()
		if err != nil {
			return err
		}
		if string(raw) != string(first.Encoded) {
			return fmt.Errorf("first %s\nthen %s", first.Encoded, raw)
		}
		return nil
	})
}

func (w *world) took(ctx context.Context, least, id string) error {
	d, err := duration(least)
	if err != nil {
		return err
	}
	s, err := w.snapshot(ctx, id)
	if err == nil && s.UpdatedAt.Sub(s.StartedAt) < d {
		err = fmt.Errorf("from %s to %s", s.StartedAt, s.UpdatedAt)
	}
	return err
}

// came checks by the clock of the test when an entry was seen first: the step
// before has just seen it.
func (w *world) came(_ context.Context, _, _, least string) error {
	d, err := duration(least)
	if took := time.Since(w.begun); err == nil && took < d {
		err = fmt.Errorf("after %s", took)
	}
	return err
}

// monthly checks a due time with a calendar of its own: the same day of the
// next month, or its last when it has none such.
func (w *world) monthly(ctx context.Context, pointer, id string) error {
	s, err := w.snapshot(ctx, id)
	if err != nil {
		return err
	}
	for _, x := range s.Waits {
		if x.Pointer != pointer {
			continue
		}
		from := s.StartedAt
		last := time.Date(from.Year(), from.Month()+2, 0, 0, 0, 0, 0, time.UTC).Day()
		want := time.Date(from.Year(), from.Month()+1, min(from.Day(), last), from.Hour(), from.Minute(), from.Second(), from.Nanosecond(), time.UTC)
		if !x.Until.Equal(want) {
			return fmt.Errorf("due %s, want %s", x.Until, want)
		}
		return nil
	}
	return fmt.Errorf("waits %+v", s.Waits)
}
