package embedded

import (
	"context"
	"sync"

	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
	"github.com/aqueduct-engine/aqueduct/store"
)

// straysMax is how many messages of this node one look takes in: all that it
// can have in hand, and those of its prefetched ones.
const straysMax = 10_000

// stray is a message that is locked by this node.
type stray struct {
	ID    int64  `db:"MSG_ID"`
	Enq   int64  `db:"ENQ_AT"`
	Queue string `db:"QUEUE"`
}

// strays implements backend.Strays.
type strays struct {
	*sqlite.Store
	mu    sync.Mutex
	found map[stray]bool // at the last call
}

// Strays implements backend.Strays. It asks the table, not what the process
// remembers: a delivery that counts as over may have left its row.
func (s *strays) Strays(ctx context.Context, held func(string) bool) (int, error) {
	locked, err := sqlite.List[stray](ctx, s.Store, read("message_strays", s.Number(), straysMax))
	if err != nil {
		return 0, wrap("strays", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	seen, before := map[stray]bool{}, s.found
	var lost []stray
	prefetched := s.Prefetched()
	for _, m := range locked {
		if name := sqlite.MessageID(m.ID, m.Enq); held(name) || prefetched[name] {
			continue
		}
		if seen[m] = true; before[m] {
			lost = append(lost, m)
		}
	}
	s.found = seen
	if len(lost) == 0 {
		return 0, nil
	}
	count := 0
	err = s.Write(ctx, func(t sqlite.Tx) error {
		count = 0
		for _, m := range lost {
			_, n, err := t.Exec("message_unlease", m.ID, m.Enq, s.Number())
			if err != nil {
				return err
			}
			if n > 0 {
				s.Log().Error("sqlite: a message was locked by this node, and nobody worked on it", "queue", m.Queue, "message", sqlite.MessageID(m.ID, m.Enq))
				t.Returned(store.Queue(m.Queue))
				count++
			}
		}
		return nil
	})
	if err != nil {
		return 0, wrap("strays", err)
	}
	return count, nil
}
