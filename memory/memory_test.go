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
)

// TestPoolIsNeverOverdrawn: whoever takes more than is free waits, and whoever
// takes more than there is takes all.
func TestPoolIsNeverOverdrawn(t *testing.T) {
	t.Parallel()
	p := NewPool(100)
	var now, most atomic.Int64
	var all sync.WaitGroup
	for i := range 200 {
		n := int64(i%5)*25 + 25
		all.Go(func() {
			release, err := p.Take(t.Context(), n)
			if err != nil {
				t.Error(err)
			}
			if used := now.Add(min(n, 100)); used > most.Load() {
				most.Store(used)
			}
			now.Add(-min(n, 100))
			release()
			release()
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
		p := NewPool(10)
		release, _ := p.Take(t.Context(), 10)
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
		release()
	})
	var none *Pool
	if release, err := none.Take(t.Context(), 1<<40); err != nil {
		t.Error(err)
	} else {
		release()
	}
}

func TestHoldKeepsWhatWasTaken(t *testing.T) {
	t.Parallel()
	p, other := NewPool(10), NewPool(10)
	ctx, end := p.Hold(t.Context())
	release, _ := p.Take(ctx, 4)
	release()
	release, _ = other.Take(ctx, 4)
	release()
	if p.Used() != 4 || other.Used() != 0 {
		t.Errorf("%d and %d used", p.Used(), other.Used())
	}
	end()
	end()
	if p.Used() != 0 {
		t.Errorf("%d used after the end", p.Used())
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
