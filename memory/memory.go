// Package memory is the budget of a node: how many bytes may be in use at once
// for what others can make large, and how many the process may have at all.
//
// A [Pool] is a share of the budget. What is going to need memory takes a part
// of it first and gives it back when it is done; over the share it waits, in
// order, for at most [Wait]. Parts are estimates from above: they bound how much
// happens at once, while the limit that [Set] gives to the garbage collector
// bounds the rest.
//
// Nobody waits for ever, by two rules. The pools have an order, that of the
// fields of [Budget], and whoever holds a part of one waits only for pools
// behind it. And whoever needs more of the pool of which they hold a part gives
// that back before they wait. So of all who wait, those for the last pool wait
// for nobody who waits.
//
// A nil Pool has no limit. All methods may be called from many goroutines.
package memory

import (
	"context"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
	"golang.org/x/sync/semaphore"
)

// Budget is the pools of a node, in the order in which they may be held
// together, and the sizes of what is kept.
type Budget struct {
	Requests *Pool // bodies of requests to the API, until they are answered
	Reads    *Pool // what the API reads to answer, until it is written
	Calls    *Pool // commands that are performed
	Answers  *Pool // what they have come to, until that is committed
	Loads    *Pool // snapshots being read and decoded
	Turns    *Pool // decisions: snapshots, expressions, what is committed
	Compiles *Pool // definitions being read and compiled

	Definitions int64 // bytes of compiled definitions that are kept, and of Compiles, together
	Snapshots   int64 // bytes of snapshots that are kept
	Waiting     int64 // bytes of commands that wait for a place
	Pages       int64 // bytes of an embedded database that are kept, outside of the collector
}

// Shares of a limit, in hundredths. What is left is for the rest of the program:
// its code, stacks, connections and the database's own buffers.
const (
	requestsShare    = 3
	readsShare       = 4
	callsShare       = 4
	answersShare     = 5
	loadsShare       = 5
	turnsShare       = 7
	definitionsShare = 40 // kept, and being compiled
	snapshotsShare   = 2
	waitingShare     = 2
	pagesShare       = 5
	softShare        = 72 // at which the collector does all it can: what is above but the pages
)

// Wait is how long something waits for memory before it is given up, to come
// again: a request of the API is told.
const Wait = 15 * time.Second

// Most of what is kept, however much memory there is.
const (
	DefaultSnapshots = 64 << 20
	DefaultWaiting   = 64 << 20
	DefaultPages     = 64 << 20
)

// New shares a limit out.
func New(limit int64) *Budget {
	share := func(hundredths int64) int64 { return limit / 100 * hundredths }
	return &Budget{
		Requests: newPool(share(requestsShare)), Reads: newPool(share(readsShare)),
		Calls: newPool(share(callsShare)), Answers: newPool(share(answersShare)),
		Loads: newPool(share(loadsShare)), Turns: newPool(share(turnsShare)), Compiles: newPool(share(definitionsShare)),
		Definitions: share(definitionsShare), Snapshots: min(share(snapshotsShare), DefaultSnapshots),
		Waiting: min(share(waitingShare), DefaultWaiting), Pages: min(share(pagesShare), DefaultPages),
	}
}

// Each calls f with every pool and its name.
func (b *Budget) Each(f func(name string, p *Pool)) {
	f("requests", b.Requests)
	f("reads", b.Reads)
	f("calls", b.Calls)
	f("answers", b.Answers)
	f("loads", b.Loads)
	f("turns", b.Turns)
	f("compiles", b.Compiles)
}

// Pool is a number of bytes that many share.
type Pool struct {
	size    int64
	parts   *semaphore.Weighted
	used    atomic.Int64
	waiting atomic.Int64
	waits   atomic.Int64
}

// newPool makes a pool of so many bytes.
func newPool(size int64) *Pool {
	size = max(size, 1)
	return &Pool{size: size, parts: semaphore.NewWeighted(size)}
}

// Part is what a piece of work has taken of a pool.
type Part struct {
	pool  *Pool
	mu    sync.Mutex
	bytes int64
}

// Take waits until so many bytes are free, and takes them until the part is
// released. What is more than the whole pool takes all of it. Where ctx is one
// of [Pool.Hold], they are taken for that, and there is no part to release. The
// error is the problem node.busy, or that of ctx.
func (p *Pool) Take(ctx context.Context, bytes int64) (*Part, error) {
	if p == nil {
		return nil, nil
	}
	if held, ok := ctx.Value(heldKey{p}).(*Part); ok {
		return nil, held.take(ctx, bytes)
	}
	part := &Part{pool: p}
	return part, part.take(ctx, bytes)
}

type heldKey struct{ pool *Pool }

// Hold makes what is taken of a pool in the returned context stay taken until
// the part is released: a result is in memory longer than the call that read it.
func (p *Pool) Hold(ctx context.Context) (context.Context, *Part) {
	part := &Part{pool: p}
	return context.WithValue(ctx, heldKey{p}, part), part
}

// take has the part be at least so many bytes.
func (t *Part) take(ctx context.Context, bytes int64) error {
	p := t.pool
	bytes = max(min(bytes, p.size), 0)
	t.mu.Lock()
	enough := t.bytes >= bytes
	t.mu.Unlock()
	if enough {
		return nil
	}
	t.Release() // who holds and waits may wait for others that do
	if !p.parts.TryAcquire(bytes) {
		if err := p.wait(ctx, bytes); err != nil {
			return err
		}
	}
	p.used.Add(bytes)
	t.mu.Lock()
	t.bytes += bytes
	t.mu.Unlock()
	return nil
}

// wait takes bytes when they are free.
func (p *Pool) wait(ctx context.Context, bytes int64) error {
	p.waits.Add(1)
	p.waiting.Add(1)
	defer p.waiting.Add(-1)
	soon, cancel := context.WithTimeout(ctx, Wait)
	defer cancel()
	err := p.parts.Acquire(soon, bytes)
	if err != nil && ctx.Err() == nil {
		return problem.Wrap(err, problem.Unavailable, CodeBusy, "the node has no memory for it now").WithHint("try again")
	}
	return err
}

// CodeBusy is the problem of what finds no memory in time.
const CodeBusy = "node.busy"

// Keep gives back what the part has over so many bytes.
func (t *Part) Keep(bytes int64) {
	t.mu.Lock()
	over := max(t.bytes-bytes, 0)
	t.bytes -= over
	t.mu.Unlock()
	if over > 0 {
		t.pool.used.Add(-over)
		t.pool.parts.Release(over)
	}
}

// Keep gives back what was taken in ctx, or by a part of its own, over so many bytes.
func (p *Pool) Keep(ctx context.Context, part *Part, bytes int64) {
	if p == nil {
		return
	}
	if held, ok := ctx.Value(heldKey{p}).(*Part); ok {
		part = held
	}
	part.Keep(bytes)
}

// Release may be called more than once, and on no part.
func (t *Part) Release() {
	if t != nil {
		t.Keep(0)
	}
}

// Size is how many bytes the pool has, Used how many are taken, Waiting how many
// wait now, and Waits how many had to since the program began.
func (p *Pool) Size() int64    { return p.size }
func (p *Pool) Used() int64    { return p.used.Load() }
func (p *Pool) Waiting() int64 { return p.waiting.Load() }
func (p *Pool) Waits() int64   { return p.waits.Load() }

// Set tells the garbage collector the limit of the process. GOMEMLIMIT, where it
// is set, stays.
func Set(limit int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit / 100 * softShare)
	}
}
