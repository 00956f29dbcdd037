package scenarios_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cucumber/godog"

	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/schedule"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// lockedBuffer is a log that many goroutines write.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// family are the steps about instances that begin others, about schedules,
// versions and secrets.
func (w *world) family(sc *godog.ScenarioContext) {
	sc.Step(`^early events are kept for (\S+)$`, func(text string) (err error) {
		w.ttl, err = duration(text)
		return err
	})
	sc.Step(`^the child of "([^"]+)" is called "([^"]+)"$`, w.childCalled)
	sc.Step(`^a node runs$`, func(ctx context.Context) error { return w.start(ctx, immortal) })
	sc.Step(`^the function "([^"]+)" has run under (\d+) keys?$`, func(name string, keys int) error {
		if got := len(w.function(name).keys()); got != keys {
			return fmt.Errorf("function %s ran under %d keys", name, got)
		}
		return nil
	})
	sc.Step(`^the node is away for (\S+)$`, w.away)
	sc.Step(`^instances of "([^"]+)" have begun (\d+) times or more$`, w.begunTimes)
	sc.Step(`^no two instances of "([^"]+)" began within (\S+)$`, w.apart)
	sc.Step(`^each tick of "([^"]+)" began one instance, (\S+) after the other$`, w.ticked)
	sc.Step(`^the schedule of "([^"]+)" has missed (\d+) ticks or more$`, w.missed)
	sc.Step(`^the schedule of "([^"]+)" is cancelled$`, w.endSchedule)
	sc.Step(`^the instances of "([^"]+)" move from "([^"]+)" to "([^"]+)" by (\{.*\})$`, w.moves)
	sc.Step(`^"([^"]+)" runs version "([^"]+)"$`, func(ctx context.Context, id, version string) error {
		s, err := w.snapshot(ctx, id)
		if err == nil && s.Definition.Version != version {
			err = fmt.Errorf("%s runs %s", id, s.Definition.Version)
		}
		return err
	})
	sc.Step(`^a newer engine writes the snapshot of "([^"]+)"$`, w.newer)
	sc.Step(`^the snapshot of "([^"]+)" cannot be read because it is newer$`, w.unreadable)
	sc.Step(`^the message is kept for a newer node$`, w.keptForNewer)
	sc.Step(`^a server that wants the password "([^"]+)" of the secret "([^"]+)"$`, w.server)
	sc.Step(`^nothing that is logged contains "([^"]+)"$`, func(text string) error {
		if log := w.logged.String(); strings.Contains(log, text) {
			return fmt.Errorf("found in %s", log)
		}
		return nil
	})
}

func (w *world) childCalled(ctx context.Context, parent, name string) error {
	return eventually(func() error {
		return w.with(ctx, func(n *node) error {
			page, err := n.db.Parts().Instances.Instances(ctx, backend.InstanceQuery{ParentID: w.id(parent)})
			if err != nil {
				return err
			}
			if len(page.Items) != 1 {
				return fmt.Errorf("%d children", len(page.Items))
			}
			w.notes["child "+name] = page.Items[0].ID
			return nil
		})
	})
}

// away stops the node and boots another after a while.
func (w *world) away(ctx context.Context, text string) error {
	d, err := duration(text)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	old := w.node
	w.node = nil
	old.life.end()
	if err := old.close(); err != nil {
		return err
	}
	time.Sleep(d)
	return w.replace(ctx, immortal)
}

// runs returns when the runs of a definition began, the first first; its
// schedule is an instance, too, and is left out.
func (w *world) runs(ctx context.Context, name string) (began []time.Time, err error) {
	err = w.with(ctx, func(n *node) error {
		page, err := n.db.Parts().Instances.Instances(ctx, backend.InstanceQuery{Definition: name, Limit: projections.MaxLimit})
		began = nil
		for _, row := range page.Items {
			if row.BusinessKey != schedule.Key {
				began = append(began, row.StartedAt)
			}
		}
		return err
	})
	slices.SortFunc(began, time.Time.Compare)
	return began, err
}

func (w *world) begunTimes(ctx context.Context, name string, times int) error {
	return eventually(func() error {
		began, err := w.runs(ctx, name)
		if err == nil && len(began) < times {
			err = fmt.Errorf("begun at %v", began)
		}
		return err
	})
}

func (w *world) apart(ctx context.Context, name, text string) error {
	least, err := duration(text)
	if err != nil {
		return err
	}
	began, err := w.runs(ctx, name)
	for i := 1; i < len(began); i++ {
		if gap := began[i].Sub(began[i-1]); gap < least {
			err = errors.Join(err, fmt.Errorf("begun at %v", began))
		}
	}
	return err
}

// ticked looks at a schedule that has ended: as many instances have begun as it
// counts ticks, and it counts one for each interval since it began. When one
// began says nothing: a busy node is late.
func (w *world) ticked(ctx context.Context, name, text string) error {
	every, err := duration(text)
	if err != nil {
		return err
	}
	return eventually(func() error {
		began, err := w.runs(ctx, name)
		if err != nil {
			return err
		}
		return w.with(ctx, func(n *node) error {
			page, err := n.db.Parts().Instances.Instances(ctx, backend.InstanceQuery{Definition: name, BusinessKey: schedule.Key})
			if err != nil || len(page.Items) != 1 {
				return fmt.Errorf("schedules %+v, %v", page.Items, err)
			}
			s, err := n.db.Parts().Writer.Load(ctx, page.Items[0].ID)
			if err != nil {
				return err
			}
			ticks := s.Schedule.Ticks
			due := page.Items[0].StartedAt.Add(time.Duration(int64(ticks)+s.Schedule.Missed+1) * every)
			if len(began) != ticks || !s.Schedule.Due.Equal(due) {
				return fmt.Errorf("begun at %v; schedule %+v, due at %s by its count", began, s.Schedule, due)
			}
			return nil
		})
	})
}

// schedule returns the id of a definition's schedule.
func (w *world) schedule(ctx context.Context, name string) (id string, err error) {
	err = w.with(ctx, func(n *node) error {
		page, err := n.db.Parts().Instances.Instances(ctx, backend.InstanceQuery{Definition: name, BusinessKey: schedule.Key})
		for _, row := range page.Items {
			if row.EndedAt.IsZero() {
				id = row.ID
			}
		}
		if err == nil && id == "" {
			err = fmt.Errorf("%s has no schedule", name)
		}
		return err
	})
	return id, err
}

func (w *world) missed(ctx context.Context, name string, ticks int) error {
	return eventually(func() error {
		id, err := w.schedule(ctx, name)
		if err != nil {
			return err
		}
		s, err := w.snapshot(ctx, id)
		if err == nil && (s.Schedule == nil || s.Schedule.Missed < int64(ticks)) {
			err = fmt.Errorf("schedule %+v", s.Schedule)
		}
		return err
	})
}

func (w *world) endSchedule(ctx context.Context, name string) error {
	id, err := w.schedule(ctx, name)
	if err != nil {
		return err
	}
	return w.operates(ctx, "cancel", id)
}

func (w *world) moves(ctx context.Context, name, from, to, pointers string) error {
	m := definition.Migration{Name: name, From: from, To: to, Actor: "operator"}
	if err := json.Unmarshal([]byte(pointers), &m.Pointers); err != nil {
		return err
	}
	return w.told(w.with(ctx, func(n *node) error {
		_, err := n.rt.Migrate(ctx, m)
		return err
	}))
}

// newer commits the next version of a snapshot as an engine of the future
// would write it.
func (w *world) newer(ctx context.Context, id string) error {
	s, err := w.snapshot(ctx, id)
	if err != nil {
		return err
	}
	s.Version++
	raw, err := s.Encode()
	if err != nil {
		return err
	}
	future := bytes.Replace(raw, []byte(`"engineSchemaVersion":1`), []byte(`"engineSchemaVersion":2`), 1)
	if bytes.Equal(future, raw) {
		return errors.New("the schema version of a snapshot is not where this step looks for it")
	}
	if err := w.with(ctx, func(n *node) error {
		return n.db.Parts().Writer.Commit(ctx, store.Change{Snapshot: &s, Encoded: future})
	}); err != nil {
		return err
	}
	return w.die(ctx) // the next node has it in no cache
}

func (w *world) unreadable(ctx context.Context, id string) error {
	if _, err := w.snapshot(ctx, id); problem.CodeOf(err) != "snapshot.newer" {
		return fmt.Errorf("told %v", err)
	}
	return nil
}

// keptForNewer says that the one message there is was put back, and is no dead
// letter.
func (w *world) keptForNewer(ctx context.Context) error {
	return eventually(func() error {
		if !strings.Contains(w.logged.String(), "snapshot.newer") {
			return errors.New("no node has met it")
		}
		return w.with(ctx, func(n *node) error {
			queues, err := n.db.Parts().Backlog.Queues(ctx)
			if err != nil {
				return err
			}
			kept := 0
			for _, q := range queues {
				kept += q.Ready + q.Delayed + q.Leased
			}
			deadLetters, err := n.db.Parts().DeadLetters.DeadLetters(ctx, backend.DeadLetterQuery{})
			if err == nil && (kept != 1 || len(deadLetters.Items) > 0) {
				err = fmt.Errorf("%d messages, dead letters %+v", kept, deadLetters.Items)
			}
			return err
		})
	})
}

// server is one that a definition calls as URL; it answers 403, quoting what it
// was shown, when it gets the password as a bearer token.
func (w *world) server(password, secret string) error {
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		_, got, basic := r.BasicAuth()
		switch {
		case basic && got == password:
			_, _ = rw.Write([]byte(`{"let": "in"}`)) // a lost answer fails the scenario
		case !basic:
			http.Error(rw, "not with "+r.Header.Get("Authorization"), http.StatusForbidden)
		default:
			http.Error(rw, "who are you?", http.StatusUnauthorized)
		}
	}))
	w.closers = append(w.closers, srv.Close)
	dir, err := os.MkdirTemp("", "secrets")
	if err != nil {
		return err
	}
	w.closers = append(w.closers, func() { os.RemoveAll(dir) })
	raw, err := json.Marshal(map[string]string{"username": "ann", "password": password})
	if err != nil {
		return err
	}
	w.secrets = activity.SecretStore{Dir: dir}
	w.notes["URL"] = srv.URL
	return os.WriteFile(filepath.Join(dir, secret), raw, 0o600)
}
