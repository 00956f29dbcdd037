package backend

import (
	"context"
	"fmt"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/store"
)

// Retention removes what is over. It never touches an instance that is not
// closed, nor a message.
type Retention interface {
	// Purge deletes up to limit instances that ended before a moment, with
	// everything that belongs to them, and returns how many. One that has a
	// command which is not processed is kept: the command would be lost with it.
	Purge(ctx context.Context, endedBefore time.Time, limit int) (int, error)
	// PurgeKept deletes something else that was over before a moment, up to limit or
	// what a commit should have, each with its audit, and returns how many. What
	// somebody has locked is passed over.
	PurgeKept(ctx context.Context, what Kept, before time.Time, limit int, by Purger) (int, error)
	// OldDeadLetters lists ids of dead letters that died before a moment, behind one, in
	// the order of their ids: those of no instance that is there and has not ended. Who
	// deletes one looks again.
	OldDeadLetters(ctx context.Context, diedBefore time.Time, after string, limit int) ([]string, error)
}

// Kept is what retention deletes beside instances.
type Kept string

const (
	// KeptTokens are over when they have expired or were revoked, and never before.
	KeptTokens Kept = "tokens"
	// KeptPolicies are versions of policies, over when a newer one was published. One
	// stays while an instance is kept, though it has ended, which began before that or
	// within PolicyMargin: its stream cannot be read without what it was decided by.
	KeptPolicies Kept = "policies"
	// KeptAudit are rows of the audit. What is deleted at once has one row in their
	// place, which says how many they were before its reason. Problem: audit.append-only
	// where that is not for nodes to do.
	KeptAudit Kept = "audit"
	// KeptBulk are plans of what operators do to many at once, over when they were made,
	// begun, stopped or done last. How many are the rows of both tables.
	KeptBulk Kept = "bulk"
)

// PolicyMargin covers what clocks of nodes differ by, and a turn that is decided while
// a policy is published.
const PolicyMargin = 24 * time.Hour

// ScheduleMargin is how long after the end of an instance that kept a schedule a run may have
// begun of whose end that one is yet to hear, in which clocks of nodes differ, too.
const ScheduleMargin = 24 * time.Hour

// AppendOnly is the refusal of KeptAudit to who is not the owner of the database.
func AppendOnly() error {
	return problem.New(problem.Denied, "audit.append-only", "this user may not delete from the audit: its owner may").
		WithHint("set retention.audit to 0, and have the owner call AQUEDUCT_ADMIN.PURGE_AUDIT")
}

// AuditPurged is the audit of rows of the audit that were deleted.
func AuditPurged(count int, by Purger) store.Audit {
	a := by("audit")
	a.Reason = fmt.Sprintf("%d rows: %s", count, a.Reason)
	return a
}

// Purger is the audit of what is deleted. A store that has it deleted by a procedure of
// the database takes the reason, and the procedure says who has called it.
type Purger func(target string) store.Audit
