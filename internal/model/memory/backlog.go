package memory

import (
	"context"
	"slices"
	"strings"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// Gaps implements backend.BacklogReader.
func (s *Store) Gaps(ctx context.Context) (backend.Gaps, error) {
	return view(ctx, s, func(t *data) (g backend.Gaps, err error) {
		for _, i := range t.instances {
			if i.row.Ahead > 0 {
				g.Instances, g.Signals = g.Instances+1, g.Signals+i.row.Ahead
			}
		}
		return g, nil
	})
}

// Members implements backend.NodeReader.
func (s *Store) Members(context.Context) ([]backend.Node, error) {
	s.db.mu.Lock()
	defer s.db.mu.Unlock()
	var all []backend.Node
	for _, n := range s.db.live {
		all = append(all, backend.Node{Name: n.node, StartedAt: n.begun, SeenAt: s.db.now()})
	}
	slices.SortFunc(all, func(a, b backend.Node) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// Counts implements backend.BacklogReader.
func (s *Store) Counts(ctx context.Context) ([]backend.Count, error) {
	return view(ctx, s, func(t *data) ([]backend.Count, error) {
		found := map[backend.Count]int{}
		for _, i := range t.instances {
			if i.row.EndedAt.IsZero() {
				found[backend.Count{What: backend.CountInstances, Name: string(i.row.Status)}]++
			}
		}
		for _, k := range t.tasks {
			if k.row.Status == projections.TaskReady || k.row.Status == projections.TaskReserved {
				found[backend.Count{What: backend.CountTasks, Name: backend.TaskOpen}]++
			}
		}
		for _, l := range t.deadLetters {
			found[backend.Count{What: backend.CountDeadLetters, Name: l.row.Queue}]++
		}
		var counts []backend.Count
		for c, n := range found {
			c.Rows = n
			counts = append(counts, c)
		}
		return counts, nil
	})
}

// Queues implements backend.BacklogReader.
func (s *Store) Queues(ctx context.Context) ([]backend.Queue, error) {
	return view(ctx, s, func(t *data) ([]backend.Queue, error) {
		queues := []backend.Queue{{Name: string(store.Signals)}, {Name: string(store.Schedule)}, {Name: string(store.Commands)}}
		now := s.db.now()
		for _, m := range t.messages {
			i := slices.IndexFunc(queues, func(q backend.Queue) bool { return q.Name == string(m.Queue) })
			if i < 0 {
				continue
			}
			q := &queues[i]
			switch since := m.DueAt; {
			case m.leased != "":
				q.Leased++
			case since.After(now):
				q.Delayed++
			default:
				q.Ready++
				if since.IsZero() {
					since = m.EnqueuedAt
				}
				if q.OldestAt.IsZero() || since.Before(q.OldestAt) {
					q.OldestAt = since
				}
			}
		}
		return queues, nil
	})
}
