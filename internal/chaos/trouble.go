package main

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/aqueduct-engine/aqueduct/internal/testdb"
)

// random is a source for one purpose: the same with every run of a seed,
// whatever else asks for numbers.
func random(seed uint64, purpose string) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprint(h, purpose)
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// event is a line of the schedule of a run.
type event struct {
	at   time.Duration // since the beginning
	what string
	n    int // decides whom it meets, and how
}

// The fractions of a run at which the backup is made and restored.
const (
	backupAt  = 0.35
	restoreAt = 0.55
)

// plan is the schedule of a seed: rounds in which everything happens once, in an
// order of its own, and in the middle a backup and its restore.
func plan(seed uint64, length time.Duration, troubles []string) []event {
	r := random(seed, "plan")
	var list []event
	for at := time.Second; at < length; {
		round := slices.Clone(troubles)
		round = append(round, "deploy", "deploy") // as often as people do who are in a hurry
		r.Shuffle(len(round), func(i, j int) { round[i], round[j] = round[j], round[i] })
		for _, what := range round {
			if at < length {
				list = append(list, event{at, what, r.IntN(1 << 16)})
			}
			at += time.Second + time.Duration(r.IntN(2000))*time.Millisecond
		}
	}
	list = append(list,
		event{time.Duration(float64(length) * backupAt), "backup", 0}, event{time.Duration(float64(length) * restoreAt), "restore", 0})
	slices.SortStableFunc(list, func(a, b event) int { return int(a.at - b.at) })
	return list
}

// troubled is everything that is done to a fixture, by name.
func (b *fixture) troubled() map[string]func(ctx context.Context, n int) error {
	slot := func(n int) *slot { return b.slots[n%len(b.slots)] }
	all := map[string]func(ctx context.Context, n int) error{
		"kill": func(_ context.Context, n int) error { b.kill(slot(n)); return nil },
		"kill all": func(context.Context, int) error {
			for _, s := range b.slots {
				b.kill(s)
			}
			return nil
		},
		"terminate": func(_ context.Context, n int) error {
			if node := slot(n).now(); node != nil {
				node.Signal(syscall.SIGTERM)
			}
			return nil
		},
		"stop and continue": func(ctx context.Context, n int) error {
			if node := slot(n).now(); node != nil {
				node.Signal(syscall.SIGSTOP)
				pause(ctx, time.Duration(500+n%2500)*time.Millisecond)
				node.Signal(syscall.SIGCONT)
			}
			return nil
		},
		"slow host": func(ctx context.Context, n int) error { b.sicken(ctx, b.b, n); return nil },
		"slow hosts": func(ctx context.Context, n int) error {
			b.sicken(ctx, b.a, n)
			return nil
		},
		"deploy": func(ctx context.Context, _ int) error { return b.deploy(ctx) },
	}
	for name, do := range b.place.troubles() {
		all[name] = func(ctx context.Context, _ int) error {
			b.database.Lock() // one after the other: one of them would undo the other
			defer b.database.Unlock()
			return do(ctx)
		}
	}
	return all
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func (b *fixture) kill(s *slot) {
	node := s.now()
	if node == nil {
		return
	}
	if b.open() > 0 {
		b.count("node killed at work")
	}
	node.Kill()
}

// sicken lets a host misbehave for a while.
func (b *fixture) sicken(ctx context.Context, o *outside, n int) {
	m := sick[n%len(sick)]
	o.set(m)
	pause(ctx, troubleTime)
	o.set(healthy)
	b.count("host: " + string(m))
}

// trouble plays a schedule. What lasts goes on beside what comes next, but for
// the backup and its restore, which are alone.
func (b *fixture) trouble(ctx context.Context, list []event) {
	all := b.troubled()
	b.watch()
	defer b.look()
	var active sync.WaitGroup
	begun := time.Now()
	for _, e := range list {
		pause(ctx, e.at-time.Since(begun))
		if ctx.Err() != nil {
			break
		}
		if e.what == "backup" || e.what == "restore" {
			active.Wait()
			b.look() // the file is replaced
			do := b.save
			if e.what == "restore" {
				do = b.restore
			}
			b.done(ctx, e.what, do(ctx))
			b.watch()
			continue
		}
		active.Go(func() { b.done(ctx, e.what, all[e.what](ctx, e.n)) })
	}
	active.Wait()
}

// watch begins to look at the invariants beside everything that happens.
func (b *fixture) watch() { b.looked = testdb.Watch(b.place.name(), time.Second) }

// look ends that, and notes what was found.
func (b *fixture) look() {
	held, err := b.looked()
	b.mu.Lock()
	b.counts["invariants held, seen beside the work"] += held
	b.mu.Unlock()
	if err != nil {
		b.wrong("beside the work: %s", err)
	}
}

// done notes what was done to the fixture, and looks at the invariants.
func (b *fixture) done(ctx context.Context, what string, err error) {
	if err != nil {
		b.wrong("%s: %s", what, err)
		return
	}
	b.count(what)
	b.verify(ctx, what)
}

// names are the troubles of a fixture, in an order that does not change.
func (b *fixture) names() []string { return slices.Sorted(maps.Keys(b.troubled())) }
