package sqlite

import (
	"context"

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

// Strays implements store.Ledger. It asks the table, not what the process
// remembers: a delivery that counts as over may have left its row.
func (s *Store) Strays(ctx context.Context, held func(string) bool) (int, error) {
	locked, err := List[stray](ctx, s, read("message_strays", s.nodes.no, straysMax))
	if err != nil {
		return 0, wrap("strays", err)
	}
	s.straysMu.Lock()
	defer s.straysMu.Unlock()
	seen, before := map[stray]bool{}, s.strays
	var lost []stray
	prefetchedIDs := s.prefetchedIDs()
	for _, m := range locked {
		if name := messageID(m.ID, m.Enq); held(name) || prefetchedIDs[name] {
			continue
		}
		if seen[m] = true; before[m] {
			lost = append(lost, m)
		}
	}
	s.strays = seen
	if len(lost) == 0 {
		return 0, nil
	}
	count := 0
	err = s.do(ctx, func(t *tx) error {
		count = 0
		for _, m := range lost {
			_, n, err := t.exec("message_unlease", m.ID, m.Enq, s.nodes.no)
			if err != nil {
				return err
			}
			if n > 0 {
				s.log.Error("sqlite: a message was locked by this node, and nobody worked on it", "queue", m.Queue, "message", messageID(m.ID, m.Enq))
				t.out.released(store.Queue(m.Queue))
				t.out.returned = append(t.out.returned, store.Queue(m.Queue))
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
