package runtime

import (
	"context"
	"encoding/json"

	"github.com/aqueduct-engine/aqueduct/memory"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// What is taken of the budget for a turn, in bytes. A snapshot that is loaded is
// taken for the largest, until it is known how large it is.
const (
	turnBytes    = 256 << 10 // of one that decides about little
	turnFactor   = 6         // for each byte of data: as it is, as expressions see it, as it is written
	loadingBytes = 3 * snapshot.MaxBytes
)

// codeBusy is the problem of what finds no memory in time.
const codeBusy = "node.busy"

// load reads the snapshot for a turn, in the transaction of a delivery where
// there is one. Its memory is taken until loaded is called: when that of the
// turn has been.
func (r *Runtime) load(ctx context.Context, posts []*post) (snap snapshot.Snapshot, loaded func(), err error) {
	loaded, err = take(ctx, r.Memory.Loads, loadingBytes)
	if err != nil {
		return snapshot.Snapshot{}, nil, err
	}
	var from committer = r.Store
	for _, p := range posts {
		if p.d != nil {
			from = p.d
			break
		}
	}
	if snap, err = from.Load(ctx, posts[0].env.InstanceID); err != nil {
		loaded()
	}
	return snap, loaded, err
}

// room takes the memory for a turn of posts, and gives that of the load back.
func (r *Runtime) room(ctx context.Context, snap *snapshot.Snapshot, posts []*post, loaded func()) (release func(), err error) {
	defer loaded()
	payloads := 0
	for _, p := range posts {
		payloads += len(p.env.Payload)
	}
	return r.decides(ctx, snap, payloads)
}

// decides takes the memory for a turn.
func (r *Runtime) decides(ctx context.Context, snap *snapshot.Snapshot, payload int) (release func(), err error) {
	return take(ctx, r.Memory.Turns, turnBytes+turnFactor*(weight(snap)+int64(payload)))
}

// take waits for memory, but not for ever: what has none in time comes again,
// and whoever asks is told. A turn that waits has the mailbox of its instance
// and nothing that those who have memory wait for.
func take(ctx context.Context, p *memory.Pool, bytes int64) (func(), error) {
	if p == nil {
		return func() {}, nil
	}
	soon, cancel := context.WithTimeout(ctx, memory.Wait)
	defer cancel()
	release, err := p.Take(soon, bytes)
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, problem.Wrap(err, problem.Unavailable, codeBusy, "the node has no memory for it now").WithHint("try again")
	}
	return release, nil
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
	return int64(n + len(s.Waits)<<9)
}

func lengths(list []json.RawMessage) (n int) {
	for _, v := range list {
		n += len(v)
	}
	return n
}
