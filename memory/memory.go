// Package memory is the budget of a node: how many bytes may be in use at once
// for what others can make large, and how many the process may have at all.
//
// A [Pool] is a share of the budget. What is going to need memory takes a part
// of it first and gives it back when it is done; over the share it waits, in
// order. Parts are estimates from above: they bound how much happens at once,
// while the limit that [Set] gives to the garbage collector bounds the rest.
//
// Nobody waits for a pool while holding a part of one that comes after it in
// [Budget], nor for two parts of one, so that nobody waits for ever. A nil Pool
// has no limit. All methods may be called from many goroutines.
package memory

import (
	"context"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// Budget is the pools of a node, in the order in which they may be held
// together.
type Budget struct {
	Requests    *Pool // bodies of requests to the API, until they are answered
	Bodies      *Pool // answers of hosts, until their results are committed
	Loads       *Pool // snapshots being read and decoded
	Turns       *Pool // decisions: snapshots, expressions, what is committed
	Compiles    *Pool // definitions being read and compiled
	Definitions int64 // bytes of compiled definitions that are kept, and of Compiles, together
	Snapshots   int64 // bytes of snapshots that are kept
}

// Shares of a limit, in hundredths. What is left is for the rest of the program:
// its code, stacks, connections and the database's own buffers.
const (
	requestsShare    = 5
	bodiesShare      = 8
	loadsShare       = 5
	turnsShare       = 10
	definitionsShare = 45 // kept, and being compiled
	snapshotsShare   = 4
	softShare        = 60 // of the limit at which the collector does all it can; the database has buffers of its own
)

// Wait is how long a request or a turn waits for memory before it is given up,
// to come again.
const Wait = 30 * time.Second

// DefaultSnapshots is the most that is kept of snapshots, however much memory
// there is.
const DefaultSnapshots = 64 << 20

// New shares a limit out.
func New(limit int64) *Budget {
	share := func(hundredths int64) int64 { return limit / 100 * hundredths }
	return &Budget{
		Requests: NewPool(share(requestsShare)), Bodies: NewPool(share(bodiesShare)), Loads: NewPool(share(loadsShare)),
		Turns: NewPool(share(turnsShare)), Compiles: NewPool(share(definitionsShare)),
		Definitions: share(definitionsShare), Snapshots: min(share(snapshotsShare), DefaultSnapshots),
	}
}

// Pool is a number of bytes that many share.
type Pool struct {
	size    int64
	parts   *semaphore.Weighted
	used    atomic.Int64
	waiting atomic.Int64
	waits   atomic.Int64
}

// NewPool makes a pool of so many bytes.
func NewPool(size int64) *Pool {
	size = max(size, 1)
	return &Pool{size: size, parts: semaphore.NewWeighted(size)}
}

// Take waits until so many bytes are free, and takes them; release gives them
// back, and may be called more than once. What is more than the whole pool takes
// all of it. Where ctx has a [Hold], the bytes are held until its end, and
// release does nothing. The error is that of ctx.
func (p *Pool) Take(ctx context.Context, bytes int64) (release func(), err error) {
	if p == nil {
		return func() {}, nil
	}
	bytes = max(min(bytes, p.size), 0)
	if !p.parts.TryAcquire(bytes) {
		p.waits.Add(1)
		p.waiting.Add(1)
		err := p.parts.Acquire(ctx, bytes)
		p.waiting.Add(-1)
		if err != nil {
			return func() {}, err
		}
	}
	p.used.Add(bytes)
	release = sync.OnceFunc(func() {
		p.used.Add(-bytes)
		p.parts.Release(bytes)
	})
	if h, ok := ctx.Value(holdKey{}).(*hold); ok && h.pool == p {
		h.add(release)
		return func() {}, nil
	}
	return release, nil
}

// Size is how many bytes the pool has, Used how many are taken, Waiting how many
// wait now, and Waits how many had to since the program began.
func (p *Pool) Size() int64    { return p.size }
func (p *Pool) Used() int64    { return p.used.Load() }
func (p *Pool) Waiting() int64 { return p.waiting.Load() }
func (p *Pool) Waits() int64   { return p.waits.Load() }

type holdKey struct{}

type hold struct {
	pool *Pool
	mu   sync.Mutex
	list []func()
}

func (h *hold) add(release func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.list = append(h.list, release)
}

// Hold makes what is taken of a pool in the returned context stay taken until
// end is called: a result is in memory longer than the call that read it.
func (p *Pool) Hold(ctx context.Context) (held context.Context, end func()) {
	if p == nil {
		return ctx, func() {}
	}
	h := &hold{pool: p}
	return context.WithValue(ctx, holdKey{}, h), func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, release := range h.list {
			release()
		}
		h.list = nil
	}
}

// Set tells the garbage collector the limit of the process, and the C library
// to keep little. GOMEMLIMIT, where it is set, stays.
func Set(limit int64) {
	thrift()
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit / 100 * softShare)
	}
}

// Available is how much memory this process may have: the least limit of its
// control groups, else half of what the machine has, else fallback.
func Available() int64 {
	if n := limitOfGroups("/proc/self/cgroup", "/sys/fs/cgroup"); n > 0 {
		return n
	}
	if n := installed("/proc/meminfo"); n > 0 {
		return n / 2
	}
	return fallback
}

// fallback is for systems that do not say.
const fallback = 1 << 30

// limitOfGroups reads the limits of control groups, of version 2 and 1, of this
// process and of those above it; 0 = none.
func limitOfGroups(list, root string) int64 {
	raw, _ := os.ReadFile(list) // what is not there says nothing
	least := int64(0)
	for line := range strings.Lines(string(raw)) {
		part := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(part) != 3 || part[1] != "" && part[1] != "memory" {
			continue
		}
		dir, file := root, "/memory.max"
		if part[1] == "memory" {
			dir, file = root+"/memory", "/memory.limit_in_bytes"
		}
		for at := path.Clean("/" + part[2]); ; at = path.Dir(at) {
			if n := number(dir + at + file); n > 0 && n < 1<<60 && (least == 0 || n < least) {
				least = n
			}
			if at == "/" {
				break
			}
		}
	}
	return least
}

func number(file string) int64 {
	raw, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64) // "max" is no limit
	return n
}

// installed is the memory of the machine.
func installed(file string) int64 {
	raw, _ := os.ReadFile(file) // what is not there says nothing
	for line := range strings.Lines(string(raw)) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == "MemTotal:" {
			kib, _ := strconv.ParseInt(f[1], 10, 64)
			return kib << 10
		}
	}
	return 0
}
