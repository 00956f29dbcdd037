package projections

import "strconv"

// Rows as stores read them: what is shown, with what it is verified and paged by.

// InstanceRow is an instance with the number that pages go by, where it has one.
type InstanceRow struct {
	No int64 `db:"INSTANCE_NO"`
	Instance
}

// EntryRow is an entry of a stream with its checksum.
type EntryRow struct {
	Sum       int64 `db:"CHECKSUM"`
	Elsewhere bool  `db:"ELSEWHERE"` // the snapshot has the data
	Entry
}

// Verify says what ails the row.
func (e *EntryRow) Verify() error {
	if e.Elsewhere {
		return e.Check(nil, e.Sum)
	}
	return e.Check(e.Data, e.Sum)
}

// TaskRow is a task with its checksums, and the number that pages go by.
type TaskRow struct {
	No int64 `db:"TASK_NO"`
	TaskSums
	Task
}

// Verify says what ails the row.
func (t *TaskRow) Verify() error { return t.Check(t.TaskSums) }

// Mark is where the page behind a task begins.
func (t TaskRow) Mark() string { return strconv.Itoa(t.Priority) + "." + strconv.FormatInt(t.No, 10) }

// TaskEventRow is an event of a task with its checksum.
type TaskEventRow struct {
	Sum int64 `db:"CHECKSUM"`
	TaskEvent
}

// Verify says what ails the row.
func (e *TaskEventRow) Verify() error { return e.Check(e.Sum) }

// DeadLetterRow is a dead letter with the number that pages go by.
type DeadLetterRow struct {
	No int64 `db:"LETTER_NO"`
	DeadLetter
}

// Mark is where the page behind a dead letter begins.
func (l DeadLetterRow) Mark() string { return strconv.FormatInt(l.No, 10) }

// Item is what the row shows.
func (i InstanceRow) Item() Instance { return i.Instance }

// Item is what the row shows.
func (e EntryRow) Item() Entry { return e.Entry }

// Item is what the row shows.
func (t TaskRow) Item() Task { return t.Task }

// Item is what the row shows.
func (t TaskEventRow) Item() TaskEvent { return t.TaskEvent }

// Item is what the row shows.
func (d DeadLetterRow) Item() DeadLetter { return d.DeadLetter }

// SpecRow is what a wait waits for.
type SpecRow struct {
	Spec string `db:"SPEC"`
}

// Item is what the row shows.
func (s SpecRow) Item() string { return s.Spec }

// Bounded gives a list its limit.
func Bounded(limit int) int {
	if limit <= 0 {
		return DefaultLimit
	}
	return min(limit, MaxLimit)
}

// Cut makes a page of a list that was asked for one row more than limit; mark is
// where the next page goes on behind a row.
func Cut[R, T any](list []R, limit int, item func(R) T, mark func(R) string) Page[T] {
	p := Page[T]{}
	if n := min(len(list), limit); len(list) > limit || Full(list) {
		list = list[:n]
		p.Next = mark(list[n-1])
	}
	p.Items = Items(list, item)
	return p
}

// Items are what rows show.
func Items[R, T any](list []R, item func(R) T) []T {
	items := make([]T, len(list))
	for i, r := range list {
		items[i] = item(r)
	}
	return items
}
