package bench

import (
	"context"
	"fmt"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// wide is something large that a node has to do besides.
type wide struct {
	name  string
	width int
	doc   string
	run   func(ctx context.Context, n *node, width int) (time.Duration, error)
}

// slowCall is how long the calls of wide instances take.
const slowCall = 10 * time.Millisecond

// beside: what small workflows of one call get, two at a time, alone and beside
// each of the wide ones, what those take, and the most memory that the process
// had meanwhile.
func beside(ctx context.Context, o *Options) ([]Row, error) {
	width := min(o.count(1_000, 50), 1_000)
	fork := func(name, task string) string {
		var list strings.Builder
		for i := range width {
			fmt.Fprintf(&list, "          - b%d: %s\n", i, task)
		}
		return document(name, "  - all:\n      fork:\n        branches:\n"+list.String())
	}
	instance := func(name string) func(context.Context, *node, int) (time.Duration, error) {
		return func(ctx context.Context, n *node, _ int) (time.Duration, error) { return n.complete(ctx, name) }
	}
	all := []wide{
		{name: "alone", run: func(ctx context.Context, _ *node, _ int) (time.Duration, error) {
			return 0, rest(ctx, 2*time.Second)
		}},
		{"each", width, document("each", fmt.Sprintf("  - all: {call: forEach, with: {in: '${ [range(%d)] }', call: slow}}\n", width)), instance("each")},
		{"fork", width, fork("fork", "{call: slow}"), instance("fork")},
		{"timers", width, fork("timers", "{wait: PT1S}"), instance("timers")},
		{"sleepers", o.count(100_000, 200), sleepDocument, func(ctx context.Context, n *node, count int) (time.Duration, error) {
			due, done, err := n.sleepers(ctx, count, 2*time.Second+time.Duration(count)*time.Millisecond)
			if err != nil {
				return 0, err
			}
			var row Row
			err = lateness(ctx, done, due, &row)
			return time.Duration(row.Seconds * float64(time.Second)), err
		}},
	}
	documents := []string{callDocument("one", 1)}
	for _, w := range all[1:] {
		documents = append(documents, w.doc)
	}
	least := 3 * time.Second // for enough of the small ones
	if o.Quick {
		least = 0
	}
	var rows []Row
	err := o.fresh(ctx, "beside", documents, func(n *node, _ string) error {
		for _, w := range all {
			row := Row{Workload: "beside-" + w.name, N: w.width}
			if err := n.besides(ctx, w, least, &row); err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			if rows = append(rows, row); len(rows) > 1 {
				rows[len(rows)-1].Note = fmt.Sprintf("of the small ones the p50 is %.1f and the p99 %.1f times that alone; the process had up to %.0f MiB",
					row.P50Ms/rows[0].P50Ms, row.P99Ms/rows[0].P99Ms, row.PeakMiB)
			}
		}
		return nil
	})
	return rows, err
}

func rest(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// besides runs something wide again and again for at least so long, and small
// workflows until it is over.
func (n *node) besides(ctx context.Context, w wide, least time.Duration, row *Row) error {
	debug.FreeOSMemory()
	var over atomic.Bool
	var all sync.WaitGroup
	var mu sync.Mutex
	var latencies []time.Duration
	var failed error
	for range 2 {
		all.Go(func() {
			for !over.Load() {
				d, err := n.complete(ctx, "one")
				mu.Lock()
				if latencies = append(latencies, d); err != nil {
					failed = err
					over.Store(true)
				}
				mu.Unlock()
			}
		})
	}
	all.Go(func() {
		for ; !over.Load(); row.PeakMiB = max(row.PeakMiB, inUse()) {
			time.Sleep(5 * time.Millisecond)
		}
	})
	var took time.Duration
	var err error
	runs := 0
	for begun := time.Now(); err == nil && (runs == 0 || time.Since(begun) < least); runs++ {
		var one time.Duration
		one, err = w.run(ctx, n, w.width)
		took += one
	}
	over.Store(true)
	all.Wait()
	if err == nil {
		err = failed
	}
	row.Seconds, row.Completed = took.Seconds()/float64(runs), w.width
	if w.width > 0 {
		row.RatePerSecond = float64(w.width) / row.Seconds
	}
	row.percentiles(latencies)
	return err
}

// inUse is the memory that the process has from the system by way of Go, in MiB.
func inUse() float64 {
	m := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(m)
	return float64(m[0].Value.Uint64()-m[1].Value.Uint64()) / (1 << 20)
}
