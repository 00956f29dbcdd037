package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store"
)

// reading builds one bounded select: a head from query/, conditions, an order.
type reading struct {
	text strings.Builder
	args []any
	and  bool
}

func read(name string) *reading {
	r := &reading{}
	r.text.WriteString(statement(name))
	return r
}

// statement returns the text of a file of query/. The names are constants, and
// a test reads every one.
func statement(name string) string {
	text, err := queries.ReadFile("query/" + name + ".sql")
	if err != nil {
		return ""
	}
	return string(text)
}

func (r *reading) where(condition string, args ...any) {
	if r.and {
		r.text.WriteString(" and ")
	} else {
		r.text.WriteString(" where ")
	}
	r.and = true
	r.text.WriteString(condition)
	r.args = append(r.args, args...)
}

// equals adds a condition unless value is empty.
func (r *reading) equals(column, value string) {
	if value != "" {
		r.where(column+" = ?", value)
	}
}

func (r *reading) order(by string, limit int) {
	r.text.WriteString(" order by " + by + " limit ?")
	r.args = append(r.args, limit)
}

// bounded gives a list its limit.
func bounded(limit int) int {
	if limit <= 0 {
		return projections.DefaultLimit
	}
	return min(limit, projections.MaxLimit)
}

// scanner is what *sql.Rows and *sql.Row have in common.
type scanner interface{ Scan(...any) error }

// list runs a reading and scans every row.
func list[T any](ctx context.Context, s *Store, r *reading, scan func(scanner, *T) error) ([]T, error) {
	s.gate.RLock() // Close waits for running calls
	defer s.gate.RUnlock()
	if s.closed {
		return nil, store.ErrClosed
	}
	rows, err := s.db.QueryContext(ctx, r.text.String(), r.args...)
	if err != nil {
		return nil, explain(err, s.path)
	}
	defer rows.Close()
	items := []T{}
	var full projections.Measure
	for rows.Next() {
		var item T
		if err := scan(rows, &item); err != nil {
			return nil, err
		}
		if items = append(items, item); full.With(&items[len(items)-1]) {
			break
		}
	}
	return items, explain(rows.Err(), s.path)
}

// single is list for a reading that finds one row, or store.ErrNotFound.
func single[T any](ctx context.Context, s *Store, r *reading, scan func(scanner, *T) error) (T, error) {
	items, err := list(ctx, s, r, scan)
	var none T
	if err != nil {
		return none, err
	}
	if len(items) == 0 {
		return none, store.ErrNotFound
	}
	return items[0], nil
}

// keyed is a row with the key that pages go by.
type keyed[T any] struct {
	item T
	key  int64
}

// Weight is that of the row.
func (k *keyed[T]) Weight() int { return projections.WeightOf(&k.item) }

// page cuts a list that was asked for one row more than limit.
func page[T any](rows []keyed[T], limit int, next func(keyed[T]) string) projections.Page[T] {
	var p projections.Page[T]
	if n := min(len(rows), limit); len(rows) > limit || projections.Full(rows) {
		rows = rows[:n]
		p.Next = next(rows[n-1])
	}
	p.Items = make([]T, len(rows))
	for i, r := range rows {
		p.Items[i] = r.item
	}
	return p
}

// newest lists a page in falling order of a number.
func newest[T any](ctx context.Context, s *Store, r *reading, column, after string, limit int, scan func(scanner, *keyed[T]) error) (p projections.Page[T], err error) {
	if after != "" {
		n, err := strconv.ParseInt(after, 10, 64)
		if err != nil {
			return p, badPage(after)
		}
		r.where(column+" < ?", n)
	}
	limit = bounded(limit)
	r.order(column+" desc", limit+1)
	rows, err := list(ctx, s, r, scan)
	return page(rows, limit, keyOf), err
}

func badPage(after string) error {
	return problem.New(problem.Invalid, "page.invalid", "%.64q is not the end of a page", after)
}

func scanInstance(row scanner, k *keyed[projections.Instance]) error {
	i := &k.item
	return row.Scan(&i.ID, textInto{&i.Definition}, textInto{&i.DefVersion}, textInto{&i.BusinessKey}, textInto{&i.StartKey},
		textInto{&i.Status}, textInto{&i.Position}, textInto{&i.ParentID}, textInto{&i.Correlation}, &i.Version, textInto{&i.ErrorType},
		textInto{&i.ErrorDetail}, timeInto{&i.StartedAt}, timeInto{&i.UpdatedAt}, timeInto{&i.EndedAt}, &i.Ahead, &k.key)
}

// Instance implements projections.Reader.
func (s *Store) Instance(ctx context.Context, id string) (projections.Instance, error) {
	r := read("instance_select")
	r.where("INSTANCE_NO = (select INSTANCE_NO from WF_STATES where INSTANCE_ID = ?)", id)
	k, err := single(ctx, s, r, scanInstance)
	return k.item, wrap("instance "+id, err)
}

// Instances implements projections.Reader. The order is that in which the
// starts were committed.
func (s *Store) Instances(ctx context.Context, q projections.InstanceQuery) (projections.Page[projections.Instance], error) {
	r := read("instance_select")
	r.equals("DEFINITION", q.Definition)
	r.equals("STATUS", q.Status)
	r.equals("BUSINESS_KEY", q.BusinessKey)
	r.equals("PARENT_ID", q.ParentID)
	p, err := newest(ctx, s, r, "INSTANCE_NO", q.After, q.Limit, scanInstance)
	return p, wrap("instances", err)
}

// Started implements projections.Reader.
func (s *Store) Started(ctx context.Context, definition, businessKey, startKey string) (projections.Instance, error) {
	r := read("instance_select")
	r.where(startedBy, startKey, businessKey, definition)
	k, err := single(ctx, s, r, scanInstance)
	return k.item, wrap("start key "+startKey, err)
}

// startedBy is the key of the index on start keys.
const startedBy = "START_KEY = ? and coalesce(BUSINESS_KEY, '') = ? and coalesce(DEFINITION, '') = ?"

func keyOf[T any](k keyed[T]) string { return strconv.FormatInt(k.key, 10) }

func scanEntry(row scanner, e *projections.Entry) error {
	var sum int64
	var elsewhere bool // the snapshot has the data
	err := row.Scan(&e.InstanceID, &e.Position, textInto{&e.Kind}, textInto{&e.Direction}, textInto{&e.Type}, bytesInto{&e.Data},
		bytesInto{&e.Metadata}, textInto{&e.SignalID}, timeInto{&e.CreatedAt}, boolInto{&e.Processed}, timeInto{&e.ProcessedAt},
		textInto{&e.ClaimedBy}, &e.Attempts, timeInto{&e.NextAttemptAt}, textInto{&e.LastError}, timeInto{&e.DeliveredAt}, &e.Deliveries,
		textInto{&e.Key}, &e.Unknown, &sum, &elsewhere)
	if err != nil {
		return err
	}
	held := e.Data
	if elsewhere {
		held = nil
	}
	return e.Check(held, sum)
}

// Stream implements projections.Reader.
func (s *Store) Stream(ctx context.Context, id string, after int64, limit int) ([]projections.Entry, error) {
	r := read("stream_select")
	after = min(max(after, -1), 1<<positionBits-1)
	r.where("R.INSTANCE_ID = ?", id)
	r.where("S.ENTRY_NO > (R.INSTANCE_NO << 24) + ?", after)
	r.where("S.ENTRY_NO < (R.INSTANCE_NO + 1) << 24")
	r.order("S.ENTRY_NO", bounded(limit))
	items, err := list(ctx, s, r, scanEntry)
	return items, wrap("stream of "+id, err)
}

// Recorded implements projections.Reader.
func (s *Store) Recorded(ctx context.Context, id, signalID string) (bool, error) {
	r := read("stream_recorded")
	r.args = append(r.args, id, signalID)
	rows, err := list(ctx, s, r, func(row scanner, n *int) error { return row.Scan(n) })
	return len(rows) > 0, wrap("signal "+signalID+" of "+id, err)
}

// Pending implements projections.Reader.
func (s *Store) Pending(ctx context.Context, id string, limit int) ([]projections.Entry, error) {
	r := read("stream_select")
	r.where("S.PROCESSED = 0")
	if id != "" {
		r.where("R.INSTANCE_ID = ?", id)
		r.where("S.ENTRY_NO between R.INSTANCE_NO << 24 and (R.INSTANCE_NO << 24) + 16777215")
		r.order("S.ENTRY_NO", bounded(limit))
	} else {
		r.order("S.CLAIMED_BY, S.ENTRY_NO", bounded(limit))
	}
	items, err := list(ctx, s, r, scanEntry)
	return items, wrap("pending", err)
}

func scanTask(row scanner, k *keyed[projections.Task]) error {
	t := &k.item
	var sums projections.TaskSums
	err := row.Scan(&t.ID, &t.InstanceID, textInto{&t.Definition}, textInto{&t.BusinessKey}, textInto{&t.Name}, textInto{&t.Title},
		&t.Status, textInto{&t.Assignee}, textInto{&t.CandidateUsers}, textInto{&t.CandidateGroups}, textInto{&t.ExcludedUsers},
		textInto{&t.Outcomes}, &t.Priority, bytesInto{&t.Payload}, bytesInto{&t.Form}, textInto{&t.Token}, &t.Version,
		timeInto{&t.CreatedAt}, timeInto{&t.DueAt}, timeInto{&t.EndedAt}, textInto{&t.EndedBy}, textInto{&t.Outcome},
		bytesInto{&t.Output}, textInto{&t.EscalateTo}, timeInto{&t.EscalatedAt}, textInto{&t.Role}, &sums.Made, &sums.Assigned, &sums.Candidates, &sums.Ended, &k.key)
	return cmp.Or(err, t.Check(sums))
}

// Task implements projections.Reader.
func (s *Store) Task(ctx context.Context, id string) (projections.Task, error) {
	r := read("task_select")
	r.where("T.TASK_ID = ?", id)
	k, err := single(ctx, s, r, scanTask)
	return k.item, wrap("task "+id, err)
}

// Tasks implements projections.Reader. A task without candidates is open to
// everybody.
func (s *Store) Tasks(ctx context.Context, q projections.TaskQuery) (projections.Page[projections.Task], error) {
	none := projections.Page[projections.Task]{}
	r, limit := read("task_select"), bounded(q.Limit)
	if q.Status == projections.TaskReady || q.Status == projections.TaskReserved || q.Status == projections.TaskOpen {
		r.where("T.STATUS in ('ready', 'reserved')") // the literal lets the partial index serve
	}
	if q.Status != projections.TaskOpen {
		r.equals("T.STATUS", q.Status)
	}
	r.equals("T.ASSIGNEE", q.Assignee)
	if q.InstanceID != "" {
		r.where("T.INSTANCE_NO = (select INSTANCE_NO from WF_STATES where INSTANCE_ID = ?)", q.InstanceID)
	}
	if q.User != "" || len(q.Groups) > 0 {
		visibleTo(r, q.User, q.Groups)
	}
	if q.After != "" {
		var priority, no int64
		if _, err := fmt.Sscanf(q.After, "%d.%d", &priority, &no); err != nil {
			return none, wrap("tasks", badPage(q.After))
		}
		r.where("(T.PRIORITY, T.TASK_NO) > (?, ?)", priority, no)
	}
	r.order("T.PRIORITY, T.TASK_NO", limit+1)
	rows, err := list(ctx, s, r, scanTask)
	next := func(k keyed[projections.Task]) string { return fmt.Sprintf("%d.%d", k.item.Priority, k.key) }
	return page(rows, limit, next), wrap("tasks", err)
}

// visibleTo selects what is assigned to a user, and what he or a member of the
// groups may claim. An empty user has nothing, is no candidate, and is not
// excluded.
func visibleTo(r *reading, user string, groups []string) {
	args := []any{user, user}
	in := "null"
	if len(groups) > 0 {
		in = strings.TrimSuffix(strings.Repeat("?, ", len(groups)), ", ")
		for _, g := range groups {
			args = append(args, g)
		}
	}
	r.where(`(T.ASSIGNEE = ? or T.ASSIGNEE is null and (
  coalesce(T.CANDIDATE_USERS, '[]') = '[]' and coalesce(T.CANDIDATE_GROUPS, '[]') = '[]'
  or exists (select 1 from json_each(T.CANDIDATE_USERS) where VALUE = ?)
  or exists (select 1 from json_each(T.CANDIDATE_GROUPS) where VALUE in (`+in+`))))`, args...)
	r.where("not exists (select 1 from json_each(T.EXCLUDED_USERS) where VALUE = ?)", user)
}

func scanTaskEvent(row scanner, e *projections.TaskEvent) error {
	var sum int64
	err := row.Scan(&e.TaskID, &e.InstanceID, textInto{&e.Event}, textInto{&e.Actor}, bytesInto{&e.Data}, timeInto{&e.At}, &sum)
	return cmp.Or(err, e.Check(sum))
}

// TaskEvents implements projections.Reader.
func (s *Store) TaskEvents(ctx context.Context, id string) ([]projections.TaskEvent, error) {
	r := read("task_events")
	r.where("T.TASK_ID = ?", id)
	r.order("E.EVENT_NO", projections.MaxCount)
	items, err := list(ctx, s, r, scanTaskEvent)
	if err == nil && len(items) == 0 {
		exists := read("task_exists")
		exists.args = append(exists.args, id)
		_, err = single(ctx, s, exists, func(row scanner, n *int) error { return row.Scan(n) })
	}
	return items, wrap("events of task "+id, err)
}

// WaitSpecs implements projections.Reader.
func (s *Store) WaitSpecs(ctx context.Context, eventType string) ([]string, error) {
	r := read("wait_specs")
	r.args = append(r.args, eventType, projections.MaxCount)
	items, err := list(ctx, s, r, func(row scanner, spec *string) error { return row.Scan(spec) })
	return items, wrap("specs of "+eventType, err)
}

// Waits implements projections.Reader.
func (s *Store) Waits(ctx context.Context, eventType, spec, keyHash, after string, limit int) ([]projections.Wait, error) {
	r := read("waits")
	r.args = append(r.args, eventType, spec, hash(keyHash), after, bounded(limit))
	items, err := list(ctx, s, r, func(row scanner, w *projections.Wait) error {
		return row.Scan(&w.Token, &w.InstanceID, &w.EventType, &w.Spec, hashInto{&w.KeyHash}, timeInto{&w.CreatedAt})
	})
	return items, wrap("waits for "+eventType, err)
}

func scanLetter(row scanner, k *keyed[projections.DeadLetter]) error {
	l := &k.item
	return row.Scan(&l.ID, textInto{&l.Queue}, textInto{&l.InstanceID}, bytesInto{&l.Envelope}, textInto{&l.Reason}, textInto{&l.Detail},
		&l.Attempts, textInto{&l.Node}, timeInto{&l.EnqueuedAt}, timeInto{&l.DiedAt}, &k.key)
}

// DeadLetter implements projections.Reader.
func (s *Store) DeadLetter(ctx context.Context, id string) (projections.DeadLetter, error) {
	r := read("letter_select")
	r.where("DEAD_LETTER_ID = ?", id)
	k, err := single(ctx, s, r, scanLetter)
	return k.item, wrap("dead letter "+id, err)
}

// DeadLetters implements projections.Reader.
func (s *Store) DeadLetters(ctx context.Context, q projections.DeadLetterQuery) (projections.Page[projections.DeadLetter], error) {
	r := read("letter_select")
	r.equals("QUEUE", q.Queue)
	r.equals("REASON", q.Reason)
	r.equals("INSTANCE_ID", q.InstanceID)
	p, err := newest(ctx, s, r, "LETTER_NO", q.After, q.Limit, scanLetter)
	return p, wrap("dead letters", err)
}

// Gaps implements projections.Reader.
func (s *Store) Gaps(ctx context.Context) (projections.Gaps, error) {
	r := read("gaps")
	r.args = append(r.args, projections.MaxCount)
	gaps, err := single(ctx, s, r, func(row scanner, g *projections.Gaps) error { return row.Scan(&g.Instances, &g.Signals) })
	return gaps, wrap("gaps", err)
}

// Queues implements projections.Reader.
func (s *Store) Queues(ctx context.Context) ([]projections.Queue, error) {
	queues := []projections.Queue{{Name: string(store.Signals)}, {Name: string(store.Schedule)}, {Name: string(store.Commands)}}
	for i := range queues {
		r := read("queue_ready")
		r.args = append(r.args, queues[i].Name, projections.MaxCount)
		_, err := single(ctx, s, r, func(row scanner, _ *struct{}) error {
			var oldest sql.NullInt64
			if err := row.Scan(&queues[i].Ready, &oldest); err != nil {
				return err
			}
			if oldest.Valid {
				queues[i].OldestAt = time.UnixMicro(oldest.Int64).UTC()
			}
			return nil
		})
		if err != nil {
			return nil, wrap("queues", err)
		}
	}
	for name, field := range map[string]func(*projections.Queue) *int{
		"queue_delayed": func(q *projections.Queue) *int { return &q.Delayed },
		"queue_leased":  func(q *projections.Queue) *int { return &q.Leased },
	} {
		r := read(name)
		r.args = append(r.args, projections.MaxCount)
		_, err := list(ctx, s, r, func(row scanner, _ *struct{}) error {
			var queue string
			var n int
			if err := row.Scan(&queue, &n); err != nil {
				return err
			}
			if i := slices.IndexFunc(queues, func(q projections.Queue) bool { return q.Name == queue }); i >= 0 {
				*field(&queues[i]) = n
			}
			return nil
		})
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, wrap("queues", err)
		}
	}
	return queues, nil
}
