package sqlite

import (
	"context"
	"embed"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/store"
)

// dialect is SQLite's.
var dialect = rows.Dialect{Bind: func(int) string { return "?" }, Limit: "limit ?"}

func read(name string, args ...any) *rows.Select { return dialect.Select(statement(name), args...) }

//go:embed query/*.sql
var queries embed.FS

// statement returns the text of a file of query/.
func statement(name string) string { return conn.Statement(name, queries) }

// list runs a reading.
func list[T any](ctx context.Context, s *Store, r *rows.Select) ([]T, error) {
	s.gate.RLock() // Close waits for running calls
	defer s.gate.RUnlock()
	if s.closed {
		return nil, store.ErrClosed
	}
	found, err := s.db.QueryContext(ctx, r.Text(), r.Args...)
	if err != nil {
		return nil, conn.Explain(err, s.path)
	}
	items, err := rows.All[T](found, new(projections.Measure).With)
	return items, conn.Explain(err, s.path)
}

// single is list for a reading that finds one row, or store.ErrNotFound.
func single[T any](ctx context.Context, s *Store, r *rows.Select) (one T, err error) {
	items, err := list[T](ctx, s, r)
	if err == nil && len(items) == 0 {
		err = store.ErrNotFound
	}
	if err != nil {
		return one, err
	}
	return items[0], nil
}

// Instance implements projections.InstanceReader.
func (s *Store) Instance(ctx context.Context, id string) (projections.Instance, error) {
	r := read("instance_select")
	r.Where("INSTANCE_NO = (select INSTANCE_NO from WF_STATES where INSTANCE_ID = ?)", id)
	row, err := single[projections.InstanceRow](ctx, s, r)
	return row.Instance, wrap("instance "+id, err)
}

// Instances implements projections.InstanceReader. The order is that in which the
// starts were committed.
func (s *Store) Instances(ctx context.Context, q projections.InstanceQuery) (p projections.Page[projections.Instance], err error) {
	r, limit := read("instance_select"), projections.Bounded(q.Limit)
	r.Equals("DEFINITION", q.Definition)
	r.Equals("STATUS", q.Status)
	r.Equals("BUSINESS_KEY", q.BusinessKey)
	r.Equals("PARENT_ID", q.ParentID)
	if err := r.Behind("INSTANCE_NO", q.After); err != nil {
		return p, wrap("instances", err)
	}
	r.Order("INSTANCE_NO desc", limit+1)
	found, err := list[projections.InstanceRow](ctx, s, r)
	mark := func(i projections.InstanceRow) string { return strconv.FormatInt(i.No, 10) }
	return projections.Cut(found, limit, projections.InstanceRow.Item, mark), wrap("instances", err)
}

// Started implements projections.InstanceReader.
func (s *Store) Started(ctx context.Context, definition, businessKey, startKey string) (projections.Instance, error) {
	r := read("instance_select")
	r.Where(startedBy, startKey, businessKey, definition)
	row, err := single[projections.InstanceRow](ctx, s, r)
	return row.Instance, wrap("start key "+startKey, err)
}

// startedBy is the key of the index on start keys.
const startedBy = "START_KEY = ? and coalesce(BUSINESS_KEY, '') = ? and coalesce(DEFINITION, '') = ?"

// Stream implements projections.StreamReader.
func (s *Store) Stream(ctx context.Context, id string, after int64, limit int) ([]projections.Entry, error) {
	r := read("stream_select")
	after = min(max(after, -1), 1<<positionBits-1)
	r.Where("R.INSTANCE_ID = ?", id)
	r.Where("S.ENTRY_NO > (R.INSTANCE_NO << 24) + ?", after)
	r.Where("S.ENTRY_NO < (R.INSTANCE_NO + 1) << 24")
	r.Order("S.ENTRY_NO", projections.Bounded(limit))
	found, err := list[projections.EntryRow](ctx, s, r)
	return projections.Items(found, projections.EntryRow.Item), wrap("stream of "+id, err)
}

// exists is a row that says nothing but that there is one.
type exists struct {
	Found int `db:"FOUND"`
}

// Recorded implements projections.StreamReader.
func (s *Store) Recorded(ctx context.Context, id, signalID string) (bool, error) {
	found, err := list[exists](ctx, s, read("stream_recorded", id, signalID))
	return len(found) > 0, wrap("signal "+signalID+" of "+id, err)
}

// Pending implements projections.StreamReader.
func (s *Store) Pending(ctx context.Context, id string, limit int) ([]projections.Entry, error) {
	r := read("stream_select")
	r.Where("S.PROCESSED = 0")
	if id != "" {
		r.Where("R.INSTANCE_ID = ?", id)
		r.Where("S.ENTRY_NO between R.INSTANCE_NO << 24 and (R.INSTANCE_NO << 24) + 16777215")
		r.Order("S.ENTRY_NO", projections.Bounded(limit))
	} else {
		r.Order("S.CLAIMED_BY, S.ENTRY_NO", projections.Bounded(limit))
	}
	found, err := list[projections.EntryRow](ctx, s, r)
	return projections.Items(found, projections.EntryRow.Item), wrap("pending", err)
}

// Task implements projections.TaskReader.
func (s *Store) Task(ctx context.Context, id string) (projections.Task, error) {
	r := read("task_select")
	r.Where("T.TASK_ID = ?", id)
	row, err := single[projections.TaskRow](ctx, s, r)
	return row.Task, wrap("task "+id, err)
}

// Tasks implements projections.TaskReader. A task without candidates is open to
// everybody.
func (s *Store) Tasks(ctx context.Context, q projections.TaskQuery) (p projections.Page[projections.Task], err error) {
	r, limit := read("task_select"), projections.Bounded(q.Limit)
	if q.Status == projections.TaskReady || q.Status == projections.TaskReserved || q.Status == projections.TaskOpen {
		r.Where("T.STATUS in ('ready', 'reserved')") // the literal lets the partial index serve
	}
	if q.Status != projections.TaskOpen {
		r.Equals("T.STATUS", q.Status)
	}
	r.Equals("T.ASSIGNEE", q.Assignee)
	if q.InstanceID != "" {
		r.Where("T.INSTANCE_NO = (select INSTANCE_NO from WF_STATES where INSTANCE_ID = ?)", q.InstanceID)
	}
	if q.User != "" || len(q.Groups) > 0 {
		visibleTo(r, q.User, q.Groups)
	}
	if q.After != "" {
		priority, no, err := rows.Marks(q.After)
		if err != nil {
			return p, wrap("tasks", err)
		}
		r.Where("(T.PRIORITY, T.TASK_NO) > (?, ?)", priority, no)
	}
	r.Order("T.PRIORITY, T.TASK_NO", limit+1)
	found, err := list[projections.TaskRow](ctx, s, r)
	return projections.Cut(found, limit, projections.TaskRow.Item, projections.TaskRow.Mark), wrap("tasks", err)
}

// visibleTo selects what is assigned to a user, and what they or a member of the
// groups may claim. An empty user has nothing, is no candidate, and is not
// excluded.
func visibleTo(r *rows.Select, user string, groups []string) {
	args := []any{user, user}
	in := "null"
	if len(groups) > 0 {
		in = strings.TrimSuffix(strings.Repeat("?, ", len(groups)), ", ")
		for _, g := range groups {
			args = append(args, g)
		}
	}
	r.Where(`(T.ASSIGNEE = ? or T.ASSIGNEE is null and (
  coalesce(T.CANDIDATE_USERS, '[]') = '[]' and coalesce(T.CANDIDATE_GROUPS, '[]') = '[]'
  or exists (select 1 from json_each(T.CANDIDATE_USERS) where VALUE = ?)
  or exists (select 1 from json_each(T.CANDIDATE_GROUPS) where VALUE in (`+in+`))))`, args...)
	r.Where("not exists (select 1 from json_each(T.EXCLUDED_USERS) where VALUE = ?)", user)
}

// TaskEvents implements projections.TaskReader.
func (s *Store) TaskEvents(ctx context.Context, id string) ([]projections.TaskEvent, error) {
	r := read("task_events")
	r.Where("T.TASK_ID = ?", id)
	r.Order("E.EVENT_NO", projections.MaxCount)
	found, err := list[projections.TaskEventRow](ctx, s, r)
	if err == nil && len(found) == 0 {
		_, err = single[exists](ctx, s, read("task_exists", id))
	}
	return projections.Items(found, projections.TaskEventRow.Item), wrap("events of task "+id, err)
}

// WaitSpecs implements projections.WaitReader.
func (s *Store) WaitSpecs(ctx context.Context, eventType string) ([]string, error) {
	found, err := list[projections.SpecRow](ctx, s, read("wait_specs", eventType, projections.MaxCount))
	return projections.Items(found, projections.SpecRow.Item), wrap("specs of "+eventType, err)
}

// Waits implements projections.WaitReader.
func (s *Store) Waits(ctx context.Context, eventType, spec, keyHash, after string, limit int) ([]projections.Wait, error) {
	items, err := list[projections.Wait](ctx, s, read("waits", eventType, spec, conn.Hash(keyHash), after, projections.Bounded(limit)))
	return items, wrap("waits for "+eventType, err)
}

// DeadLetter implements projections.DeadLetterReader.
func (s *Store) DeadLetter(ctx context.Context, id string) (projections.DeadLetter, error) {
	r := read("dead_letter_select")
	r.Where("DEAD_LETTER_ID = ?", id)
	row, err := single[projections.DeadLetterRow](ctx, s, r)
	return row.DeadLetter, wrap("dead letter "+id, err)
}

// DeadLetters implements projections.DeadLetterReader.
func (s *Store) DeadLetters(ctx context.Context, q projections.DeadLetterQuery) (p projections.Page[projections.DeadLetter], err error) {
	r, limit := read("dead_letter_select"), projections.Bounded(q.Limit)
	r.Equals("QUEUE", q.Queue)
	r.Equals("REASON", q.Reason)
	r.Equals("INSTANCE_ID", q.InstanceID)
	if err := r.Behind("LETTER_NO", q.After); err != nil {
		return p, wrap("dead letters", err)
	}
	r.Order("LETTER_NO desc", limit+1)
	found, err := list[projections.DeadLetterRow](ctx, s, r)
	return projections.Cut(found, limit, projections.DeadLetterRow.Item, projections.DeadLetterRow.Mark), wrap("dead letters", err)
}

// Gaps implements projections.BacklogReader.
func (s *Store) Gaps(ctx context.Context) (projections.Gaps, error) {
	gaps, err := single[projections.Gaps](ctx, s, read("gaps", projections.MaxCount))
	return gaps, wrap("gaps", err)
}

// Queues implements projections.BacklogReader.
func (s *Store) Queues(ctx context.Context) ([]projections.Queue, error) {
	queues := []projections.Queue{{Name: string(store.Signals)}, {Name: string(store.Schedule)}, {Name: string(store.Commands)}}
	for i := range queues {
		q, err := single[struct {
			Ready  int       `db:"READY"`
			Oldest time.Time `db:"OLDEST_ON_UTC"`
		}](ctx, s, read("queue_ready", queues[i].Name, projections.MaxCount))
		if err != nil {
			return nil, wrap("queues", err)
		}
		queues[i].Ready, queues[i].OldestAt = q.Ready, q.Oldest
	}
	for name, field := range map[string]func(*projections.Queue) *int{
		"queue_delayed": func(q *projections.Queue) *int { return &q.Delayed },
		"queue_leased":  func(q *projections.Queue) *int { return &q.Leased },
	} {
		found, err := list[struct {
			Queue    string `db:"QUEUE"`
			Messages int    `db:"MESSAGES"`
		}](ctx, s, read(name, projections.MaxCount))
		if err != nil {
			return nil, wrap("queues", err)
		}
		for _, f := range found {
			if i := slices.IndexFunc(queues, func(q projections.Queue) bool { return q.Name == f.Queue }); i >= 0 {
				*field(&queues[i]) = f.Messages
			}
		}
	}
	return queues, nil
}
