package backend

import (
	"slices"
	"time"

	"github.com/aqueduct-engine/aqueduct/attribute"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
)

// Operations on many at once, beside those of one instance (engine.Operation).
const (
	BulkMigrate = "migrate" // of instances, to another version of their definition
	BulkReplay  = "replay"  // of dead letters
	BulkDiscard = "discard" // of dead letters
)

// bulkOperations are those of one instance that may be done to many. A skip is not: what
// its task is taken to have answered is a matter of the one instance.
var bulkOperations = map[string]engine.Operation{
	"retry": engine.Retry, "retry-same": engine.RetrySame, "retry-new": engine.RetryNew, "suspend": engine.Suspend, "resume": engine.Resume,
	"cancel": engine.Cancel, "compensate": engine.Compensate, "run-now": "run-now", // of operate
}

// BulkAsked is what an operator asks to be done, and of what: empty fields do not
// restrict.
type BulkAsked struct {
	Operation string `json:"operation"`

	Definition string    `json:"definition,omitempty"`
	ErrorCode  string    `json:"errorCode,omitempty"` // type of the error of instances, reason of dead letters
	Text       string    `json:"text,omitempty"`      // in its words
	Before     time.Time `json:"before,omitzero"`     // that have not changed since, or died before

	Version     string `json:"version,omitempty"`
	Status      string `json:"status,omitempty"`
	State       string `json:"state,omitempty"`
	BusinessKey string `json:"businessKey,omitempty"`
	Parent      string `json:"parent,omitempty"`
	Where       string `json:"where,omitempty"`

	Queue    string `json:"queue,omitempty"`
	Instance string `json:"instance,omitempty"`

	Limit    int               `json:"limit,omitempty"` // items of the plan at most; 0 = MaxBulk
	To       string            `json:"to,omitempty"`    // of a migration: the version
	Pointers map[string]string `json:"pointers,omitempty"`
}

// OfDeadLetters says of what the plan is.
func (b *BulkAsked) OfDeadLetters() bool {
	return b.Operation == BulkReplay || b.Operation == BulkDiscard
}

// OfInstance is the operation on one instance that the plan repeats; "" = it is another.
func (b *BulkAsked) OfInstance() engine.Operation { return bulkOperations[b.Operation] }

// Selection is what the plan is of. Problems: bulk.operation, bulk.filter,
// bulk.migration, and those of attribute.Where.
func (b *BulkAsked) Selection() (s BulkSelection, err error) {
	ofOne := b.Version + b.Status + b.State + b.BusinessKey + b.Parent + b.Where
	both := b.Definition + b.ErrorCode + b.Text
	switch {
	case b.OfInstance() == "" && b.Operation != BulkMigrate && !b.OfDeadLetters():
		return s, problem.New(problem.Invalid, "bulk.operation", "%.40q is nothing that is done to many at once", b.Operation).
			WithHint("retry, retry-same, retry-new, suspend, resume, run-now, cancel, compensate, migrate; of dead letters replay, discard")
	case (b.To != "" || b.Pointers != nil) && b.Operation != BulkMigrate:
		return s, problem.New(problem.Invalid, "bulk.filter", "only a migration leads to a version, not %s", b.Operation)
	case b.Limit < 0 || b.Limit > MaxBulk:
		return s, problem.New(problem.Invalid, "bulk.filter", "a plan may have 1 to %d items, not %d", MaxBulk, b.Limit)
	case b.OfDeadLetters() && ofOne != "":
		return s, problem.New(problem.Invalid, "bulk.filter", "dead letters have no version, status, state, key, parent or attributes").
			WithHint("they are found by queue, errorCode, definition, text, instance and age")
	case !b.OfDeadLetters() && b.Queue+b.Instance != "":
		return s, problem.New(problem.Invalid, "bulk.filter", "only dead letters are found by queue or instance, not what is to %s", b.Operation)
	case ofOne+both+b.Queue+b.Instance == "" && b.Before.IsZero():
		return s, problem.New(problem.Invalid, "bulk.filter", "the plan has no filter, and a limit is none: it says nothing of what it is of").
			WithHint("say of what it is: by definition, errorCode, age or others")
	}
	if b.OfDeadLetters() {
		s.DeadLetters = &DeadLetterQuery{Queue: b.Queue, Reason: b.ErrorCode, InstanceID: b.Instance, Definition: b.Definition, Text: b.Text, Before: b.Before, Limit: projections.MaxLimit}
		return s, nil
	}
	q := &InstanceQuery{
		Definition: b.Definition, Version: b.Version, Status: b.Status, Live: true, State: b.State, BusinessKey: b.BusinessKey, ParentID: b.Parent,
		ErrorCode: b.ErrorCode, Text: b.Text, Before: b.Before, Limit: projections.MaxLimit,
	}
	s.Instances = q
	if b.Operation == BulkMigrate && (b.Definition == "" || b.Version == "" || b.To == "" || b.To == b.Version) {
		return s, problem.New(problem.Invalid, "bulk.migration", "a migration is of one definition, from one version to another").
			WithHint("say definition, version and to")
	}
	if err := implied(b.OfInstance(), q); err != nil {
		return s, err
	}
	if b.Where != "" {
		q.Where, err = attribute.Where(b.Where)
	}
	return s, err
}

// implied narrows a query to what an operation can be done to.
func implied(op engine.Operation, q *InstanceQuery) error {
	only := ""
	switch op {
	case engine.Retry, engine.RetrySame, engine.RetryNew:
		only = "faulted"
	case engine.Resume:
		only = "suspended"
	}
	if only != "" && q.Status == "" {
		q.Status = only
	}
	if only != "" && q.Status != only || slices.Contains([]string{"cancelled", "completed", "compensated"}, q.Status) {
		return problem.New(problem.Invalid, "bulk.filter", "%s is nothing that is done to instances that are %s", op, q.Status)
	}
	return nil
}
