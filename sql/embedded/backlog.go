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

// Queues implements backend.BacklogReader.
func (s backlog) Queues(ctx context.Context) ([]backend.Queue, error) {
	queues := []backend.Queue{{Name: string(store.Signals)}, {Name: string(store.Schedule)}, {Name: string(store.Commands)}}
	for i := range queues {
		q, err := sqlite.One[struct {
			Ready  int       `db:"READY"`
			Oldest time.Time `db:"OLDEST_ON_UTC"`
		}](ctx, s.Store, read("queue_ready", queues[i].Name, backend.MaxCount))
		if err != nil {
			return nil, wrap("queues", err)
		}
		queues[i].Ready, queues[i].OldestAt = q.Ready, q.Oldest
	}
	for name, field := range map[string]func(*backend.Queue) *int{
		"queue_delayed": func(q *backend.Queue) *int { return &q.Delayed },
		"queue_leased":  func(q *backend.Queue) *int { return &q.Leased },
	} {
		found, err := sqlite.List[struct {
			Queue    string `db:"QUEUE"`
			Messages int    `db:"MESSAGES"`
		}](ctx, s.Store, read(name, backend.MaxCount))
		if err != nil {
			return nil, wrap("queues", err)
		}
		for _, f := range found {
			if i := slices.IndexFunc(queues, func(q backend.Queue) bool { return q.Name == f.Queue }); i >= 0 {
				*field(&queues[i]) = f.Messages
			}
		}
	}
	return queues, nil
}
