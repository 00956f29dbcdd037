package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/store"
)

// edit changes an open task.
func (t *tx) edit(e *store.TaskEdit) error {
	if err := t.guard(store.ErrStale, "task_edit", e.Status, conn.Text(e.Assignee), conn.Text(e.Role), e.Checksum(), e.ID, e.Version); err != nil {
		return err
	}
	if x := e.Escalation; x != nil {
		if _, _, err := t.exec("task_escalate", conn.Text(x.CandidateUsers), conn.Text(x.CandidateGroups), conn.Micros(x.At), x.Checksum(e.ID), e.ID); err != nil {
			return err
		}
	}
	if e.Event.Event == "" {
		return nil
	}
	e.Event.TaskID = e.ID
	return t.taskEvent(&e.Event)
}

// ClaimNext implements store.TaskStore. The writer is one for all: who asks
// later sees what was claimed before.
func (s *Store) ClaimNext(ctx context.Context, c store.NextClaim) ([]projections.Task, error) {
	var got []projections.Task
	err := s.do(ctx, func(t *tx) (err error) {
		got, err = t.claimNext(&c)
		return err
	})
	return got, wrap("claim tasks", err)
}

func (t *tx) claimNext(c *store.NextClaim) ([]projections.Task, error) {
	columns, err := t.w.c.Columns("task_next")
	if err != nil {
		return nil, err
	}
	row, err := rows.For[projections.TaskRow](columns)
	if err != nil {
		return nil, err
	}
	var found, got []projections.Task
	err = t.w.c.Query("task_next", len(columns), func(r []driver.Value) error {
		var k projections.TaskRow
		err := cmp.Or(row.Scan(conn.Values(r), &k), k.Verify())
		found = append(found, k.Task)
		return err
	}, c.User, projections.List(c.Groups), c.User, int64(c.Limit))
	for _, k := range found {
		if e, ok := c.Edit(k); ok && err == nil {
			err = t.edit(&e)
			k.Status, k.Assignee, k.Role, k.Version = e.Status, e.Assignee, e.Role, e.Version+1
			got = append(got, k)
		}
	}
	return got, err
}
