package embedded

import (
	"context"
	"slices"
	"time"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
	"github.com/aqueduct-engine/aqueduct/store"
)

// backlog says how much waits.
type backlog struct{ *sqlite.Store }

// Gaps implements projections.BacklogReader.
func (s backlog) Gaps(ctx context.Context) (projections.Gaps, error) {
	gaps, err := sqlite.One[projections.Gaps](ctx, s.Store, read("gaps", projections.MaxCount))
	return gaps, wrap("gaps", err)
}

// Queues implements projections.BacklogReader.
func (s backlog) Queues(ctx context.Context) ([]projections.Queue, error) {
	queues := []projections.Queue{{Name: string(store.Signals)}, {Name: string(store.Schedule)}, {Name: string(store.Commands)}}
	for i := range queues {
		q, err := sqlite.One[struct {
			Ready  int       `db:"READY"`
			Oldest time.Time `db:"OLDEST_ON_UTC"`
		}](ctx, s.Store, read("queue_ready", queues[i].Name, projections.MaxCount))
		if err != nil {
			return nil, wrap("queues", err)
		}
		queues[i].Ready, queues[i].OldestAt = q.Ready, q.Oldest
	}
	for name, field := range map[string]func(*projections.Queue) *int{
		"queue_delayed": func(q *projections.Queue) *int { return &q.Delayed },
		"queue_leased":  func(q *projections.Queue) *int { return &q.Leased },
	} {
		found, err := sqlite.List[struct {
			Queue    string `db:"QUEUE"`
			Messages int    `db:"MESSAGES"`
		}](ctx, s.Store, read(name, projections.MaxCount))
		if err != nil {
			return nil, wrap("queues", err)
		}
		for _, f := range found {
			if i := slices.IndexFunc(queues, func(q projections.Queue) bool { return q.Name == f.Queue }); i >= 0 {
				*field(&queues[i]) = f.Messages
			}
		}
	}
	return queues, nil
}
