package runtime

import (
	"context"
	"encoding/json"

	"github.com/aqueduct-engine/aqueduct/memory"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// What a turn takes of the budget, in bytes.
const (
	turnBytes  = 256 << 10 // of one that decides about little
	turnFactor = 6         // for each byte of data: as it is, as expressions see it, as it is written
)

// room takes the memory for a turn.
func (c *Config) room(ctx context.Context, snap *snapshot.Snapshot, payload int) (*memory.Part, error) {
	return c.Memory.Turns.Take(ctx, turnBytes+turnFactor*(weight(snap)+int64(payload)))
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
