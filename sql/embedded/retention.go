package embedded

import (
	"context"
	"database/sql/driver"
	"time"

	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// purgeBatch bounds how long a purge keeps the writer from others.
const purgeBatch = 50

// Purge implements backend.Retention.
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
	// Edits of letters that are gone, of no instance that is there: nothing else takes them.
	return count, wrap("purge", s.Write(ctx, func(t sqlite.Tx) error {
		_, _, err := t.Exec("purge_edit_orphans", endedBefore.UnixMicro())
		return err
	}))
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
		for _, name := range []string{"purge_task_events", "purge_tasks", "purge_waits", "purge_attributes", "purge_activities", "purge_dead_letter_edits", "purge_pieces", "purge_state", "purge_instance"} {
			if _, _, err := t.Exec(name, no); err != nil {
				return 0, err
			}
		}
		t.Forget(id)
	}
	return len(numbers), nil
}

// keptStatements name of each kind the statement that lists rows that are over, by
// their keys and as the audit calls them, and the one that deletes one of them.
var keptStatements = map[backend.Kept][2]string{
	backend.KeptTokens:   {"purge_tokens_list", "purge_token"},
	backend.KeptPolicies: {"purge_policies_list", "purge_policy"},
}

// keptRow is something that may be deleted, and stays so.
type keptRow struct {
	Key    string `db:"KEY"`
	Target string `db:"TARGET"`
}

// PurgeKept implements backend.Retention. What is over is looked for beside the writer.
func (s jobs) PurgeKept(ctx context.Context, what backend.Kept, before time.Time, limit int, by backend.Purger) (count int, err error) {
	if what == backend.KeptAudit {
		return s.purgeAudit(ctx, before, limit, by)
	}
	if what == backend.KeptBulk {
		return s.purgeBulk(ctx, before, limit, by)
	}
	names, limit := keptStatements[what], min(limit, purgeBatch)
	found, err := sqlite.List[keptRow](ctx, s.Store, read(names[0], min(before.UnixMicro(), s.Now().UnixMicro()), limit))
	if err != nil || len(found) == 0 {
		return 0, wrap("purge "+string(what), err)
	}
	err = s.Write(ctx, func(t sqlite.Tx) error {
		count = 0
		for _, r := range found {
			_, gone, err := t.Exec(names[1], r.Key)
			if err == nil && gone > 0 { // else another process was faster
				count++
				err = writeAudit(t, []store.Audit{by(r.Target)})
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return count, wrap("purge "+string(what), err)
}

// purgeAudit deletes the oldest rows of the audit.
func (s jobs) purgeAudit(ctx context.Context, before time.Time, limit int, by backend.Purger) (int, error) {
	var gone int64
	err := s.Write(ctx, func(t sqlite.Tx) error {
		var err error
		if _, gone, err = t.Exec("purge_audit", before.UnixMicro(), int64(limit)); err != nil || gone == 0 {
			return err
		}
		return writeAudit(t, []store.Audit{backend.AuditPurged(int(gone), by)})
	})
	return int(gone), wrap("purge audit", err)
}

// OldDeadLetters implements backend.Retention.
func (s jobs) OldDeadLetters(ctx context.Context, diedBefore time.Time, after string, limit int) ([]string, error) {
	type row struct {
		ID string `db:"DEAD_LETTER_ID"`
	}
	found, err := sqlite.List[row](ctx, s.Store, read("dead_letter_old", diedBefore.UnixMicro(), after, limit))
	ids := make([]string, len(found))
	for i, r := range found {
		ids[i] = r.ID
	}
	return ids, wrap("old dead letters", err)
}
