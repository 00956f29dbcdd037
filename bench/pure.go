package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/aqueduct-engine/aqueduct/definition/openworkflow"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// pureTasks is how many tasks of its kind a pure workflow has.
const pureTasks = 100

// pure: the interpreter without a store, on one processor: what a task costs
// that waits for nothing. Each workflow begins and completes in one turn. The
// time is the process's own, so that neighbours on the machine do not count.
func pure(ctx context.Context, o *Options) ([]Row, error) {
	var rows []Row
	for _, kind := range []struct{ name, task string }{
		{"set", "{set: {n: '${ .n + 1 }'}}"},
		{"set-constant", "{set: {n: 1}}"},
		{"switch", "{switch: [{low: {when: .n < 0, then: end}}, {high: {when: .n >= 0, then: continue}}]}"},
		{"for", "{for: {each: x, in: '[1]'}, do: [{add: {set: {n: '${ $x }'}}}]}"}, // a task, a round and a set
		{"fork", "{fork: {branches: [{a: {set: {n: 1}}}, {b: {set: {n: 2}}}]}, output: {as: '.[0]'}}"},
	} {
		row, err := pureKind(ctx, kind.name, kind.task, o.count(1_000_000, 20_000))
		if err != nil {
			return rows, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// pureKind runs about n tasks of a kind and says what one takes.
func pureKind(ctx context.Context, name, task string, n int) (Row, error) {
	var doc strings.Builder
	fmt.Fprintf(&doc, "document: {dsl: '1.0.3', namespace: bench, name: pure, version: '1.0.0'}\ndo:\n")
	for i := range pureTasks {
		fmt.Fprintf(&doc, "  - t%d: %s\n", i, task)
	}
	parsed, err := openworkflow.Parse(name, []byte(doc.String()))
	if err != nil {
		return Row{}, err
	}
	run := func(workflows int) error {
		for i := range workflows {
			in := engine.Input{Now: time.Unix(int64(i), 0), Key: []byte("k"), Incarnation: "inc"}
			out, err := engine.Begin(parsed.Definition, "i", signal.Start{Input: json.RawMessage(`{"n": 0}`)}, in)
			if err != nil {
				return err
			}
			if out.Snapshot.Status != snapshot.Completed {
				return fmt.Errorf("bench: pure-%s is %s, not completed", name, out.Snapshot.Status)
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
		return nil
	}
	if err := run(10); err != nil { // what is compiled or grown once
		return Row{}, err
	}
	workflows := max(n/pureTasks, 1)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	begin := cpuTime()
	if err := run(workflows); err != nil {
		return Row{}, err
	}
	took := cpuTime() - begin
	runtime.ReadMemStats(&after)
	tasks := float64(workflows * pureTasks)
	row := Row{
		Workload: "pure-" + name, N: workflows * pureTasks, Completed: workflows * pureTasks, Seconds: took.Seconds(),
		RatePerSecond: tasks / took.Seconds(), NsPerStep: float64(took.Nanoseconds()) / tasks,
		AllocationsPerStep: float64(after.Mallocs-before.Mallocs) / tasks, BytesPerStep: float64(after.TotalAlloc-before.TotalAlloc) / tasks,
	}
	row.Note = fmt.Sprintf("%.0f ns, %.1f allocations and %.0f bytes per task", row.NsPerStep, row.AllocationsPerStep, row.BytesPerStep)
	return row, nil
}

// cpuTime is what the process has worked so far, on all processors.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
