package oracle

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store"
)

// taskRow is a task with the number that pages go by.
type taskRow struct {
	No int64 `db:"TASK_NO"`
	projections.TaskSums
	projections.Task
}

func (r taskRow) task() projections.Task { return r.Task }

// edit changes an open task.
func (w *work) edit(e *store.TaskEdit) {
	w.add(fmt.Errorf("task %s: %w", e.ID, store.ErrStale), "task_edit", e.Status, e.Assignee, e.Role, e.Checksum(), e.ID, e.Version)
	if x := e.Escalation; x != nil {
		w.add(nil, "task_escalate", x.CandidateUsers, x.CandidateGroups, stamp(x.At), x.Checksum(e.ID), e.ID)
		w.add(nil, "task_actors_delete", e.ID)
		w.actors(e.ID, "U", x.CandidateUsers)
		w.actors(e.ID, "G", x.CandidateGroups)
	}
	if e.Event.Event != "" {
		event := e.Event
		event.TaskID = e.ID
		w.taskEvent(&event)
	}
}

// actors writes who may or may not see a task, one row for each name.
func (w *work) actors(task, kind, list string) {
	seen := map[string]bool{"": true}
	for _, name := range projections.Names(list) {
		if !seen[name] {
			seen[name] = true
			w.add(nil, "task_actor_insert", task, kind, name)
		}
	}
}

// Task implements projections.Reader.
func (s *Store) Task(ctx context.Context, id string) (projections.Task, error) {
	r := read("task_select")
	r.where("T.TASK_ID = ?", id)
	row, err := single[taskRow](ctx, s, r)
	if err == nil {
		err = row.Check(row.TaskSums)
	}
	return row.Task, wrap("task "+id, err)
}

// Tasks implements projections.Reader. A task without candidates is open to
// everybody.
func (s *Store) Tasks(ctx context.Context, q projections.TaskQuery) (projections.Page[projections.Task], error) {
	r, limit := read("task_select"), bounded(q.Limit)
	if q.Status == projections.TaskOpen {
		r.where("T.STATUS in ('ready', 'reserved')")
	} else {
		r.equals("T.STATUS", q.Status)
	}
	r.equals("T.ASSIGNEE", q.Assignee)
	r.equals("T.INSTANCE_ID", q.InstanceID)
	if q.User != "" || len(q.Groups) > 0 {
		visibleTo(r, q.User, q.Groups)
	}
	if q.After != "" {
		priority, rest, err := mark(q.After)
		no, _, errNo := mark(rest)
		if err == nil {
			err = errNo
		}
		if err != nil {
			return projections.Page[projections.Task]{}, wrap("tasks", err)
		}
		r.where("(T.PRIORITY > ? or T.PRIORITY = ? and T.TASK_NO > ?)", priority, priority, no)
	}
	r.order("T.PRIORITY, T.TASK_NO", limit+1)
	rows, err := list[taskRow](ctx, s, r)
	for i := 0; err == nil && i < len(rows); i++ {
		err = rows[i].Check(rows[i].TaskSums)
	}
	if err != nil {
		return projections.Page[projections.Task]{}, wrap("tasks", err)
	}
	next := func(r taskRow) string { return strconv.Itoa(r.Priority) + "." + strconv.FormatInt(r.No, 10) }
	return page(rows, limit, taskRow.task, next), wrap("tasks", err)
}

// groupsMax bounds a list of binds.
const groupsMax = 500

// visibleTo selects what is assigned to a user, and what he or a member of the
// groups may claim. An empty user is null: nothing is his, and nobody excludes
// him.
func visibleTo(r *reading, user string, groups []string) {
	args := []any{user, user}
	group := ""
	if groups = groups[:min(len(groups), groupsMax)]; len(groups) > 0 {
		group = fmt.Sprintf(" or A.KIND = 'G' and A.NAME in (%s)", strings.TrimSuffix(strings.Repeat("?, ", len(groups)), ", "))
		for _, g := range groups {
			args = append(args, g)
		}
	}
	r.where(`(T.ASSIGNEE = ? or T.ASSIGNEE is null and (
  not exists (select 1 from WF_TASK_ACTORS C where C.TASK_ID = T.TASK_ID and C.KIND in ('U', 'G'))
  or exists (select 1 from WF_TASK_ACTORS A where A.TASK_ID = T.TASK_ID and (A.KIND = 'U' and A.NAME = ?`+group+`))))`, args...)
	r.where("not exists (select 1 from WF_TASK_ACTORS X where X.TASK_ID = T.TASK_ID and X.KIND = 'X' and X.NAME = ?)", user)
}

// taskEventRow is an event with its checksum.
type taskEventRow struct {
	Sum int64 `db:"CHECKSUM"`
	projections.TaskEvent
}

// TaskEvents implements projections.Reader.
func (s *Store) TaskEvents(ctx context.Context, id string) ([]projections.TaskEvent, error) {
	rows, err := list[taskEventRow](ctx, s, read("task_events", id, projections.MaxCount))
	items := make([]projections.TaskEvent, len(rows))
	for i := 0; err == nil && i < len(rows); i++ {
		items[i] = rows[i].TaskEvent
		err = items[i].Check(rows[i].Sum)
	}
	if err == nil && len(items) == 0 {
		_, err = single[struct {
			ID string `db:"TASK_ID"`
		}](ctx, s, read("task_exists", id))
	}
	return items, wrap("events of task "+id, err)
}
