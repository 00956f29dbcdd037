package memory

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// TestPoolIsNeverOverdrawn: whoever takes more than is free waits, and whoever
// takes more than there is takes all.
func TestPoolIsNeverOverdrawn(t *testing.T) {
	t.Parallel()
	p := newPool(100)
	var now, most atomic.Int64
	var all sync.WaitGroup
	for i := range 200 {
		n := int64(i%5)*25 + 25
		all.Go(func() {
			part, err := p.Take(t.Context(), n)
			if err != nil {
				t.Error(err)
			}
			if used := now.Add(min(n, 100)); used > most.Load() {
				most.Store(used)
			}
			now.Add(-min(n, 100))
			part.Release()
			part.Release()
		})
	}
	all.Wait()
	if most.Load() > 100 || p.Used() != 0 || p.Waiting() != 0 {
		t.Errorf("%d at once, %d used, %d waiting", most.Load(), p.Used(), p.Waiting())
	}
}

func TestWaitingEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPool(10)
		part, _ := p.Take(t.Context(), 10)
		ctx, cancel := context.WithCancel(t.Context())
		failed := make(chan error)
		go func() { _, err := p.Take(ctx, 1); failed <- err }()
		synctest.Wait()
		if p.Waiting() != 1 || p.Waits() != 1 {
			t.Errorf("%d wait, %d waited", p.Waiting(), p.Waits())
		}
		cancel()
		if err := <-failed; !errors.Is(err, context.Canceled) || p.Used() != 10 {
			t.Errorf("%v, %d used", err, p.Used())
		}
		begun := time.Now()
		if _, err := p.Take(t.Context(), 1); problem.CodeOf(err) != CodeBusy || time.Since(begun) != Wait {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}
		part.Release()
	})
	var none *Pool
	if part, err := none.Take(t.Context(), 1<<40); err != nil {
		t.Error(err)
	} else {
		part.Release()
	}
}

// TestHoldKeepsWhatWasTaken: what is held stays taken after those who took it
// have gone, until it is not needed; more of it is taken anew.
func TestHoldKeepsWhatWasTaken(t *testing.T) {
	t.Parallel()
	p, other := newPool(10), newPool(10)
	ctx, part := p.Hold(t.Context())
	take := func(of *Pool, bytes, used, usedOther int64) {
		t.Helper()
		part, err := of.Take(ctx, bytes)
		if err != nil {
			t.Fatal(err)
		}
		part.Release()
		if p.Used() != used || other.Used() != usedOther {
			t.Errorf("%d and %d used", p.Used(), other.Used())
		}
	}
	take(p, 4, 4, 0)
	take(other, 4, 4, 0)
	take(p, 3, 4, 0)
	take(p, 10, 10, 0) // which 4 + 10 would not be
	p.Keep(ctx, nil, 6)
	if p.Used() != 6 {
		t.Errorf("%d kept of what a context holds", p.Used())
	}
	part.Keep(2)
	part.Keep(5)
	if p.Used() != 2 {
		t.Errorf("%d kept", p.Used())
	}
	part.Release()
	part.Release()
	if p.Used() != 0 {
		t.Errorf("%d used after the end", p.Used())
	}
}

// TestNobodyWaitsForEver: of many who take parts of all pools, in the order of
// the budget, and more of those that they hold, all end, for whoever waits
// holds nothing that those before it need. In a bubble a deadlock fails the test.
func TestNobodyWaitsForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var pools []*Pool
		New(10_000).Each(func(_ string, p *Pool) { pools = append(pools, p) })
		var all sync.WaitGroup
		var busy atomic.Int64
		for i := range 300 {
			all.Go(func() {
				ctx := t.Context()
				for n, p := range pools {
					held, part := p.Hold(ctx)
					defer part.Release()
					ctx = held
					for _, share := range []int64{9, 7, int64(1 + i%5)} { // more and more, now and then all of it
						if i%len(pools) > n {
							continue // some begin with a later pool
						}
						_, err := p.Take(ctx, p.Size()/share)
						if problem.CodeOf(err) == CodeBusy {
							busy.Add(1)
							return
						}
						if err != nil {
							t.Error(err)
						}
						time.Sleep(time.Duration(i%7) * time.Millisecond)
					}
				}
			})
		}
		all.Wait()
		for i, p := range pools {
			if p.Used() != 0 || p.Waiting() != 0 || p.Waits() == 0 {
				t.Errorf("pool %d: %d used, %d wait, %d have waited", i, p.Used(), p.Waiting(), p.Waits())
			}
		}
		if busy.Load() > 0 {
			t.Errorf("%d of 300 waited for %s", busy.Load(), Wait)
		}
	})
}

// TestSharesFit: what may be taken and kept at the same time is less than what
// the collector tries to keep to, and that and the pages less than there is.
func TestSharesFit(t *testing.T) {
	t.Parallel()
	const limit = 512 << 20
	b := New(limit)
	sum := b.Snapshots + b.Waiting
	b.Each(func(name string, p *Pool) {
		if sum += p.Size(); p.Size() < limit/100*3 {
			t.Errorf("%s: %d", name, p.Size())
		}
	})
	if soft := int64(limit / 100 * softShare); sum > soft || soft+b.Pages > limit/100*90 || b.Definitions != b.Compiles.Size() {
		t.Errorf("pools %d, collector %d, pages %d, definitions %d", sum, soft, b.Pages, b.Definitions)
	}
	if b := New(1 << 40); b.Snapshots != DefaultSnapshots || b.Waiting != DefaultWaiting || b.Pages != DefaultPages {
		t.Errorf("kept of much: %+v", b)
	}
}

func TestLimitsOfControlGroups(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("list", "9:cpu:/x\n4:memory:/a/b\n0::/c/d\n")
	limit := func() int64 { return limitOfGroups(filepath.Join(dir, "list"), dir) }
	if n := limit(); n != 0 {
		t.Errorf("without a limit: %d", n)
	}
	write("memory/a/b/memory.limit_in_bytes", "9223372036854771712\n")
	write("memory/memory.limit_in_bytes", "1000\n")
	if n := limit(); n != 1000 {
		t.Errorf("version 1: %d", n)
	}
	write("c/d/memory.max", "max\n")
	write("c/memory.max", "500\n")
	if n := limit(); n != 500 {
		t.Errorf("version 2, above: %d", n)
	}
	write("meminfo", "Foo: 1 kB\nMemTotal:       2048 kB\n")
	if n := installed(filepath.Join(dir, "meminfo")); n != 2<<20 {
		t.Errorf("installed: %d", n)
	}
	if Available() <= 0 {
		t.Error("nothing available")
	}
}
