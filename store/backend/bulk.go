package backend

import (
	"context"
	"time"

	"github.com/aqueduct-engine/aqueduct/store"
)

// MaxBulk is how many items a plan may have.
const MaxBulk = 100_000

// BulkPlans keeps what operators do to many instances or dead letters at once: a plan
// is what was found when it was made, and nothing else is ever done by it.
type BulkPlans interface {
	// MakeBulk keeps a plan, which has no items yet.
	MakeBulk(ctx context.Context, b Bulk) error
	// SelectBulk gives a plan its items: what a query finds, instances in its order and
	// dead letters the oldest first, as many as a limit allows. It returns how many, and whether there are more.
	SelectBulk(ctx context.Context, id string, s BulkSelection, limit int) (count int, more bool, err error)
	// ChangeBulk writes what of a plan may change, with its audit, where it has the
	// version before: else store.ErrStale.
	ChangeBulk(ctx context.Context, b Bulk, by ...store.Audit) error
	// SettleBulk says what has become of items that are open; of others it is known.
	// What was refused has a row of the audit with it.
	SettleBulk(ctx context.Context, id string, settled []BulkItem, by ...store.Audit) error
}

// BulkReader reads plans.
type BulkReader interface {
	Bulk(ctx context.Context, id string) (Bulk, error)
	// Bulks lists plans, newest first.
	Bulks(ctx context.Context, after string, limit int) (Page[Bulk], error)
	// BulkItems lists items in the order in which they are done.
	BulkItems(ctx context.Context, q BulkItemQuery) (Page[BulkItem], error)
	// BulkCounts says how many items a plan has, by what has become of them and why.
	BulkCounts(ctx context.Context, id string) ([]BulkCount, error)
	// BulkKinds says how many items a plan has by what they were when it was made: of
	// MaxBulkKinds at most, the most frequent first.
	BulkKinds(ctx context.Context, id string) ([]BulkKind, error)
}

// MaxBulkKinds is how many kinds of items of a plan are told apart.
const MaxBulkKinds = 20

// Bulk is a plan: a row of WF_BULK_PLANS.
type Bulk struct {
	ID        string    `db:"PLAN_ID" width:"64"`
	Operation string    `db:"OPERATION" width:"32"`
	Status    string    `db:"STATUS" width:"16"`
	Version   int64     `db:"PLAN_VERSION"` // from 1; guards every change
	More      int       `db:"HAS_MORE"`     // 1: more was found than it may have
	Reason    string    `db:"REASON" width:"1000"`
	CreatedAt time.Time `db:"CREATED_ON_UTC"`
	CreatedBy string    `db:"CREATED_BY" width:"128"`
	UpdatedAt time.Time `db:"UPDATED_ON_UTC"` // of its status
	RunBy     string    `db:"RUN_BY" width:"128"`
	EndedAt   time.Time `db:"ENDED_ON_UTC"`
	Asked     []byte    `db:"ASKED"` // what was asked for, JSON
}

// Weight is what the plan adds to a page.
func (b *Bulk) Weight() int { return len(b.Asked) }

// Statuses of a plan.
const (
	BulkPlanning = "planning" // its items are being found; who found them may have ended
	BulkPlanned  = "planned"
	BulkRunning  = "running" // it was begun, and not stopped; whoever goes on may have ended
	BulkStopped  = "stopped"
	BulkDone     = "done"
)

// BulkItem is one instance or dead letter of a plan: a row of WF_BULK_ITEMS.
type BulkItem struct {
	No      int64     `db:"ITEM_NO"`                 // from 1
	Target  string    `db:"TARGET_ID" width:"128"`   // instance or dead letter
	Version int64     `db:"TARGET_VERSION"`          // of the instance's state when the plan was made; 0 of a dead letter, which is never changed
	Kind    string    `db:"TARGET_KIND" width:"512"` // type of the error that the instance stood at, else its status; reason of the dead letter
	Outcome string    `db:"OUTCOME" width:"16"`      // "" = open
	Code    string    `db:"CODE" width:"128"`        // of the problem, where it was not done
	Detail  string    `db:"DETAIL" width:"1000"`
	EndedAt time.Time `db:"ENDED_ON_UTC"`
}

// Outcomes of an item.
const (
	BulkItemOpen    = "open" // in queries and counts
	BulkItemDone    = "done"
	BulkItemSkipped = "skipped" // it was not what it was when the plan was made
	BulkItemFailed  = "failed"  // it was refused
)

// BulkItemQuery selects items of a plan.
type BulkItemQuery struct {
	ID      string
	Outcome string // "" = any
	After   string
	Limit   int
}

// BulkCount is how many items have an outcome, with a code.
type BulkCount struct {
	Outcome string `db:"OUTCOME"`
	Code    string `db:"CODE"`
	Rows    int    `db:"ROW_COUNT"`
}

// BulkKind is how many items were of a kind.
type BulkKind struct {
	Kind string `db:"TARGET_KIND"`
	Rows int    `db:"ROW_COUNT"`
}

// BulkSelection says what a plan is of: one of the two.
type BulkSelection struct {
	Instances   *InstanceQuery
	DeadLetters *DeadLetterQuery
}
