package oracle

import (
	"context"
	"errors"

	"github.com/godror/godror"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/lists"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// claimTries is how often tasks are claimed again that were changed between
// the beginning of the query and the lock.
const claimTries = 10

// ClaimNext implements backend.TaskStore: an ordered cursor that locks each row as
// it is fetched, passes over those that others hold, and is closed after as
// many as are wanted.
func (s tasks) ClaimNext(ctx context.Context, c backend.NextClaim) ([]projections.Task, error) {
	if err := s.enter(); err != nil {
		return nil, wrap("claim tasks", err)
	}
	defer s.leave()
	var got []projections.Task
	var err error
	for range claimTries {
		err = change(ctx, s.Store, nil, func(session *aq.Session) error {
			w := &work{}
			if got, err = s.lockNext(ctx, session, &c); err != nil {
				return err
			}
			for i := range got {
				t := &got[i]
				e, _ := c.Edit(*t)
				w.edit(&e)
				t.Status, t.Assignee, t.Role, t.Version = e.Status, e.Assignee, e.Role, e.Version+1
			}
			return execute(ctx, session, w, false)
		})
		if !errors.Is(err, store.ErrStale) {
			break
		}
	}
	if err != nil {
		got = nil
	}
	return got, wrap("claim tasks", err)
}

// lockNext locks the next tasks. One row a fetch: what is fetched is locked,
// and what is locked and not claimed would be passed over by others.
func (s tasks) lockNext(ctx context.Context, session *aq.Session, c *backend.NextClaim) ([]projections.Task, error) {
	r := read("task_select")
	r.Where("T.STATUS = 'ready'")
	visibleTo(r, c.User, c.Groups)
	lists.Within(r, "T.DEFINITION", c.Scope)
	r.Add("\norder by T.PRIORITY, T.TASK_NO\nfor update skip locked")
	found, err := session.QueryContext(ctx, r.Text(), append(r.Args, godror.PrefetchCount(1), godror.FetchArraySize(1))...)
	if err != nil {
		return nil, err
	}
	var list []projections.Task
	err = rows.Each(found, func(t *lists.TaskRow, damage error) (bool, error) {
		if _, ok := c.Edit(t.Task); ok && damage == nil {
			list = append(list, t.Task)
		}
		return len(list) < c.Limit, damage
	})
	return list, err
}
