package embedded

import (
	"context"
	"database/sql/driver"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/lists"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// activities keeps what applications note of instances.
type activities struct{ *sqlite.Store }

// activityColumns are inserted, behind the number of the instance.
var activityColumns = rows.ColumnsOf[backend.Activity]("INSTANCE_ID")

// AttachActivity implements backend.Activities.
func (s activities) AttachActivity(ctx context.Context, a backend.Activity, by store.Audit) error {
	return wrap("attach activity "+a.ID+" to "+a.InstanceID, s.Write(ctx, func(t sqlite.Tx) error {
		if err := rows.Fit(&a); err != nil {
			return err
		}
		no, err := mayAttach(t, &a)
		if err != nil {
			return err
		}
		if _, _, err := t.Exec("activity_insert", activityColumns.Append([]any{no}, &a, values)...); err != nil {
			return err
		}
		return writeAudit(t, []store.Audit{by})
	}))
}

// mayAttach is the number of the instance that an activity is attached to, or why it is not.
func mayAttach(t sqlite.Tx, a *backend.Activity) (no int64, err error) {
	var count, have int64
	err = t.Conn().Query("activity_count", 3, func(r []driver.Value) error {
		no, _ = r[0].(int64)
		count, _ = r[1].(int64)
		have, _ = r[2].(int64)
		return nil
	}, a.ID, a.InstanceID)
	switch {
	case err != nil:
		return 0, err
	case no == 0:
		return 0, store.ErrNotFound
	case have > 0:
		return 0, store.ErrDuplicate
	case count >= backend.MaxActivities:
		return 0, backend.ErrFull
	}
	return no, nil
}

// ChangeActivity implements backend.Activities.
func (s activities) ChangeActivity(ctx context.Context, a backend.Activity, by store.Audit) error {
	return wrap("change activity "+a.ID+" of "+a.InstanceID, s.Write(ctx, func(t sqlite.Tx) error {
		if err := rows.Fit(&a); err != nil {
			return err
		}
		err := t.Guard(store.ErrStale, "activity_update", conn.Text(a.Status), a.Version, conn.Micros(a.UpdatedAt), conn.Text(a.UpdatedBy), conn.Micros(a.FrozenAt),
			conn.Blob(a.Data), a.InstanceID, a.ID, a.Version-1)
		if err != nil {
			return err
		}
		return writeAudit(t, []store.Audit{by})
	}))
}

// Activity implements backend.Activities.
func (s activities) Activity(ctx context.Context, instanceID, id string) (backend.Activity, error) {
	r := read("activity_select")
	r.Where("R.INSTANCE_ID = ?", instanceID)
	r.Where("A.ACTIVITY_ID = ?", id)
	a, err := sqlite.One[backend.Activity](ctx, s.Store, r)
	return a, wrap("activity "+id+" of "+instanceID, err)
}

// Activities implements backend.Activities.
func (s activities) Activities(ctx context.Context, instanceID, after string, limit int) (p backend.Page[backend.Activity], err error) {
	r, limit := read("activity_select"), projections.Bounded(limit)
	r.Where("R.INSTANCE_ID = ?", instanceID)
	if after != "" {
		us, last, err := rows.Mark(after)
		if err != nil {
			return p, wrap("activities of "+instanceID, err)
		}
		r.Where("(A.CREATED_ON_UTC, A.ACTIVITY_ID) > (?, ?)", us, last)
	}
	r.Order("A.CREATED_ON_UTC, A.ACTIVITY_ID", limit+1)
	found, err := sqlite.List[backend.Activity](ctx, s.Store, r)
	return lists.Page(found, limit, lists.ActivityMark), wrap("activities of "+instanceID, err)
}

// Moments implements backend.MomentReader.
func (s activities) Moments(ctx context.Context, q backend.MomentQuery) (p backend.Page[backend.Moment], err error) {
	r, limit := read("moment_select"), projections.Bounded(q.Limit)
	lists.MomentsWhere(r, &q, "M.INSTANCE_NO = (select INSTANCE_NO from WF_STATES where INSTANCE_ID = ?)")
	if q.After != "" {
		us, instance, place, err := lists.AfterMoment(q.After)
		if err != nil {
			return p, wrap("moments", err)
		}
		r.Where("(M.OCCURRED_ON_UTC, M.INSTANCE_ID, M.PLACE) > (?, ?, ?)", us, instance, place)
	}
	r.Order("M.OCCURRED_ON_UTC, M.INSTANCE_ID, M.PLACE", limit+1)
	found, err := sqlite.List[backend.Moment](ctx, s.Store, r)
	return lists.Page(found, limit, lists.MomentMark), wrap("moments", err)
}
