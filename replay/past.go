package replay

import (
	"context"
	"errors"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// Limits of what is asked of a node that has other work: of its own database
// engine-node asks without them.
const (
	MaxAt       = 10_000           // the highest position whose turn is made again
	maxTogether = 2                // instances that are made again at once
	patience    = 20 * time.Second // that one may take, with the wait for its turn
)

// Past says what instances were, to many who ask at once.
type Past struct {
	from  Source
	defs  Definitions
	turns chan struct{}
}

// NewPast is the past of a database.
func NewPast(from Source, defs Definitions) *Past {
	return &Past{from, defs, make(chan struct{}, maxTogether)}
}

// At is the state of an instance after the turn of a position. Problems:
// instance.unknown, stream.position, replay.too-long, replay.busy, replay.different,
// replay.unverifiable, snapshot.corrupt.
func (p *Past) At(ctx context.Context, id string, position int64) (s snapshot.Snapshot, err error) {
	if position > MaxAt {
		return s, problem.New(problem.TooLarge, "replay.too-long", "a node makes streams again up to position %d, not to %d", MaxAt, position).
			WithHint("ask the database: engine-node show %s --at %d --store URL", id, position)
	}
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case p.turns <- struct{}{}:
		defer func() { <-p.turns }()
		s, err = p.at(limited, id, position)
	case <-limited.Done():
		err = limited.Err()
	}
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return s, problem.New(problem.Unavailable, "replay.busy", "instance %s was not made again through position %d within %s", id, position, patience).
			WithHint("ask again when the node has less to do, or the database: engine-node show %s --at %d --store URL", id, position)
	}
	return s, err
}

func (p *Past) at(ctx context.Context, id string, position int64) (s snapshot.Snapshot, err error) {
	key, err := p.from.Secret(ctx)
	if err != nil {
		return s, err
	}
	err = p.from.History(ctx, id, func(stored []byte, stream Stream) error {
		state, found, err := Replayer{p.defs, key}.At(ctx, id, stored, position, stream)
		if err != nil {
			return err
		}
		switch found.Verdict {
		case Different:
			return problem.New(problem.Conflict, "replay.different", "%s", found).WithHint("engine-node verify %s, and keep a copy of the database", id)
		case Unverifiable:
			return problem.New(problem.Conflict, "replay.unverifiable", "%s", found)
		}
		s = state
		return nil
	})
	return s, err
}
