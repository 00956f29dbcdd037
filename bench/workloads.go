package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"syscall"
	"time"

	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// callers is how many workflows run at once under load.
const callers = 64

// baseline measures the bare loop in a database of its own.
func (o *Options) baseline(ctx context.Context, n, callers int) (Baseline, error) {
	if o.Baseline == nil {
		return Baseline{}, nil
	}
	dir, remove, err := o.dir("baseline")
	if err != nil {
		return Baseline{}, err
	}
	defer remove()
	return o.Baseline(ctx, dir, n, callers)
}

func (r *Row) beside(f, one Baseline) {
	r.BaselinePerSecond, r.BaselineP50Ms = f.PerSecond, ms(one.P50)
}

// over notes what a workflow takes beyond its own bare commits.
func (r *Row) over(one Baseline, commits int) {
	if one.P50 > 0 {
		r.Note = fmt.Sprintf("p50 is %.2f ms over %d bare commits (aim: at most 0.5)", r.P50Ms-float64(commits)*ms(one.P50), commits)
	}
}

// fresh runs f on a node in a database of its own.
func (o *Options) fresh(ctx context.Context, name string, documents []string, f func(n *node, dir string) error) error {
	dir, remove, err := o.dir(name)
	if err != nil {
		return err
	}
	defer remove()
	n, err := o.begin(ctx, dir, documents...)
	if err != nil {
		return err
	}
	err = f(n, dir)
	if endErr := n.end(); err == nil {
		err = endErr
	}
	return err
}

// steps: throughput of sequential calls, for workflows of 3 and of 5.
func steps(ctx context.Context, o *Options) ([]Row, error) {
	var rows []Row
	for _, calls := range []int{5, 3} {
		before, err := o.baseline(ctx, o.count(40_000, 2_000), callers)
		if err != nil {
			return nil, err
		}
		one, err := o.baseline(ctx, o.count(1_000, 100), 1)
		if err != nil {
			return nil, err
		}
		row := Row{Workload: fmt.Sprintf("steps-%d", calls), N: o.count(8_000, 200), Note: "rate is steps per second"}
		name := fmt.Sprintf("steps-%d", calls)
		err = o.fresh(ctx, "steps", []string{callDocument(name, calls)}, func(n *node, _ string) error {
			return o.load(ctx, n, name, calls, &row)
		})
		if err != nil {
			return nil, err
		}
		row.beside(before, one)
		rows = append(rows, row)
	}
	return rows, nil
}

// load runs row.N workflows, callers at once, and fills in the row.
func (o *Options) load(ctx context.Context, n *node, name string, calls int, row *Row) error {
	note, spent := row.Note, o.spending(n.db)
	loaded, err := measured(row.Workload, row.N, callers, ownCPU, func(int) error {
		_, err := n.complete(ctx, name)
		return err
	})
	*row = loaded
	row.RatePerSecond *= float64(calls)
	if note != "" {
		row.Note = note + "; " + row.Note
	}
	spent(row)
	return err
}

// start: latency of a workflow of one call, nothing else going on.
func start(ctx context.Context, o *Options) ([]Row, error) {
	one, err := o.baseline(ctx, o.count(1_000, 100), 1)
	if err != nil {
		return nil, err
	}
	row := Row{Workload: "start", N: o.count(1_000, 50)}
	err = o.fresh(ctx, "start", []string{callDocument("one", 1)}, func(n *node, _ string) error {
		var latencies []time.Duration
		spent := o.spending(n.db)
		begun := time.Now()
		for range row.N {
			d, err := n.complete(ctx, "one")
			if err != nil {
				return err
			}
			latencies = append(latencies, d)
		}
		row.Seconds, row.Completed = time.Since(begun).Seconds(), len(latencies)
		row.RatePerSecond = float64(row.Completed) / row.Seconds
		spent(&row)
		row.percentiles(latencies)
		row.over(one, 3)
		return nil
	})
	row.BaselineP50Ms = ms(one.P50)
	return []Row{row}, err
}

func goSignal(id string) signal.Envelope {
	return signal.Envelope{
		SignalID: "go-" + id, InstanceID: id, Type: signal.ExternalSignal, OccurredAt: time.Now(),
		Payload: json.RawMessage(`{"id":"1","source":"bench","type":"go","data":{"ok":true}}`),
	}
}

// direct signals an instance through the API's service: one turn, one commit.
func (n *node) direct(ctx context.Context, id string) error {
	_, err := n.rt.Signal(ctx, goSignal(id))
	return err
}

// enqueue signals an instance the way an application does in a transaction of
// its own: through the queue, two commits.
func (n *node) enqueue(ctx context.Context, id string) error {
	body, err := goSignal(id).Encode()
	if err != nil {
		return err
	}
	return n.store.Commit(ctx, store.Change{Send: []store.Send{{Queue: store.Signals, Body: body}}})
}

// signals: parked instances resumed under load, and one at a time.
func signals(ctx context.Context, o *Options) ([]Row, error) {
	bare, err := o.baseline(ctx, o.count(40_000, 2_000), callers)
	if err != nil {
		return nil, err
	}
	one, err := o.baseline(ctx, o.count(1_000, 100), 1)
	if err != nil {
		return nil, err
	}
	var rows []Row
	for _, way := range []struct {
		name string
		send func(*node) func(context.Context, string) error
	}{
		{"signal", func(n *node) func(context.Context, string) error { return n.direct }},
		{"signal-queue", func(n *node) func(context.Context, string) error { return n.enqueue }},
	} {
		loaded := Row{Workload: way.name, N: o.count(20_000, 200), Note: "from the first signal sent to the last instance completed, 64 senders"}
		single := Row{Workload: way.name + "-1", N: o.count(1_000, 50)}
		err = o.fresh(ctx, "signal", []string{document("park", parkTasks)}, func(n *node, _ string) error {
			if err := resumeAll(ctx, o, n, way.send(n), &loaded); err != nil {
				return err
			}
			return resumeEach(ctx, o, n, way.send(n), &single)
		})
		if err != nil {
			return nil, err
		}
		loaded.beside(bare, one)
		single.BaselineP50Ms = ms(one.P50)
		single.over(one, 2)
		rows = append(rows, loaded, single)
	}
	return rows, nil
}

// park starts n instances that wait for an event.
func (n *node) park(ctx context.Context, name string, count int, input any) ([]string, []<-chan time.Time, error) {
	ids, done := make([]string, count), make([]<-chan time.Time, count)
	for i := range ids {
		ids[i] = newID()
	}
	err := each(count, callers, func(i int) error {
		var err error
		done[i], err = n.launch(ctx, name, ids[i], input)
		return err
	})
	return ids, done, err
}

func resumeAll(ctx context.Context, o *Options, n *node, send func(context.Context, string) error, row *Row) error {
	ids, done, err := n.park(ctx, "park", row.N, map[string]any{"n": 1})
	if err != nil {
		return err
	}
	sent := make([]time.Time, len(ids))
	spent := o.spending(n.db)
	begun := time.Now()
	if err := each(len(ids), callers, func(i int) error {
		sent[i] = time.Now()
		return send(ctx, ids[i])
	}); err != nil {
		return err
	}
	latencies := make([]time.Duration, len(ids))
	var last time.Time
	for i := range done {
		at, err := within(ctx, done[i])
		if err != nil {
			return err
		}
		latencies[i] = at.Sub(sent[i])
		if at.After(last) {
			last = at
		}
	}
	row.Seconds, row.Completed = last.Sub(begun).Seconds(), len(ids)
	row.RatePerSecond = float64(row.Completed) / row.Seconds
	spent(row)
	row.percentiles(latencies)
	return nil
}

func resumeEach(ctx context.Context, o *Options, n *node, send func(context.Context, string) error, row *Row) error {
	ids, done, err := n.park(ctx, "park", row.N, map[string]any{"n": 1})
	if err != nil {
		return err
	}
	latencies := make([]time.Duration, len(ids))
	spent, begun := o.spending(n.db), time.Now()
	for i, id := range ids {
		sent := time.Now()
		if err := send(ctx, id); err != nil {
			return err
		}
		at, err := within(ctx, done[i])
		if err != nil {
			return err
		}
		latencies[i] = at.Sub(sent)
	}
	row.Seconds, row.Completed = time.Since(begun).Seconds(), len(ids)
	row.RatePerSecond = float64(row.Completed) / row.Seconds
	spent(row)
	row.percentiles(latencies)
	return nil
}

// parked: what a waiting instance with 1 KB of state costs: state that the
// workflow made itself, and state that it was started with, which the stream
// shows as well.
func parked(ctx context.Context, o *Options) ([]Row, error) {
	lines := make([]any, 21)
	for i := range lines {
		lines[i] = map[string]any{"sku": fmt.Sprintf("sku-%04d", 7919*i%10_000), "quantity": i, "price": "12.50"}
	}
	state := map[string]any{"customer": "c-1042", "lines": lines}
	raw, err := json.Marshal(state)
	if err != nil {
		return nil, err
	}
	made := document("made", fmt.Sprintf("  - make: {set: %s}\n%s", raw, parkTasks))
	rows := []Row{
		{Workload: "parked", N: o.count(50_000, 1_000), Note: fmt.Sprintf("state of %d bytes, made by the workflow", len(raw))},
		{Workload: "parked-input", N: o.count(50_000, 1_000), Note: fmt.Sprintf("state of %d bytes, which it was started with", len(raw))},
	}
	if err := o.parkedRow(ctx, made, "made", map[string]any{}, &rows[0]); err != nil {
		return nil, err
	}
	return rows, o.parkedRow(ctx, document("park", parkTasks), "park", state, &rows[1])
}

func (o *Options) parkedRow(ctx context.Context, doc, name string, input any, row *Row) error {
	return o.fresh(ctx, "parked", []string{doc}, func(n *node, dir string) error {
		if _, _, err := n.park(ctx, name, row.N, input); err != nil { // fills the bounded caches first
			return err
		}
		before, err := o.Size(dir)
		if err != nil {
			return err
		}
		heap := heapNow(n)
		begun := time.Now()
		if _, _, err = n.park(ctx, name, row.N, input); err != nil {
			return err
		}
		row.Seconds, row.Completed = time.Since(begun).Seconds(), row.N
		row.RatePerSecond = float64(row.N) / row.Seconds
		after, err := o.Size(dir)
		row.BytesPerInstance = float64(after-before) / float64(row.N)
		row.MemoryPerInstance = max(float64(heapNow(n)-heap)/float64(row.N), 0)
		return err
	})
}

// heapNow is the live heap without what the benchmark itself remembers.
func heapNow(n *node) int64 {
	n.store.mu.Lock()
	clear(n.store.waiting)
	n.store.waiting = map[string]chan time.Time{}
	n.store.mu.Unlock()
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// idle: what a node does to its database when there is nothing to do.
func idle(ctx context.Context, o *Options) ([]Row, error) {
	row := Row{Workload: "idle"}
	watch := 20 * time.Second
	if o.Quick {
		watch = 2 * time.Second
	}
	err := o.fresh(ctx, "idle", nil, func(n *node, _ string) error {
		if err := o.settle(ctx, n.db); err != nil {
			return err
		}
		before, calls := o.Transactions(n.db), o.asked(n.db)
		begun := time.Now()
		select {
		case <-time.After(watch):
		case <-ctx.Done():
			return ctx.Err()
		}
		row.Seconds = time.Since(begun).Seconds()
		perMinute := func(n int64) float64 { return float64(n) * 60 / row.Seconds }
		row.IdleTransactionsPerMinute = perMinute(o.Transactions(n.db) - before)
		if o.Calls == nil {
			return nil
		}
		now := o.asked(n.db)
		dequeues := now.Dequeues - calls.Dequeues
		row.IdleDequeuesPerMinute, row.IdleBeatsPerMinute = perMinute(dequeues), perMinute(now.Beats-calls.Beats)
		row.IdleOtherCallsPerMinute = perMinute(now.RoundTrips - calls.RoundTrips - dequeues)
		row.Note = fmt.Sprintf("calls a minute: %.0f dequeues that waited in vain, %.0f other calls of consumers, %.0f statements of the heartbeat",
			row.IdleDequeuesPerMinute, row.IdleOtherCallsPerMinute, row.IdleBeatsPerMinute)
		return nil
	})
	return []Row{row}, err
}

// asked is Calls, or nothing.
func (o *Options) asked(s backend.Store) Calls {
	if o.Calls == nil {
		return Calls{}
	}
	return o.Calls(s)
}

// settle waits until the consumers of a fresh node are all connected: nothing
// but dequeues for a while.
func (o *Options) settle(ctx context.Context, s backend.Store) error {
	const calm, most = 2 * time.Second, 30 * time.Second
	other := func() int64 {
		if o.Calls == nil {
			return o.Transactions(s)
		}
		c := o.asked(s)
		return c.RoundTrips - c.Dequeues
	}
	last, since := other(), time.Now()
	for begun := time.Now(); time.Since(since) < calm && time.Since(begun) < most; {
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
		if now := other(); now != last {
			last, since = now, time.Now()
		}
	}
	return nil
}

// backlog: the hot path beside ever more that waits. Each parked instance also
// has a pending timer, its timeout.
func backlog(ctx context.Context, o *Options) ([]Row, error) {
	sizes := []int{1_000, 100_000, 1_000_000}
	if o.Quick {
		sizes = []int{100, 1_000}
	}
	var rows []Row
	park := document("parktimed", "  - park:\n      listen: {to: {one: {with: {type: go}}}}\n      timeout: {after: P30D}\n")
	err := o.fresh(ctx, "backlog", []string{park, callDocument("steps-5", 5)}, func(n *node, _ string) error {
		have := 0
		for _, size := range sizes {
			for have < size {
				batch := min(size-have, 10_000)
				if _, _, err := n.park(ctx, "parktimed", batch, map[string]any{"n": 1}); err != nil {
					return err
				}
				heapNow(n) // forget the completions nobody waits for
				have += batch
			}
			syscall.Sync() // the load's own writes are not what is measured
			bare, err := o.baseline(ctx, o.count(20_000, 500), callers)
			if err != nil {
				return err
			}
			row := Row{Workload: fmt.Sprintf("backlog-%d", size), N: o.count(8_000, 100)}
			if err := o.load(ctx, n, "steps-5", 5, &row); err != nil {
				return err
			}
			row.BaselinePerSecond = bare.PerSecond
			if rows = append(rows, row); len(rows) > 1 {
				cost := func(r Row) float64 { return r.BaselinePerSecond / r.RatePerSecond }
				rows[len(rows)-1].Note = fmt.Sprintf("a step costs %.2f times that with %d, each against its baseline", cost(row)/cost(rows[0]), sizes[0])
			}
		}
		return nil
	})
	return rows, err
}
