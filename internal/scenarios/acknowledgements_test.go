package scenarios_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/cucumber/godog"

	"github.com/aqueduct-engine/aqueduct/ack"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// acknowledgements are the steps about commands that a consumer acknowledges.
func (w *world) acknowledgements(sc *godog.ScenarioContext) {
	sc.Step(`^command (\d+|"[^"]+") of "([^"]+)" is delivered (\d+) times?$`, func(ctx context.Context, at, id string, times int) error {
		return w.command(ctx, id, at, func(e projections.Entry) bool { return e.Deliveries >= times && !e.DeliveredAt.IsZero() })
	})
	sc.Step(`^command (\d+|"[^"]+") of "([^"]+)" has the notice "([^"]+)"$`, func(ctx context.Context, at, id, notice string) error {
		return w.command(ctx, id, at, func(e projections.Entry) bool { return strings.HasPrefix(e.LastError, notice+": ") })
	})
	sc.Step(`^command (\d+|"[^"]+") of "([^"]+)" is acknowledged as processed with (.+)$`, func(ctx context.Context, at, id, output string) error {
		return w.acknowledge(ctx, id, at, ack.Ack{Outcome: ack.Processed, Output: json.RawMessage(output)})
	})
	sc.Step(`^command (\d+|"[^"]+") of "([^"]+)" is acknowledged as failed with "([^"]+)"$`, func(ctx context.Context, at, id, title string) error {
		return w.acknowledge(ctx, id, at, ack.Ack{Outcome: ack.Failed, Error: &snapshot.Error{Title: title}})
	})
	sc.Step(`^command (\d+|"[^"]+") of "([^"]+)" is acknowledged as retry$`, func(ctx context.Context, at, id string) error {
		return w.acknowledge(ctx, id, at, ack.Ack{Outcome: ack.Retry})
	})
	sc.Step(`^the function "([^"]+)" acknowledges as processed with (.+) before it answers$`, func(ctx context.Context, name, output string) {
		w.function(name).onCall = func(int) {
			if err := w.acknowledge(ctx, "i", "2", ack.Ack{Outcome: ack.Processed, Output: json.RawMessage(output)}); err != nil {
				w.log.Error("acknowledgement", "error", err)
			}
		}
	})
	sc.Step(`^the function "([^"]+)" has been called under one key with (.+) only$`, func(name, input string) error {
		f := w.function(name)
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, c := range f.calls {
			if c.key != f.calls[0].key {
				return fmt.Errorf("keys %s and %s", f.calls[0].key, c.key)
			}
			if err := same([]byte(c.input), []byte(input)); err != nil {
				return err
			}
		}
		return nil
	})
	sc.Step(`^the function "([^"]+)" has been called under (\d+) keys$`, func(name string, keys int) error {
		if got := w.function(name).keys(); len(got) != keys {
			return fmt.Errorf("keys %v", got)
		}
		return nil
	})
	sc.Step(`^the node dies after every commit that gives something back$`, func(ctx context.Context) error { return w.start(ctx, everyRelease) })
	sc.Step(`^at least (\d+) nodes have died$`, func(least int) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.lives < least {
			return fmt.Errorf("%d nodes died", w.lives)
		}
		return nil
	})
	sc.Step(`^no command is open$`, func(ctx context.Context) error {
		return eventually(func() error {
			return w.with(ctx, func(n *node) error {
				open, err := n.db.Parts().Streams.Pending(ctx, "", 0)
				if err == nil && len(open) > 0 {
					err = fmt.Errorf("open: %s", printed(open))
				}
				return err
			})
		})
	})
}

// command is that at a position, or the last of a task whose name is in quotes.
func (n *node) command(ctx context.Context, id, at string) (found projections.Entry, err error) {
	rows, err := n.db.Parts().Streams.Stream(ctx, id, 0, projections.MaxLimit)
	for _, row := range rows {
		if strconv.FormatInt(row.Position, 10) == at || row.Type == engine.EntryCall && strings.Contains(string(row.Metadata), "/"+strings.Trim(at, `"`)+`"`) {
			found = row
		}
	}
	if err == nil && found.Position == 0 {
		err = fmt.Errorf("%s has no command %s: %+v", id, at, rows)
	}
	return found, err
}

// command waits until a command's row is as a step says.
func (w *world) command(ctx context.Context, id, at string, ok func(projections.Entry) bool) error {
	return eventually(func() error {
		return w.with(ctx, func(n *node) error {
			row, err := n.command(ctx, id, at)
			if err == nil && !ok(row) {
				err = fmt.Errorf("command %s of %s: %+v", at, id, row)
			}
			return err
		})
	})
}

func (w *world) acknowledge(ctx context.Context, id, at string, a ack.Ack) error {
	return w.told(w.with(ctx, func(n *node) error {
		row, err := n.command(ctx, id, at)
		if err != nil {
			row.Position, err = strconv.ParseInt(at, 10, 64) // of none
		}
		if err != nil {
			return err
		}
		did, err := n.rt.Acknowledge(ctx, id, row.Position, a)
		w.answer = string(did)
		return err
	}))
}
