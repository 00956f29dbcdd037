package runtime

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
)

// functions knows which functions no node of the database has.
type functions struct {
	*Config

	mu    sync.Mutex
	asked time.Time
	all   []string // of live nodes, when they were asked for
}

// declaredFor is how long what nodes perform is taken as it was.
const declaredFor = time.Second

// unclaimedMax is how many commands that no node has are looked at.
const unclaimedMax = 1_000

// declare says what this node performs, as far as its performer can list it.
func (f *functions) declare(ctx context.Context) error {
	p, ok := f.Performer.(interface{ Targets() []string })
	if !ok || f.Store.Functions == nil {
		return nil
	}
	return f.Store.Functions.Declare(ctx, p.Targets())
}

// unserved returns those of some targets that no live node performs. What the engine
// itself does with commands needs no function.
func (f *functions) unserved(ctx context.Context, targets []string) (list []string, err error) {
	for _, t := range targets {
		if t != engine.TargetEvent && t != engine.TargetLifecycle && !f.Performer.Can(t) {
			list = append(list, t)
		}
	}
	if len(list) == 0 || f.Store.Functions == nil {
		return nil, nil
	}
	all, err := f.declared(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list, func(t string) bool { return slices.Contains(all, t) }), nil
}

func (f *functions) declared(ctx context.Context) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.Now()
	if !f.asked.IsZero() && now.Sub(f.asked).Abs() < declaredFor {
		return f.all, nil
	}
	all, err := f.Store.Functions.Declared(ctx)
	if err == nil {
		f.asked, f.all = now, all
	}
	return all, err
}

// Unserved reports whether no live node performs commands for a target. What cannot be
// asked is taken to be served.
func (f *functions) Unserved(ctx context.Context, target string) bool {
	list, err := f.unserved(ctx, []string{target})
	if err != nil && ctx.Err() == nil {
		f.Log.Warn("it is not known which functions nodes have", "error", err)
	}
	return len(list) > 0
}

// waiting counts the pending commands that no live node performs.
func (f *functions) waiting(ctx context.Context) (count int, err error) {
	if f.Store.Functions == nil {
		return 0, nil
	}
	found, err := f.Store.Functions.Unclaimed(ctx, unclaimedMax)
	if err != nil {
		return 0, err
	}
	for _, u := range found {
		list, err := f.unserved(ctx, []string{u.Name})
		if err != nil {
			return 0, err
		}
		count += len(list) * u.Rows
	}
	return count, nil
}
