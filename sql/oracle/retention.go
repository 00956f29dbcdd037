package oracle

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// purgeBatch bounds the undo of a purge's transaction.
const purgeBatch = 20

// errNotOver refuses to delete an instance that has ended no more since it was found:
// it was deleted, and perhaps begun anew under its id.
var errNotOver = errors.New("the instance is gone, or was begun anew")

// Purge implements backend.Retention. What somebody has locked is passed over, and what
// is not over any more.
func (s jobs) Purge(ctx context.Context, endedBefore time.Time, limit int) (int, error) {
	if err := s.enter(); err != nil {
		return 0, wrap("purge", err)
	}
	defer s.leave()
	count, passed := 0, map[endedRow]bool{}
	for count < limit {
		if err := ctx.Err(); err != nil {
			return count, wrap("purge", err)
		}
		want := min(limit-count, purgeBatch)
		found, err := list[endedRow](ctx, s.Store, read("purge_list", stamp(endedBefore), want+len(passed)))
		last := len(found) < want+len(passed)
		found = slices.DeleteFunc(found, func(i endedRow) bool { return passed[i] })
		if err == nil && len(found) > 0 {
			var over []endedRow
			over, err = passingOver(found, func(list []endedRow) error { return s.purge(ctx, list, endedBefore) })
			for _, i := range over {
				passed[i] = true
			}
			count += len(found) - len(over)
		}
		if err != nil {
			return count, wrap("purge", err)
		}
		if last {
			break
		}
	}
	// Edits of letters that are gone, of no instance that is there: nothing else takes them.
	_, err := sweep(ctx, s.db, "edit_orphans", "edit_orphan_delete", stamp(endedBefore))
	return count, wrap("purge", errors.Join(err, janitor(s).sweepPayloads(ctx, endedBefore)))
}

// endedRow is an instance that may be purged.
type endedRow struct {
	ID string `db:"INSTANCE_ID"`
}

func (s jobs) purge(ctx context.Context, list []endedRow, endedBefore time.Time) error {
	w := &work{}
	for _, i := range list {
		w.add(errNotOver, "purge_state", i.ID, stamp(endedBefore)) // whose lock keeps the instance as it is
		for _, part := range purged {
			w.add(nil, "purge_"+part, i.ID)
		}
	}
	return change(ctx, s.Store, nil, func(session *aq.Session) error { return execute(ctx, session, w, false) })
}

// purged is what is kept of an instance beside its state.
var purged = []string{"stream", "task_events", "actors", "tasks", "waits", "attributes", "activities", "dead_letter_edits", "requests", "instance"}

// keptBlocks are what deletes each kind: procedures of the owner, for the runtime user
// may delete neither tokens nor what was published. They refuse what is not over.
var keptBlocks = map[backend.Kept]string{
	backend.KeptTokens:   "BEGIN :COUNTED := AQUEDUCT_ADMIN.PURGE_TOKENS(:REASON, CAST(:OVER_BEFORE AS TIMESTAMP), :ROWS_MAX); END",
	backend.KeptAudit:    "BEGIN :COUNTED := AQUEDUCT_ADMIN.PURGE_AUDIT(:REASON, CAST(:OVER_BEFORE AS TIMESTAMP), :ROWS_MAX); END",
	backend.KeptPolicies: "BEGIN :COUNTED := AQUEDUCT_ADMIN.PURGE_POLICIES(:REASON, CAST(:OVER_BEFORE AS TIMESTAMP), :ROWS_MAX); END",
}

// PurgeKept implements backend.Retention. The audit says that the runtime user has
// called the procedure, and why.
func (s jobs) PurgeKept(ctx context.Context, what backend.Kept, before time.Time, limit int, by backend.Purger) (int, error) {
	if what == backend.KeptBulk {
		return s.purgeBulk(ctx, before, limit, by)
	}
	if err := s.enter(); err != nil {
		return 0, wrap("purge "+string(what), err)
	}
	defer s.leave()
	var count int64
	err := change(ctx, s.Store, nil, func(session *aq.Session) error {
		return block(ctx, session, []op{{block: keptBlocks[what], args: []any{sql.Out{Dest: &count}, by("").Reason, stamp(before), limit}}})
	})
	if what == backend.KeptAudit && slices.Contains(aq.Codes(err), notPossible) {
		err = backend.AppendOnly()
	}
	return int(count), wrap("purge "+string(what), err)
}

// notPossible is what the package answers who is not the owner.
const notPossible = 20804

// OldDeadLetters implements backend.Retention.
func (s jobs) OldDeadLetters(ctx context.Context, diedBefore time.Time, after string, limit int) ([]string, error) {
	if after == "" {
		after = " " // an empty text is null
	}
	found, err := list[struct {
		ID string `db:"DEAD_LETTER_ID"`
	}](ctx, s.Store, read("dead_letter_old", stamp(diedBefore), after, limit))
	ids := make([]string, len(found))
	for i, r := range found {
		ids[i] = r.ID
	}
	return ids, wrap("old dead letters", err)
}
