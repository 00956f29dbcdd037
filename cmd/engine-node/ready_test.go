package main

import (
	"context"
	"errors"
	"io"
	"log"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

type prober struct {
	asked atomic.Int64
	err   error
}

func (p *prober) Probe(ctx context.Context) error {
	p.asked.Add(1)
	return errors.Join(p.err, ctx.Err())
}

// TestReadinessIsBounded: however many ask, the store is asked once a second,
// and who goes away spoils nobody's answer.
func TestReadinessIsBounded(t *testing.T) {
	t.Parallel()
	p := &prober{}
	r := &readiness{store: p}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	begun := time.Now()
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			if err := r.ready(gone); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n, most := p.asked.Load(), int64(1+time.Since(begun)/readyEvery); n < 1 || n > most {
		t.Errorf("asked %d times, at most %d", n, most)
	}
	r.asked, p.err = time.Time{}, errors.New("full")
	if err := r.ready(t.Context()); !errors.Is(err, p.err) {
		t.Errorf("told %v", err)
	}
}

// What a server sends without having been asked may quote a secret, and net/http
// prints it: a node has one log, that which it writes itself.
func TestNothingIsLoggedBesideTheNode(t *testing.T) {
	if code := Run(t.Context(), []string{"version"}, nil, io.Discard, io.Discard); code != 0 {
		t.Fatal(code)
	}
	if log.Writer() != io.Discard {
		t.Errorf("Go's own log goes to %v", log.Writer())
	}
}
