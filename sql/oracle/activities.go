package oracle

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/lists"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

var activityColumns = rows.ColumnsOf[backend.Activity]()

// keyWait bounds the wait for a key that another session has inserted and not
// committed: an insert has no NOWAIT.
const keyWait = 2 * time.Second

// attachers is how many activities are attached at the same time. They take no place
// among the writers: an application that has attached the same may leave its
// transaction open.
const attachers = 2

// AttachActivity implements backend.Activities.
func (s activities) AttachActivity(ctx context.Context, a backend.Activity, by store.Audit) error {
	what := "attach activity " + a.ID + " to " + a.InstanceID
	if err := fitting(&a, by); err != nil {
		return wrap(what, err)
	}
	if err := s.enter(); err != nil {
		return wrap(what, err)
	}
	defer s.leave()
	select {
	case s.attaching <- struct{}{}:
		defer func() { <-s.attaching }()
	case <-ctx.Done():
		return ctx.Err()
	}
	return wrap(what, attempts(ctx, s.Store, nil, func(session *aq.Session) error {
		var attached, same int
		err := session.QueryRowContext(ctx, text("activity_count"), a.ID, a.InstanceID).Scan(&rows.Into{To: &attached}, &rows.Into{To: &same})
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return store.ErrNotFound
		case err != nil:
			return err
		case same > 0:
			return store.ErrDuplicate
		case attached >= backend.MaxActivities:
			return backend.ErrFull
		}
		w := &work{}
		w.add(nil, "activity_insert", activityColumns.Named(statements["activity_insert"].binds, &a, values, nil)...)
		w.audit([]store.Audit{by})
		return bounded(ctx, session, func() error { return execute(ctx, session, w, false) })
	}))
}

// bounded breaks off what waits for the key of an open transaction. What comes of that
// is no error of the database, so that nobody tries it again at once.
func bounded(ctx context.Context, session *aq.Session, f func() error) error {
	short, cancel := context.WithTimeout(ctx, keyWait)
	defer cancel()
	err := aq.Within(short, session, f)
	if short.Err() == nil {
		return err
	}
	aq.Spoil(session) // the break may come late, and end the next call
	if err := ctx.Err(); err != nil {
		return err
	}
	return problem.New(problem.Unavailable, "store.locked", "another session has written the same key, and has not committed").
		WithHint("nothing was written; V$LOCKED_OBJECT and DBA_BLOCKERS show a session that does not commit")
}

// fitting says what of an activity or its audit no column takes.
func fitting(a *backend.Activity, by store.Audit) error {
	if err := rows.Fit(a); err != nil {
		return err
	}
	return rows.Fit(&by)
}

// ChangeActivity implements backend.Activities.
func (s activities) ChangeActivity(ctx context.Context, a backend.Activity, by store.Audit) error {
	what := "change activity " + a.ID + " of " + a.InstanceID
	if err := fitting(&a, by); err != nil {
		return wrap(what, err)
	}
	if err := s.enter(); err != nil {
		return wrap(what, err)
	}
	defer s.leave()
	w := &work{}
	args := activityColumns.Named(statements["activity_update"].binds, &a, values, map[string]any{"EXPECTED_VERSION": a.Version - 1})
	w.add(store.ErrStale, "activity_update", args...)
	w.audit([]store.Audit{by})
	return wrap(what, change(ctx, s.Store, nil, func(session *aq.Session) error { return execute(ctx, session, w, false) }))
}

// Activity implements backend.Activities.
func (s activities) Activity(ctx context.Context, instanceID, id string) (backend.Activity, error) {
	r := read("activity_select")
	r.Where("A.INSTANCE_ID = ?", instanceID)
	r.Where("A.ACTIVITY_ID = ?", id)
	a, err := single[backend.Activity](ctx, s.Store, r)
	return a, wrap("activity "+id+" of "+instanceID, err)
}

// Activities implements backend.Activities.
func (s activities) Activities(ctx context.Context, instanceID, after string, limit int) (p backend.Page[backend.Activity], err error) {
	r, limit := read("activity_select"), projections.Bounded(limit)
	r.Where("A.INSTANCE_ID = ?", instanceID)
	if after != "" {
		us, last, err := rows.Mark(after)
		if err != nil {
			return p, wrap("activities of "+instanceID, err)
		}
		behind(r, "A.CREATED_ON_UTC", ">", "CAST(? AS TIMESTAMP(6))", time.UnixMicro(us).UTC(), "A.ACTIVITY_ID", last)
	}
	r.Order("A.CREATED_ON_UTC, A.ACTIVITY_ID", limit+1)
	found, err := list[backend.Activity](ctx, s.Store, r)
	return lists.Page(found, limit, lists.ActivityMark), wrap("activities of "+instanceID, err)
}

// Moments implements backend.MomentReader.
func (s activities) Moments(ctx context.Context, q backend.MomentQuery) (p backend.Page[backend.Moment], err error) {
	r, limit := read("moment_select"), projections.Bounded(q.Limit)
	lists.MomentsWhere(r, &q, "M.INSTANCE_ID = ?")
	if q.After != "" {
		us, instance, place, err := lists.AfterMoment(q.After)
		if err != nil {
			return p, wrap("moments", err)
		}
		const value = "CAST(? AS TIMESTAMP(6))"
		at := time.UnixMicro(us).UTC()
		r.Where("M.OCCURRED_ON_UTC >= "+value, at)
		r.Where("(M.OCCURRED_ON_UTC > "+value+" or M.INSTANCE_ID > ? or M.INSTANCE_ID = ? and M.PLACE > ?)", at, instance, instance, place)
	}
	r.Order("M.OCCURRED_ON_UTC, M.INSTANCE_ID, M.PLACE", limit+1)
	found, err := list[backend.Moment](ctx, s.Store, r)
	return lists.Page(found, limit, lists.MomentMark), wrap("moments", err)
}
