package sqlite

import (
	"context"
	"database/sql/driver"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store"
)

// edit changes an open task.
func (t *tx) edit(e *store.TaskEdit) error {
	if err := t.guard(store.ErrStale, "task_edit", e.Status, text(e.Assignee), text(e.Role), e.ID, e.Version); err != nil {
		return err
	}
	if x := e.Escalation; x != nil {
		if _, _, err := t.exec("task_escalate", text(x.CandidateUsers), text(x.CandidateGroups), micros(x.At), e.ID); err != nil {
			return err
		}
	}
	if e.Event.Event == "" {
		return nil
	}
	e.Event.TaskID = e.ID
	return t.taskEvent(&e.Event)
}

// ClaimNext implements store.Assigner. The writer is one for all: who asks
// later sees what was claimed before.
func (s *Store) ClaimNext(ctx context.Context, c store.NextClaim) ([]projections.Task, error) {
	var got []string
	err := s.do(ctx, func(t *tx) error {
		var err error
		got, err = t.claimNext(&c)
		return err
	})
	if err != nil {
		return nil, wrap("claim tasks", err)
	}
	tasks := make([]projections.Task, len(got))
	for i, id := range got {
		if tasks[i], err = s.Task(ctx, id); err != nil {
			return nil, err
		}
	}
	return tasks, nil
}

func (t *tx) claimNext(c *store.NextClaim) ([]string, error) {
	var found []projections.Task
	err := t.w.c.query("task_next", 6, func(r []driver.Value) error {
		var k projections.Task
		k.Version, _ = r[1].(int64)
		for i, to := range map[int]*string{0: &k.ID, 2: &k.InstanceID, 3: &k.CandidateUsers, 4: &k.CandidateGroups, 5: &k.ExcludedUsers} {
			*to, _ = r[i].(string)
		}
		found = append(found, k)
		return nil
	}, c.User, projections.List(c.Groups), c.User, int64(c.Limit))
	if err != nil {
		return nil, err
	}
	var got []string
	for _, k := range found {
		e, ok := c.Edit(k)
		if !ok {
			continue
		}
		if err := t.edit(&e); err != nil {
			return nil, err
		}
		got = append(got, k.ID)
	}
	return got, nil
}
