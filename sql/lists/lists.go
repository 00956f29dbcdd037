// Package lists has the rows that stores read for lists: what is shown, with what
// it is verified and paged by.
package lists

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// InstanceRow is an instance with the number that pages go by, where it has one.
type InstanceRow struct {
	No int64 `db:"INSTANCE_NO"`
	projections.Instance
}

// TaskRow is a task with its checksums, and the number that pages go by.
type TaskRow struct {
	No int64 `db:"TASK_NO"`
	backend.TaskSums
	projections.Task
}

// Verify says what ails the row.
func (t *TaskRow) Verify() error { return backend.CheckTask(&t.Task, t.TaskSums) }

// Mark is where the page behind a task begins.
func (t TaskRow) Mark() string { return strconv.Itoa(t.Priority) + "." + strconv.FormatInt(t.No, 10) }

// TaskEventRow is an event of a task with its checksum.
type TaskEventRow struct {
	Sum int64 `db:"CHECKSUM"`
	projections.TaskEvent
}

// Verify says what ails the row.
func (e *TaskEventRow) Verify() error { return backend.CheckEvent(&e.TaskEvent, e.Sum) }

// DeadLetterRow is a dead letter with the number that pages go by.
type DeadLetterRow struct {
	No int64 `db:"LETTER_NO"`
	projections.DeadLetter
}

// Mark is where the page behind a dead letter begins.
func (l DeadLetterRow) Mark() string { return strconv.FormatInt(l.No, 10) }

// Item is what the row shows.
func (i InstanceRow) Item() projections.Instance { return i.Instance }

// Item is what the row shows.
func (t TaskRow) Item() projections.Task { return t.Task }

// Item is what the row shows.
func (t TaskEventRow) Item() projections.TaskEvent { return t.TaskEvent }

// Item is what the row shows.
func (d DeadLetterRow) Item() projections.DeadLetter { return d.DeadLetter }

// SpecRow is what a wait waits for.
type SpecRow struct {
	Spec string `db:"SPEC"`
}

// Item is what the row shows.
func (s SpecRow) Item() string { return s.Spec }

// VersionRow is a version that instances run; "" = there is none.
type VersionRow struct {
	Version string `db:"DEFINITION_VERSION"`
}

// Item is what the row shows.
func (v VersionRow) Item() string { return v.Version }

// First is what the first row shows, or nothing.
func First[R any, T any](found []R, item func(R) T) (first T) {
	for _, row := range found[:min(1, len(found))] {
		first = item(row)
	}
	return first
}

// CommandMark is where the page behind a command begins.
func CommandMark(e projections.EntryRow) string {
	return strconv.FormatInt(e.Position, 10) + "." + e.InstanceID
}

// AuditMark is where the page behind a row of the audit begins.
func AuditMark(a store.Audit) string { return strconv.FormatInt(a.At.UnixMicro(), 10) + "." + a.ID }

// TokenMark is where the page behind a token begins.
func TokenMark(k backend.Token) string {
	return strconv.FormatInt(k.CreatedAt.UnixMicro(), 10) + "." + k.ID
}

// DeadLetterEditMark is where the page behind an edit of a dead letter begins.
func DeadLetterEditMark(e backend.DeadLetterEdit) string { return strconv.FormatInt(e.No, 10) }

// ActivityMark is where the page behind an activity begins.
func ActivityMark(a backend.Activity) string {
	return strconv.FormatInt(a.CreatedAt.UnixMicro(), 10) + "." + a.ID
}

// BulkMark is where the page behind a plan begins.
func BulkMark(b backend.Bulk) string {
	return strconv.FormatInt(b.CreatedAt.UnixMicro(), 10) + "." + b.ID
}

// BulkItemMark is where the page behind an item of a plan begins.
func BulkItemMark(i backend.BulkItem) string { return strconv.FormatInt(i.No, 10) }

// BulkItemsWhere selects a page of the items of a plan, and ends the reading.
func BulkItemsWhere(r *rows.Select, q *backend.BulkItemQuery) error {
	r.Where("PLAN_ID = ?", q.ID)
	switch q.Outcome {
	case "":
	case backend.BulkItemOpen:
		r.Where("OUTCOME is null")
	default:
		r.Where("OUTCOME = ?", q.Outcome)
	}
	if q.After != "" {
		n, _, err := rows.Mark(q.After)
		if err != nil {
			return err
		}
		r.Where("ITEM_NO > ?", n)
	}
	r.Order("ITEM_NO", projections.Bounded(q.Limit)+1)
	return nil
}

// MomentMark is where the page behind a moment begins.
func MomentMark(m backend.Moment) string {
	return strconv.FormatInt(m.At.UnixMicro(), 10) + "." + strconv.Itoa(len(m.InstanceID)) + "." + m.InstanceID + m.Place
}

// AfterMoment reads such a mark.
func AfterMoment(mark string) (us int64, instance, place string, err error) {
	us, rest, err := rows.Mark(mark)
	n, rest, errN := rows.Mark(rest)
	if err = cmp.Or(err, errN); err != nil || n < 0 || n > int64(len(rest)) {
		return 0, "", "", problem.New(problem.Invalid, "page.invalid", "%.64q is not the end of a page", mark)
	}
	return us, rest[:n], rest[n:], nil
}

// MomentsWhere adds what a query asks for of WF_V_MOMENTS but its page; instance is the
// condition that names one.
func MomentsWhere(r *rows.Select, q *backend.MomentQuery, instance string) {
	r.Equals("M.BUSINESS_KEY", q.BusinessKey)
	if q.InstanceID != "" {
		r.Where(instance, q.InstanceID)
	}
	r.Equals("M.DEFINITION", q.Definition)
	Within(r, "M.DEFINITION", q.Scope)
	if len(q.Kinds) > 0 {
		args := make([]any, len(q.Kinds))
		for i, kind := range q.Kinds {
			args[i] = kind
		}
		r.Where("M.KIND in ("+marks(len(args))+")", args...)
	}
}

// Within keeps to the definitions of a scope; definition is the column with their names.
func Within(r *rows.Select, definition string, scope backend.Scope) {
	if scope != nil {
		text, args := within(definition, scope)
		r.Where(text, args...)
	}
}

// OfInstanceWithin keeps to what is of instances in a scope; join says which instance I a
// row is of.
func OfInstanceWithin(r *rows.Select, join string, scope backend.Scope) {
	if scope != nil {
		text, args := within("I.DEFINITION", scope)
		r.Where("exists (select 1 from WF_INSTANCES I where "+join+" and "+text+")", args...)
	}
}

func within(definition string, scope backend.Scope) (text string, args []any) {
	if len(scope) == 0 {
		return "1 = 0", nil
	}
	for _, namespace := range scope {
		text += " or substr(" + definition + ", 1, ?) = ?"
		args = append(args, len([]rune(namespace))+1, namespace+"/")
	}
	return "(" + strings.TrimPrefix(text, " or ") + ")", args
}

// CommandsWhere adds what type of command a query asks for: by the type of the entry, or by
// what the command says, of which field is an expression by its path.
func CommandsWhere(r *rows.Select, q *backend.CommandQuery, field func(path string) string) {
	if q.Type == "" {
		return
	}
	const emits = "S.TYPE = 'EventEmitted'"
	last := "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(q.Type) // the end of a pointer
	at := field("$.ptr")
	r.Where("(S.TYPE = ? or "+field("$.target")+" = ? or "+emits+" and "+field("$.input.type")+" = ? or not "+emits+
		" and substr("+at+", length("+at+") - length(?) + 1) = ?)", q.Type, q.Type, q.Type, last, last)
}

// Cut makes a page of a list that was asked for one row more than limit; mark is
// where the next page goes on behind a row.
func Cut[R, T any](list []R, limit int, item func(R) T, mark func(R) string) backend.Page[T] {
	of := Page(list, limit, mark)
	return backend.Page[T]{Items: rows.Items(of.Items, item), Next: of.Next}
}

// Page is Cut of rows that are shown as they are.
func Page[R any](list []R, limit int, mark func(R) string) (p backend.Page[R]) {
	if p.Items = list; len(list) > limit || backend.Full(list) {
		p.Items = list[:min(len(list), limit)]
		p.Next = mark(p.Items[len(p.Items)-1])
	}
	return p
}

// ReasonRow is of a dead letter that is counted.
type ReasonRow struct {
	Reason string `db:"REASON"`
}

// Reasons counts rows, of which there are more than most or not.
func Reasons(found []ReasonRow, most int) (counts []backend.ReasonCount, more bool) {
	rows := map[string]int{}
	for _, r := range found[:min(len(found), most)] {
		rows[r.Reason]++
	}
	for reason, n := range rows {
		counts = append(counts, backend.ReasonCount{Reason: reason, Rows: n})
	}
	slices.SortFunc(counts, func(a, b backend.ReasonCount) int {
		return cmp.Or(cmp.Compare(b.Rows, a.Rows), cmp.Compare(a.Reason, b.Reason))
	})
	return counts, len(found) > most
}
