package embedded

import (
	"context"
	"errors"
	"time"

	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
)

// jobs is for the jobs of one node: who does them, and retention.
type jobs struct{ *sqlite.Store }

// Lock implements store.Locks. The clock is this host's: every process on the
// file has the same.
func (s jobs) Lock(ctx context.Context, name string, ttl time.Duration) (bool, error) {
	taken := errors.New("taken")
	err := s.Write(ctx, func(t sqlite.Tx) error {
		return t.Guard(taken, "lock_take", name, s.Node(), t.Now()+ttl.Microseconds(), t.Now())
	})
	if errors.Is(err, taken) {
		return false, nil
	}
	return err == nil, wrap("lock "+name, err)
}

// Unlock implements store.Locks. A lock that another holds stays theirs.
func (s jobs) Unlock(ctx context.Context, name string) error {
	return wrap("unlock "+name, s.Write(ctx, func(t sqlite.Tx) error {
		_, _, err := t.Exec("lock_drop", name, s.Node())
		return err
	}))
}
