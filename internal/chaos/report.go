package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aqueduct-engine/aqueduct/internal/chaos/judge"
)

// known are kinds of anomalies that the engine is known to have: they are
// reported, and do not fail a run. There is none.
var known []string

// employ lets all clients work until ctx ends, and finish what they are at.
func (b *fixture) employ(ctx, finish context.Context, seed uint64) {
	var all sync.WaitGroup
	for _, kind := range slices.Sorted(maps.Keys(clients)) {
		for i := range clients[kind] {
			c := &client{b: b, kind: kind, name: fmt.Sprint(i), rand: random(seed, fmt.Sprint(kind, i))}
			all.Go(func() { c.run(ctx, finish) })
		}
	}
	all.Wait()
}

// settled waits until every acknowledged work that is not void is over: a turn
// may come after the effect that a client waits for.
func (b *fixture) settled(ctx context.Context, until time.Time) error {
	c := &client{b: b, rand: random(0, "settled")}
	for _, w := range b.works {
		for !w.Event && !w.Void && !w.Acked.IsZero() {
			asking, cancel := context.WithTimeout(ctx, time.Minute)
			f, err := c.show(asking, w.ID)
			cancel()
			if err != nil {
				return fmt.Errorf("no node answers: %w", err)
			}
			if f.Status == "completed" || f.Status == "" || time.Now().After(until) {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	return nil
}

// report is what is said about a run.
type report struct {
	options
	counts   map[string]int
	found    []judge.Anomaly
	problems []string
	open     []string // what nodes show of works that are not over
	missing  []string // what should have happened at least once
	works    map[string]int
	void     int
	signals  int
	calls    int
	effects  int
	repeated int // performances under a key that was performed before
	latency  []time.Duration
	settling time.Duration
	memory   int64
	lives    int
}

func (b *fixture) report(o options, h judge.History, settling time.Duration) *report {
	r := &report{options: o, counts: b.counts, problems: b.problems, open: b.unfinished, found: judge.Check(h), works: map[string]int{}, calls: len(h.Calls), latency: h.Latency(), settling: settling}
	for _, w := range h.Works {
		r.works[w.Kind]++
		r.signals += len(w.Sent)
		if w.Void {
			r.void++
		}
	}
	keys := map[string]bool{}
	for _, c := range h.Calls {
		if c.Applied && keys[c.Key] {
			r.repeated++
		}
		if c.Applied {
			keys[c.Key] = true
		}
	}
	r.effects = len(keys)
	for _, s := range b.slots {
		r.memory, r.lives = max(r.memory, s.most), r.lives+s.lives
		if g := s.settings.Group; g != nil && g.Kills() > 0 {
			r.problems = append(r.problems, fmt.Sprintf("the kernel has killed %d nodes of %s for their memory", g.Kills(), s.settings.Name))
		}
	}
	r.problems = append(r.problems, b.confessed()...)
	if r.memory > o.memory {
		r.problems = append(r.problems, fmt.Sprintf("a node had %d MiB, more than %d", r.memory>>20, o.memory>>20))
	}
	if o.length >= fullRound {
		must := append(b.names(), "backup", "restore", "request repeated", "node killed at work", "invariants verified", "invariants held, seen beside the work",
			"epoch raised", "operator retried",
			"task completed", "signal applied", b.place.refusal())
		for _, what := range must {
			if r.counts[what] == 0 {
				r.missing = append(r.missing, what)
			}
		}
		if r.repeated == 0 {
			r.missing = append(r.missing, "an effect repeated under its key")
		}
	}
	return r
}

// confessions are words of the log of a node that has done something wrong,
// whatever became of it.
var confessions = []string{"panic", "fatal error: ", "nobody worked on it"}

// confessed are the lines of the nodes' logs with one of them.
func (b *fixture) confessed() []string {
	var found []string
	for _, s := range b.slots {
		raw, err := os.ReadFile(s.settings.Log)
		if err != nil {
			return append(found, err.Error())
		}
		for line := range strings.Lines(string(raw)) {
			if slices.ContainsFunc(confessions, func(word string) bool { return strings.Contains(line, word) }) {
				found = append(found, "log of "+s.settings.Name+": "+strings.TrimSpace(line))
			}
		}
	}
	return found
}

// number is how many anomalies there are of a kind.
func (r *report) number(kind string) int {
	n := 0
	for _, a := range r.found {
		if a.Kind == kind {
			n++
		}
	}
	return n
}

// ok says whether the run shows what it should.
func (r *report) ok() bool {
	for _, a := range r.found {
		if !slices.Contains(r.known, a.Kind) {
			return false
		}
	}
	return len(r.problems) == 0 && len(r.missing) == 0
}

// shownMax is how many anomalies of a kind are printed.
const shownMax = 5

func (r *report) print(w io.Writer) {
	fmt.Fprintf(w, "chaos: %s: seed %d: %s of trouble, settled %.1f s later; nodes lived %d times, at most %d MiB\n",
		r.store, r.seed, r.length, r.settling.Seconds(), r.lives, r.memory>>20)
	fmt.Fprintf(w, "chaos: %s: works %v, %d of them void; %d signals in order; %d calls, %d effects, %d repeated under their key\n",
		r.store, r.works, r.void, r.signals, r.calls, r.effects, r.repeated)
	fmt.Fprintf(w, "chaos: %s: small works took %s\n", r.store, r.quantiles())
	for _, what := range slices.Sorted(maps.Keys(r.counts)) {
		fmt.Fprintf(w, "chaos: %s: %6d  %s\n", r.store, r.counts[what], what)
	}
	shown := map[string]int{}
	for _, a := range r.found {
		if shown[a.Kind]++; shown[a.Kind] <= shownMax {
			mark := "FAIL"
			if slices.Contains(r.known, a.Kind) {
				mark = "known"
			}
			fmt.Fprintf(w, "chaos: %s: %s: %s\n", r.store, mark, a)
		}
	}
	for _, o := range r.open[:min(len(r.open), 2*shownMax)] {
		fmt.Fprintf(w, "chaos: %s: unfinished: %s\n", r.store, o)
	}
	for i, p := range r.problems {
		if i < 4*shownMax {
			fmt.Fprintf(w, "chaos: %s: FAIL: %s\n", r.store, p)
		}
	}
	for _, what := range r.missing {
		fmt.Fprintf(w, "chaos: %s: FAIL: it never happened: %s\n", r.store, what)
	}
	if n := len(r.problems); n > 4*shownMax {
		fmt.Fprintf(w, "chaos: %s: FAIL: and %d more\n", r.store, n-4*shownMax)
	}
}

func (r *report) quantiles() string {
	if len(r.latency) == 0 {
		return "no time: there were none"
	}
	at := func(q float64) time.Duration {
		return r.latency[min(int(q*float64(len(r.latency))), len(r.latency)-1)].Round(time.Millisecond)
	}
	return fmt.Sprintf("p50 %s, p99 %s, at most %s", at(0.5), at(0.99), at(1))
}

// tableHead and row are the table of docs/verification.md.
const tableHead = `| store | seed | trouble | works | effects | repeated | lost | doubled | two keys | two bodies | order | starved | unfinished | deaf | other |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|`

func (r *report) row() string {
	works := 0
	for _, n := range r.works {
		works += n
	}
	cells := []string{
		r.store, fmt.Sprint(r.seed), r.length.String(), fmt.Sprint(works), fmt.Sprint(r.effects), fmt.Sprint(r.repeated),
	}
	for _, kind := range []string{judge.Lost, judge.Doubled, judge.Keys, judge.Bodies, judge.Order, judge.Starved, judge.Unfinished, judge.Deaf} {
		cells = append(cells, fmt.Sprint(r.number(kind)))
	}
	cells = append(cells, fmt.Sprint(r.number(judge.Phantom)+r.number(judge.DeadLetter)+r.number(judge.Twice)+len(r.problems)))
	return "| " + strings.Join(cells, " | ") + " |"
}
