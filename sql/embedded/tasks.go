package embedded

import (
	"cmp"
	"context"
	"database/sql/driver"
	"strings"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/lists"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// tasks reads human tasks, and gives them out.
type tasks struct{ *sqlite.Store }

// Task implements backend.TaskReader.
func (s tasks) Task(ctx context.Context, id string) (projections.Task, error) {
	r := read("task_select")
	r.Where("T.TASK_ID = ?", id)
	row, err := sqlite.One[lists.TaskRow](ctx, s.Store, r)
	return row.Task, wrap("task "+id, err)
}

// Tasks implements backend.TaskReader. A task without candidates is open to
// everybody.
func (s tasks) Tasks(ctx context.Context, q backend.TaskQuery) (p backend.Page[projections.Task], err error) {
	r, limit := read("task_select"), projections.Bounded(q.Limit)
	if q.Status == projections.TaskReady || q.Status == projections.TaskReserved || q.Status == backend.TaskOpen {
		r.Where("T.STATUS in ('ready', 'reserved')") // the literal lets the partial index serve
	}
	if q.Status != backend.TaskOpen {
		r.Equals("T.STATUS", q.Status)
	}
	r.Equals("T.ASSIGNEE", q.Assignee)
	lists.Within(r, "T.DEFINITION", q.Scope)
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
	found, err := sqlite.List[lists.TaskRow](ctx, s.Store, r)
	return lists.Cut(found, limit, lists.TaskRow.Item, lists.TaskRow.Mark), wrap("tasks", err)
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

// TaskEvents implements backend.TaskReader.
func (s tasks) TaskEvents(ctx context.Context, id string) ([]projections.TaskEvent, error) {
	r := read("task_events")
	r.Where("T.TASK_ID = ?", id)
	r.Order("E.EVENT_NO", backend.MaxCount)
	found, err := sqlite.List[lists.TaskEventRow](ctx, s.Store, r)
	if err == nil && len(found) == 0 {
		_, err = sqlite.One[struct {
			Found int `db:"FOUND"`
		}](ctx, s.Store, read("task_exists", id))
	}
	return rows.Items(found, lists.TaskEventRow.Item), wrap("events of task "+id, err)
}

// ClaimNext implements backend.TaskStore. The writer is one for all: who asks
// later sees what was claimed before.
func (s tasks) ClaimNext(ctx context.Context, c backend.NextClaim) ([]projections.Task, error) {
	var got []projections.Task
	err := s.Write(ctx, func(t sqlite.Tx) (err error) {
		got, err = claimNext(t, &c)
		return err
	})
	return got, wrap("claim tasks", err)
}

func claimNext(t sqlite.Tx, c *backend.NextClaim) ([]projections.Task, error) {
	columns, err := t.Conn().Columns("task_next")
	if err != nil {
		return nil, err
	}
	row, err := rows.For[lists.TaskRow](columns)
	if err != nil {
		return nil, err
	}
	scope := conn.Text("")
	if c.Scope != nil {
		scope = projections.List(c.Scope)
	}
	var found, got []projections.Task
	err = t.Conn().Query("task_next", len(columns), func(r []driver.Value) error {
		var k lists.TaskRow
		err := cmp.Or(row.Scan(conn.Values(r), &k), k.Verify())
		found = append(found, k.Task)
		return err
	}, c.User, projections.List(c.Groups), c.User, scope, scope, int64(c.Limit))
	for _, k := range found {
		if e, ok := c.Edit(k); ok && err == nil {
			err = editTask(t, &e)
			k.Status, k.Assignee, k.Role, k.Version = e.Status, e.Assignee, e.Role, e.Version+1
			got = append(got, k)
		}
	}
	return got, err
}
