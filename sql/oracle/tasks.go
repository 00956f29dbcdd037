package oracle

import (
	"context"
	"fmt"
	"strings"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/lists"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// edit changes an open task.
func (w *work) edit(e *store.TaskEdit) {
	w.add(fmt.Errorf("task %s: %w", e.ID, store.ErrStale), "task_edit", e.Status, e.Assignee, e.Role, backend.EditSum(e), e.ID, e.Version)
	if x := e.Escalation; x != nil {
		w.add(nil, "task_escalate", x.CandidateUsers, x.CandidateGroups, stamp(x.At), backend.EscalationSum(e.ID, x), e.ID)
		w.add(nil, "task_actors_delete", e.ID)
		w.actors(e.ID, "U", x.CandidateUsers)
		w.actors(e.ID, "G", x.CandidateGroups)
	}
	if e.Event.Event != "" {
		event := e.Event
		event.TaskID = e.ID
		w.eventOf(&event)
	}
}

// actors writes who may or may not see a task, one row for each name.
func (w *work) actors(task, kind, list string) {
	seen := map[string]bool{"": true}
	for _, name := range backend.Names(list) {
		if !seen[name] {
			seen[name] = true
			w.add(nil, "task_actor_insert", task, kind, name)
		}
	}
}

// Task implements backend.TaskReader.
func (s tasks) Task(ctx context.Context, id string) (projections.Task, error) {
	r := read("task_select")
	r.Where("T.TASK_ID = ?", id)
	row, err := single[lists.TaskRow](ctx, s.Store, r)
	return row.Task, wrap("task "+id, err)
}

// Tasks implements backend.TaskReader. A task without candidates is open to
// everybody.
func (s tasks) Tasks(ctx context.Context, q backend.TaskQuery) (p backend.Page[projections.Task], err error) {
	r, limit := read("task_select"), projections.Bounded(q.Limit)
	if q.Status == backend.TaskOpen {
		r.Where("T.STATUS in ('ready', 'reserved')")
	} else {
		r.Equals("T.STATUS", q.Status)
	}
	r.Equals("T.ASSIGNEE", q.Assignee)
	lists.Within(r, "T.DEFINITION", q.Scope)
	r.Equals("T.INSTANCE_ID", q.InstanceID)
	if q.User != "" || len(q.Groups) > 0 {
		visibleTo(r, q.User, q.Groups)
	}
	if q.After != "" {
		priority, no, err := rows.Marks(q.After)
		if err != nil {
			return p, wrap("tasks", err)
		}
		behind(r, "T.PRIORITY", ">", "?", priority, "T.TASK_NO", no)
	}
	r.Order("T.PRIORITY, T.TASK_NO", limit+1)
	found, err := list[lists.TaskRow](ctx, s.Store, r)
	return lists.Cut(found, limit, lists.TaskRow.Item, lists.TaskRow.Mark), wrap("tasks", err)
}

// groupsMax bounds a list of binds.
const groupsMax = 500

// visibleTo selects what is assigned to a user, and what they or a member of the
// groups may claim. An empty user is null: nothing is theirs, and nobody excludes
// them.
func visibleTo(r *rows.Select, user string, groups []string) {
	args := []any{user, user}
	group := ""
	if groups = groups[:min(len(groups), groupsMax)]; len(groups) > 0 {
		group = fmt.Sprintf(" or A.KIND = 'G' and A.NAME in (%s)", strings.TrimSuffix(strings.Repeat("?, ", len(groups)), ", "))
		for _, g := range groups {
			args = append(args, g)
		}
	}
	r.Where(`(T.ASSIGNEE = ? or T.ASSIGNEE is null and (
  not exists (select 1 from WF_TASK_ACTORS C where C.TASK_ID = T.TASK_ID and C.KIND in ('U', 'G'))
  or exists (select 1 from WF_TASK_ACTORS A where A.TASK_ID = T.TASK_ID and (A.KIND = 'U' and A.NAME = ?`+group+`))))`, args...)
	r.Where("not exists (select 1 from WF_TASK_ACTORS X where X.TASK_ID = T.TASK_ID and X.KIND = 'X' and X.NAME = ?)", user)
}

// TaskEvents implements backend.TaskReader.
func (s tasks) TaskEvents(ctx context.Context, id string) ([]projections.TaskEvent, error) {
	found, err := list[lists.TaskEventRow](ctx, s.Store, read("task_events", id, backend.MaxCount))
	if err == nil && len(found) == 0 {
		_, err = single[struct {
			ID string `db:"TASK_ID"`
		}](ctx, s.Store, read("task_exists", id))
	}
	return rows.Items(found, lists.TaskEventRow.Item), wrap("events of task "+id, err)
}
