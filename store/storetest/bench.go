package storetest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// benchCallers is how many goroutines work on a store at the same time.
const benchCallers = 64

// Bench measures a store: the commit of a usual step, the way of a message
// from commit to commit, and timers due at one moment.
func Bench(b *testing.B, open func(b *testing.B) backend.Store) {
	b.Run("step", func(b *testing.B) { benchSteps(b, open(b).Parts(), benchCallers) })
	b.Run("step-alone", func(b *testing.B) { benchSteps(b, open(b).Parts(), 1) })
	b.Run("message", func(b *testing.B) { benchMessages(b, open(b).Parts(), benchCallers) })
	b.Run("message-alone", func(b *testing.B) { benchMessages(b, open(b).Parts(), 1) })
	b.Run("turn", func(b *testing.B) { benchTurns(b, open(b).Parts()) })
	b.Run("timers", func(b *testing.B) { benchTimers(b, open(b).Parts()) })
}

// StepState is the size of a snapshot's state in a step.
var StepState = []byte(`{"text":"` + strings.Repeat("x", 600) + `"}`)

// Step is the change of a usual step: the result of one command comes in and
// the next command goes out.
func Step(s *snapshot.Snapshot, node string) store.Change {
	s.Version++
	id, now := s.InstanceID, time.Now()
	entries := []projections.Entry{
		{InstanceID: id, Position: s.Position + 1, Kind: "event", Direction: "in", Type: "TaskCompleted", Data: []byte(`{"result":"ok, it is done"}`),
			SignalID: fmt.Sprintf("%s/%d/0", id, s.Position), CreatedAt: now},
		command(id, s.Position+2, node),
	}
	c := store.Change{Snapshot: s, Runtime: store.Runtime{LastSignalID: "s", ExecutedBy: node, ExecutedAt: now},
		Rows: projections.Rows{Stream: entries, Instance: instance(id, s.Version)}}
	if s.Version > 1 {
		c.Rows.Settled = []engine.Settled{{Position: s.Position}}
	}
	s.Position += 2
	c.Encoded = encode(s)
	return c
}

func begin(id string) *snapshot.Snapshot {
	s := snap(id, 0)
	s.Position = 0
	s.State = snapshot.State{Context: StepState}
	s.Waits = []snapshot.Wait{{Kind: snapshot.WaitCommand, Token: strings.Repeat("t", 43), Pointer: "/do/0/call"}}
	s.Branches = []*snapshot.Branch{{Frames: []snapshot.Frame{{Pointer: "/do", Next: 1}, {Pointer: "/do/0/call"}}}}
	return s
}

func each(b *testing.B, callers int, work func(caller int, next func() bool)) {
	b.Helper()
	var wg sync.WaitGroup
	var count atomic.Int64
	b.ReportAllocs()
	b.ResetTimer()
	for caller := range callers {
		wg.Go(func() { work(caller, func() bool { return count.Add(1) <= int64(b.N) }) })
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}

func benchSteps(b *testing.B, s backend.Parts, callers int) {
	ctx, node := context.Background(), s.Nodes.Node()
	const instances = 8 // of each caller
	list := make([]*snapshot.Snapshot, callers*instances)
	for i := range list {
		list[i] = begin(fmt.Sprintf("0190%032d", i))
		if err := s.Writer.Commit(ctx, Step(list[i], node)); err != nil {
			b.Fatal(err)
		}
	}
	each(b, callers, func(caller int, next func() bool) {
		for i := 0; next(); i++ {
			if err := s.Writer.Commit(ctx, Step(list[caller*instances+i%instances], node)); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// benchMessages: every commit consumes a message and sends the next.
func benchMessages(b *testing.B, s backend.Parts, callers int) {
	ctx := context.Background()
	again := store.Change{Send: []store.Send{{Queue: store.Signals, Body: []byte(strings.Repeat("m", 200))}}}
	for range callers {
		if err := s.Writer.Commit(ctx, again); err != nil {
			b.Fatal(err)
		}
	}
	each(b, callers, func(_ int, next func() bool) {
		for next() {
			d, err := s.Queue.Receive(ctx, store.Signals, nil)
			if err == nil {
				err = d.Commit(ctx, again)
			}
			if err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// benchTurns: a step that a message causes, and that sends the next.
func benchTurns(b *testing.B, s backend.Parts) {
	ctx, node := context.Background(), s.Nodes.Node()
	byID := sync.Map{}
	for i := range benchCallers {
		id := fmt.Sprintf("0190%032d", i)
		snap := begin(id)
		c := Step(snap, node)
		c.Send = []store.Send{{Queue: store.Signals, Body: []byte(id)}}
		byID.Store(id, snap)
		if err := s.Writer.Commit(ctx, c); err != nil {
			b.Fatal(err)
		}
	}
	each(b, benchCallers, func(_ int, next func() bool) {
		for next() {
			d, err := s.Queue.Receive(ctx, store.Signals, nil)
			if err != nil {
				b.Error(err)
				return
			}
			v, _ := byID.Load(string(d.Message().Body))
			c := Step(v.(*snapshot.Snapshot), node)
			c.Send = []store.Send{{Queue: store.Signals, Body: d.Message().Body}}
			s.Ledger.Enter(d)
			if err := d.Commit(ctx, c); err != nil {
				b.Error(err)
				return
			}
			s.Ledger.Leave(d)
		}
	})
}

// benchTimers: b.N messages due at one moment; reports how late the last is.
func benchTimers(b *testing.B, s backend.Parts) {
	ctx := context.Background()
	moment := time.Now().Add(time.Duration(b.N)*100*time.Microsecond + 50*time.Millisecond)
	for sent := 0; sent < b.N; {
		var list []store.Send
		for ; len(list) < 500 && sent < b.N; sent++ {
			list = append(list, store.Send{Queue: store.Schedule, Body: []byte(strings.Repeat("m", 200)), Due: moment})
		}
		if err := s.Writer.Commit(ctx, store.Change{Send: list}); err != nil {
			b.Fatal(err)
		}
	}
	early := atomic.Int64{}
	each(b, benchCallers, func(_ int, next func() bool) {
		for next() {
			d, err := s.Queue.Receive(ctx, store.Schedule, nil)
			if err != nil {
				b.Error(err)
				return
			}
			if time.Now().Before(moment) {
				early.Add(1)
			}
			if err := d.Commit(ctx, store.Change{}); err != nil {
				b.Error(err)
				return
			}
		}
	})
	if early.Load() > 0 {
		b.Errorf("%d messages were early", early.Load())
	}
	b.ReportMetric(float64(time.Since(moment).Milliseconds()), "late-ms")
}
