package embedded

import (
	"context"
	"database/sql/driver"
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

// purgeBatch bounds how long a purge keeps the writer from others.
const purgeBatch = 50

// Purge implements store.Retention.
func (s jobs) Purge(ctx context.Context, endedBefore time.Time, limit int) (int, error) {
	count := 0
	for count < limit {
		if err := ctx.Err(); err != nil {
			return count, wrap("purge", err)
		}
		want, got := min(limit-count, purgeBatch), 0
		err := s.Write(ctx, func(t sqlite.Tx) error {
			var err error
			got, err = purge(t, endedBefore, want)
			return err
		})
		if err != nil {
			return count, wrap("purge", err)
		}
		count += got
		if got < want {
			break
		}
	}
	return count, nil
}

func purge(t sqlite.Tx, before time.Time, limit int) (int, error) {
	numbers := map[int64]string{}
	err := t.Conn().Query("purge_list", 2, func(r []driver.Value) error {
		no, _ := r[0].(int64)
		numbers[no], _ = r[1].(string)
		return nil
	}, before.UnixMicro(), int64(limit))
	if err != nil {
		return 0, err
	}
	for no, id := range numbers {
		if _, _, err := t.Exec("purge_stream", no<<sqlite.PositionBits, (no+1)<<sqlite.PositionBits-1); err != nil {
			return 0, err
		}
		for _, name := range []string{"purge_task_events", "purge_tasks", "purge_waits", "purge_attributes", "purge_activities", "purge_state", "purge_instance"} {
			if _, _, err := t.Exec(name, no); err != nil {
				return 0, err
			}
		}
		t.Forget(id)
	}
	return len(numbers), nil
}
