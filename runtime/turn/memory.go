package turn

import (
	"context"
	"encoding/json"

	"github.com/aqueduct-engine/aqueduct/memory"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
)

// What is taken of the budget, in bytes. A snapshot that is loaded is taken for
// the largest, for nobody knows how large it is.
const (
	turnBytes    = 256 << 10 // of one that decides about little
	turnFactor   = 6         // for each byte of data: as it is, as expressions see it, as it is written
	loadingBytes = 3 * snapshot.MaxBytes
)

// Load reads a snapshot: nothing else in a node does. Its memory is taken until the
// part is released: when the snapshot is not needed any more, or that of a turn has
// been taken.
func (d *Decider) Load(ctx context.Context, from store.Writer, id string) (*snapshot.Snapshot, *memory.Part, error) {
	part, err := d.Memory.Loads.Take(ctx, loadingBytes)
	if err != nil {
		return nil, nil, err
	}
	snap, err := from.Load(ctx, id)
	if err != nil {
		part.Release()
		return nil, nil, err
	}
	return &snap, part, nil
}

// source is where a turn of signals reads: in the transaction of a delivery where
// there is one.
func (d *Decider) source(signals []*Signal) store.Writer {
	for _, s := range signals {
		if s.Delivery != nil {
			return s.Delivery
		}
	}
	return d.Writer
}

// room takes the memory for a turn on a snapshot. Who waits for it has the
// mailbox of its instance, and nothing that those who have memory wait for.
func (d *Decider) room(ctx context.Context, snap *snapshot.Snapshot, payload int) (*memory.Part, error) {
	return d.Memory.Turns.Take(ctx, turnBytes+turnFactor*(weight(snap)+int64(payload)))
}

func payloads(signals []*Signal) (n int) {
	for _, s := range signals {
		n += len(s.Envelope.Payload)
	}
	return n
}

// weight is about how many bytes of data a snapshot has.
func weight(s *snapshot.Snapshot) int64 {
	n := len(s.State.Input) + len(s.State.Context) + len(s.State.Output)
	for _, b := range s.Branches {
		n += 1 << 10
		for _, f := range b.Frames {
			n += len(f.Input) + len(f.Raw) + lengths(f.Items) + lengths(f.Results)
			for _, v := range f.Vars {
				n += len(v)
			}
		}
		n += len(b.Data)
	}
	for _, b := range s.Buffer {
		n += len(b.Payload)
	}
	for _, b := range s.Ahead {
		n += len(b.Payload)
	}
	return int64(n + len(s.Waits)<<9)
}

func lengths(list []json.RawMessage) (n int) {
	for _, v := range list {
		n += len(v)
	}
	return n
}
