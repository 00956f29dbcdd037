package embedded

import (
	"context"
	"slices"
	"time"

	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// backlog says how much waits.
type backlog struct{ *sqlite.Store }

// Gaps implements backend.BacklogReader.
func (s backlog) Gaps(ctx context.Context) (backend.Gaps, error) {
	gaps, err := sqlite.One[backend.Gaps](ctx, s.Store, read("gaps", backend.MaxCount))
	return gaps, wrap("gaps", err)
}

// Counts implements backend.BacklogReader.
func (s backlog) Counts(ctx context.Context) ([]backend.Count, error) {
	counts, err := sqlite.List[backend.Count](ctx, s.Store, read("open_counts", backend.MaxOpen))
	return counts, wrap("counts", err)
}

// Queues implements backend.BacklogReader, by one statement: a message that becomes
// ready meanwhile is counted once.
func (s backlog) Queues(ctx context.Context) ([]backend.Queue, error) {
	found, err := sqlite.List[struct {
		Queue    string    `db:"QUEUE"`
		State    int       `db:"STATE"`
		Messages int       `db:"MESSAGES"`
		Oldest   time.Time `db:"OLDEST_ON_UTC"`
	}](ctx, s.Store, read("queues", slices.Repeat([]any{backend.MaxCount}, countedQueues)...))
	if err != nil {
		return nil, wrap("queues", err)
	}
	queues := []backend.Queue{{Name: string(store.Signals)}, {Name: string(store.Schedule)}, {Name: string(store.Commands)}}
	for _, f := range found {
		i := slices.IndexFunc(queues, func(q backend.Queue) bool { return q.Name == f.Queue })
		if i < 0 {
			continue
		}
		switch q := &queues[i]; f.State {
		case ready:
			q.Ready, q.OldestAt = f.Messages, f.Oldest
		case delayed:
			q.Delayed = f.Messages
		case leased:
			q.Leased = f.Messages
		}
	}
	return queues, nil
}

// States of a message.
const (
	ready   = 0
	delayed = 1
	leased  = 10
)

// countedQueues is how many parts of the statement are bounded, each with a bind of its own.
const countedQueues = 5
