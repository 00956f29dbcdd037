package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/aqueduct-engine/aqueduct/config"
	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/definition/openworkflow"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/replay"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/sql/embedded"
	"github.com/aqueduct-engine/aqueduct/sql/history"
	"github.com/aqueduct-engine/aqueduct/sql/oracle"
	"github.com/aqueduct-engine/aqueduct/store"
)

// histories reads the instances of the store that a configuration names.
func histories(c config.Config) (*history.Reader, error) {
	if dsn, ok := c.Store.DataSource(); ok {
		return oracle.Histories(oracle.CheckOptions{DSN: dsn, Password: c.Store.Rotating(), Schema: c.Store.SchemaOwner()})
	}
	path, _ := c.Store.SQLite() // the configuration has been checked: it is one of the two
	return embedded.Histories(path)
}

// progressEvery is how often a long verification says how far it is.
const progressEvery = 5 * time.Second

// replays is what verify prints of instances that were made again.
type replays struct {
	Store        string           `json:"store"`
	Equal        int              `json:"equal"`
	Different    int              `json:"different"`
	Unverifiable int              `json:"unverifiable"`
	Turns        int              `json:"turns"`    // that were made again
	Findings     []replay.Finding `json:"findings"` // of those that are not equal
}

// verifyStreams is verify of one instance, or of all.
func verifyStreams(a *app, cmd *cobra.Command, args []string, all, strict bool) error {
	if all == (len(args) > 0) {
		return usage("name an instance, or write --all: not both")
	}
	l, err := a.load(cmd)
	if err != nil {
		return err
	}
	id := ""
	if !all {
		id = args[0]
	}
	return replayed(cmd.Context(), a, l, id, strict)
}

// replayed makes instances again, one by id or all, and says what it has found.
func replayed(ctx context.Context, a *app, l *config.Loaded, id string, strict bool) error {
	from, err := histories(l.Config)
	if err != nil {
		return err
	}
	defer from.Close()
	result, begun := replays{Store: shown(l), Findings: []replay.Finding{}}, time.Now()
	said := begun
	take := func(f replay.Finding) error {
		result.take(f)
		if !a.json && (f.Verdict != replay.Equal || id != "") {
			fmt.Fprintln(a.page.out, f)
		}
		if time.Since(said) > progressEvery {
			said = time.Now()
			fmt.Fprintf(a.err, "%s, through %s\n", result, f.Instance)
		}
		return nil
	}
	defs := definition.Reading(from, openworkflow.Parsers())
	if id == "" {
		err = replay.All(ctx, from, defs, take)
	} else {
		var f replay.Finding
		if f, err = replay.One(ctx, from, defs, id); err == nil {
			err = take(f)
		}
	}
	if err != nil {
		return err
	}
	if a.json {
		err = a.page.print(result)
	} else {
		fmt.Fprintf(a.page.out, "%s, %s\n", result, time.Since(begun).Round(time.Millisecond))
	}
	if err != nil {
		return err
	}
	if result.Unverifiable > 0 && !strict {
		fmt.Fprintf(a.err, "unverifiable: %d; with --strict they fail the command\n", result.Unverifiable)
	}
	return result.failure(strict)
}

// failure is the error of a verification: a difference fails it, and what cannot be said
// only where somebody asks for that.
func (r replays) failure(strict bool) error {
	switch {
	case r.Different > 0:
		return problem.New(problem.Internal, "verify.different", "%d instances of %s are not what their streams make of them", r.Different, r.Store).
			WithHint("keep a copy of the database; a node goes on by the snapshot, and the stream is what people see")
	case strict && r.Unverifiable > 0:
		return problem.New(problem.Internal, "verify.unverifiable", "%d instances of %s cannot be made again", r.Unverifiable, r.Store).
			WithHint("it is said of each why; without --strict they are counted only")
	}
	return nil
}

// String says it in one line.
func (r replays) String() string {
	return fmt.Sprintf("%d turns made again: %d instances equal, %d different, %d unverifiable", r.Turns, r.Equal, r.Different, r.Unverifiable)
}

func (r *replays) take(f replay.Finding) {
	r.Turns += f.Turns
	switch f.Verdict {
	case replay.Equal:
		r.Equal++
		return
	case replay.Different:
		r.Different++
	case replay.Unverifiable:
		r.Unverifiable++
	}
	r.Findings = append(r.Findings, f)
}

// showAt prints the state of an instance after the turn of a position, as snapshots are
// stored.
func showAt(a *app, cmd *cobra.Command, id string, position int64) error {
	l, err := a.load(cmd)
	if err != nil {
		return err
	}
	from, err := histories(l.Config)
	if err != nil {
		return err
	}
	defer from.Close()
	ctx := cmd.Context()
	key, err := from.Secret(ctx)
	if err != nil {
		return err
	}
	var state snapshot.Snapshot
	err = from.History(ctx, id, func(stored []byte, stream replay.Stream) error {
		s, found, err := replay.Replayer{Definitions: definition.Reading(from, openworkflow.Parsers()), Key: key}.At(ctx, id, stored, position, stream)
		if err == nil && found.Verdict != replay.Equal {
			err = problem.New(problem.Internal, "verify.different", "%s", found)
		}
		state = s
		return err
	})
	if err != nil {
		return err
	}
	raw, err := state.Encode()
	if err != nil {
		return err
	}
	return a.page.print(json.RawMessage(raw))
}

// past says what instances of a node's database were. It opens the database once more,
// for reading, when somebody asks first.
type past struct {
	config config.Config

	mu     sync.Mutex
	from   *history.Reader
	of     *replay.Past
	closed bool
}

// At implements api.Past.
func (p *past) At(ctx context.Context, id string, position int64) (snapshot.Snapshot, error) {
	of, err := p.open()
	if err != nil {
		return snapshot.Snapshot{}, err
	}
	return of.At(ctx, id, position)
}

func (p *past) open() (*replay.Past, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, store.ErrClosed
	}
	if p.of == nil {
		from, err := histories(p.config)
		if err != nil {
			return nil, err
		}
		p.from, p.of = from, replay.NewPast(from, definition.Reading(from, openworkflow.Parsers()))
	}
	return p.of, nil
}

func (p *past) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed = true; p.from != nil {
		_ = p.from.Close() // it has written nothing
	}
}
