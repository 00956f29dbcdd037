package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// naiveTrips is what a usual turn costs when every statement travels alone:
// begin, dequeue, the snapshot with its large value (2), three statements, the
// next message, commit.
const naiveTrips = 9

// turns: round trips of a usual turn, counted and not timed: a signal comes in,
// the snapshot and its rows are written, the next message is sent. No node runs
// beside it, so that nothing else is counted.
func turns(ctx context.Context, o *Options) ([]Row, error) {
	dir, remove, err := o.dir("turn")
	if err != nil {
		return nil, err
	}
	defer remove()
	st, err := o.Open(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer st.Close()
	var rows []Row
	for _, way := range []struct {
		name   string
		loaded bool
		note   string
	}{
		{"turn", false, "snapshot from the node's cache"},
		{"turn-load", true, "snapshot of another node"},
	} {
		row := Row{Workload: way.name, N: o.count(500, 20)}
		if err := o.turn(ctx, st, way.loaded, &row); err != nil {
			return nil, err
		}
		row.Note = fmt.Sprintf("%.0f round trips, a naive turn makes %d; %s", row.RoundTripsPerTurn, naiveTrips, way.note)
		rows = append(rows, row)
	}
	return rows, nil
}

// turn makes row.N turns of one instance, one after the other.
func (o *Options) turn(ctx context.Context, db backend.Store, loaded bool, row *Row) error {
	snap, st := snapshot.Snapshot{InstanceID: newID(), Status: snapshot.Running}, db.Parts()
	if err := st.Writer.Commit(ctx, step(&snap, true)); err != nil {
		return err
	}
	var calls int64
	var begun time.Time
	for i := range 1 + row.N + 1 { // the first finds the session without a transaction, the last sends nothing
		switch i {
		case 1:
			calls, begun = o.Calls(db).RoundTrips, time.Now()
		case 1 + row.N:
			row.Completed, row.Seconds, calls = row.N, time.Since(begun).Seconds(), o.Calls(db).RoundTrips-calls
		}
		d, err := st.Queue.Receive(ctx, store.Signals, nil)
		if err != nil {
			return err
		}
		var came *snapshot.Snapshot
		if c, ok := d.(store.Carrier); ok {
			came, _ = c.Carried()
		}
		if loaded && came == nil {
			if _, err := d.Load(ctx, snap.InstanceID); err != nil {
				return err
			}
		}
		if err := d.Commit(ctx, step(&snap, i <= row.N)); err != nil {
			return err
		}
	}
	row.RatePerSecond = float64(row.N) / row.Seconds
	row.RoundTripsPerTurn = float64(calls) / float64(row.N)
	return nil
}

// step is the next turn of an instance.
func step(snap *snapshot.Snapshot, more bool) store.Change {
	snap.Version++
	snap.Position++
	now := time.Now().UTC()
	next := *snap
	c := store.Change{Snapshot: &next, Runtime: store.Runtime{ExecutedAt: now}, Rows: projections.Rows{
		Instance: &projections.Instance{ID: snap.InstanceID, Status: string(snap.Status), Version: snap.Version, StartedAt: now, UpdatedAt: now},
		Stream: []projections.Entry{{
			InstanceID: snap.InstanceID, Position: snap.Position, Kind: "event", Direction: "in",
			SignalID: fmt.Sprint("s-", snap.Position), CreatedAt: now,
		}},
	}}
	if more {
		c.Send = []store.Send{{Queue: store.Signals, Body: fmt.Appendf(nil, `{"signalId":"s-%d","workflowInstanceId":%q}`, snap.Position+1, snap.InstanceID)}}
	}
	return c
}
