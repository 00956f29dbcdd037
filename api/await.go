package api

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
)

// Pauses between two looks at the row of an instance that a client waits for, which another
// node may close.
const (
	lookFirst = 50 * time.Millisecond
	lookMax   = time.Second
)

// follower is told by this node's commits what becomes of an instance, so that a start is
// answered of what its own turns have written and asks the database nothing.
type follower struct {
	id    string
	waits bool // for the end
	leave func()
	ended chan struct{} // closed when the instance is closed or faulted

	mu      sync.Mutex
	row     *projections.Instance // of the first turn
	pending []projections.Entry   // commands of the turn that is shown
	snap    *snapshot.Snapshot    // after that: the first, or for one who waits the last
	turns   int64                 // that it was told of, from the first on
	missed  bool                  // turns between them
	open    map[int64]bool        // commands of those turns that none of them has settled, by position
}

// follow begins before a start is made, so that no turn of it is missed.
func (s instanceAPI) follow(id string, waits bool) *follower {
	f := &follower{id: id, waits: waits, ended: make(chan struct{})}
	f.leave = s.Starter.Follow(id, f.told)
	return f
}

// told keeps of a turn what the answer shows.
func (f *follower) told(s *snapshot.Snapshot, rows *projections.Rows) {
	over := s.Status.Closed() || s.Status == snapshot.Faulted
	first := s.Version == 1
	f.mu.Lock()
	defer f.mu.Unlock()
	f.count(s, rows)
	if first && rows.Instance != nil {
		row := *rows.Instance
		f.row = &row
	}
	if f.snap != nil || !over && (f.waits || !first) {
		return
	}
	last := *s
	f.snap = &last
	if first {
		for _, e := range rows.Stream {
			if e.Processed != nil && !*e.Processed {
				f.pending = append(f.pending, e)
			}
		}
	}
	if over {
		close(f.ended)
	}
}

// count notes a turn, and which commands it leaves open.
func (f *follower) count(s *snapshot.Snapshot, rows *projections.Rows) {
	f.turns++
	f.missed = f.missed || s.Version != f.turns
	for i := range rows.Stream {
		if e := &rows.Stream[i]; e.Processed != nil && !*e.Processed {
			if f.open == nil {
				f.open = map[int64]bool{}
			}
			f.open[e.Position] = true
		}
	}
	for _, settled := range rows.Settled {
		delete(f.open, settled.Position)
	}
}

// toldOf is of how many turns it was told so far.
func (f *follower) toldOf() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.turns
}

// await returns when the instance is closed or faulted, or after d. What this node commits
// is told; for what another one does, the row is looked at, less and less often, and at once
// where the instance may have ended before anybody followed it. While this node brings it on
// there is no need to. The start is made: that it cannot be looked at now is no error.
func (s instanceAPI) await(ctx context.Context, f *follower, there bool, d time.Duration) {
	if d == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	delay := lookFirst
	timer := time.NewTimer(delay)
	defer timer.Stop()
	if there {
		timer.Reset(0)
	}
	turns := int64(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.ended:
			return
		case <-timer.C:
		}
		if now := f.toldOf(); now != turns {
			turns = now
			timer.Reset(delay)
			continue
		}
		row, err := s.Reader.Instances.Instance(ctx, f.id)
		if st := snapshot.Status(row.Status); st.Closed() || st == snapshot.Faulted || errors.Is(err, store.ErrNotFound) {
			return
		}
		timer.Reset(delay)
		delay = min(delay*3/2, lookMax)
	}
}

// started is the instance after a start: as the first turn has left it, or the last one that
// was waited for. Only one that was there before, or that others have brought on, is read.
// What there is no memory to show is left out.
func (s instanceAPI) started(ctx context.Context, f *follower) client.InstanceDetail {
	f.mu.Lock()
	row, snap, pending := f.row, f.snap, f.pending
	unknown := f.missed || len(f.open) > 0
	f.mu.Unlock()
	if row == nil || snap == nil {
		return s.outcome(ctx, f.id)
	}
	if snap.Version > 1 { // commands that nobody waits for may be left of turns before
		pending = nil
	}
	if _, err := s.Memory.Reads.Take(ctx, bodyFactor*int64(len(snap.State.Input)+len(snap.State.Context)+len(snap.State.Output))); err != nil {
		s.unshown(ctx, f.id, err)
		d := client.InstanceDetail{Instance: toInstance(*row), Digest: snap.Definition.Digest, Waits: waitsOf(snap), Commands: []client.Command{}}
		overlay(&d.Instance, snap)
		return d
	}
	if snap.Version > 1 && unknown {
		var err error
		if pending, err = s.Reader.Streams.Pending(ctx, f.id, maxCommands); err != nil {
			s.unshown(ctx, f.id, err)
		}
	}
	return s.shown(ctx, *row, snap, pending)
}
