package embedded

import (
	"context"
	"fmt"
	"time"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/lists"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// What is inserted of the audit, and of tokens.
var (
	auditColumns = rows.ColumnsOf[store.Audit]()
	tokenColumns = rows.ColumnsOf[backend.Token]()
)

// auditRows writes who has had a change made.
type auditRows struct{}

// Guard implements sqlite.Extra.
func (auditRows) Guard(sqlite.Tx, *store.Change) error { return nil }

// Write implements sqlite.Extra.
func (auditRows) Write(t sqlite.Tx, _ int64, _ string, c *store.Change) error {
	return writeAudit(t, c.Audit)
}

// Forget implements sqlite.Extra.
func (auditRows) Forget() {}

func writeAudit(t sqlite.Tx, list []store.Audit) error {
	for i := range list {
		if err := rows.Fit(&list[i]); err != nil {
			return err
		}
		if _, _, err := t.Exec("audit_insert", auditColumns.Append(nil, &list[i], values)...); err != nil {
			return err
		}
	}
	return nil
}

// people keeps who may ask nodes, and who has done what.
type people struct{ *sqlite.Store }

// Audit implements backend.AuditReader.
func (s people) Audit(ctx context.Context, q backend.AuditQuery) (p backend.Page[store.Audit], err error) {
	r, limit := read("audit_select"), projections.Bounded(q.Limit)
	r.Equals("USER_NAME", q.User)
	r.Equals("ACTION", q.Action)
	r.Equals("OBJECT_ID", q.Target)
	r.Equals("INSTANCE_ID", q.InstanceID)
	if q.Result == backend.AuditDone {
		r.Where("RESULT is null")
	} else {
		r.Equals("RESULT", q.Result)
	}
	if !q.From.IsZero() {
		r.Where("OCCURRED_ON_UTC >= ?", q.From.UnixMicro())
	}
	if !q.To.IsZero() {
		r.Where("OCCURRED_ON_UTC < ?", q.To.UnixMicro())
	}
	if err := newer(r, "OCCURRED_ON_UTC", "AUDIT_ID", q.After); err != nil {
		return p, wrap("audit", err)
	}
	r.Order("OCCURRED_ON_UTC desc, AUDIT_ID desc", limit+1)
	found, err := sqlite.List[store.Audit](ctx, s.Store, r)
	return lists.Page(found, limit, lists.AuditMark), wrap("audit", err)
}

// newer continues a list, newest first, behind a mark of a moment and an id.
func newer(r *rows.Select, at, id, after string) error {
	if after == "" {
		return nil
	}
	us, last, err := rows.Mark(after)
	if err == nil {
		r.Where(fmt.Sprintf("(%s, %s) < (?, ?)", at, id), us, last)
	}
	return err
}

// MakeToken implements backend.Tokens.
func (s people) MakeToken(ctx context.Context, k backend.Token, by store.Audit) error {
	return wrap("token "+k.ID, s.Write(ctx, func(t sqlite.Tx) error {
		if err := rows.Fit(&k); err != nil {
			return err
		}
		if _, _, err := t.Exec("token_insert", tokenColumns.Append(nil, &k, values)...); err != nil {
			return conn.Unique(err, store.ErrDuplicate)
		}
		return writeAudit(t, []store.Audit{by})
	}))
}

// Token implements backend.Tokens.
func (s people) Token(ctx context.Context, id string) (backend.Token, error) {
	r := read("token_select")
	r.Where("TOKEN_ID = ?", id)
	k, err := sqlite.One[backend.Token](ctx, s.Store, r)
	return k, wrap("token", err)
}

// Tokens implements backend.Tokens.
func (s people) Tokens(ctx context.Context, after string, limit int) (p backend.Page[backend.Token], err error) {
	r := read("token_select")
	if err := newer(r, "CREATED_ON_UTC", "TOKEN_ID", after); err != nil {
		return p, wrap("tokens", err)
	}
	limit = projections.Bounded(limit)
	r.Order("CREATED_ON_UTC desc, TOKEN_ID desc", limit+1)
	found, err := sqlite.List[backend.Token](ctx, s.Store, r)
	return lists.Page(found, limit, lists.TokenMark), wrap("tokens", err)
}

// RevokeToken implements backend.Tokens.
func (s people) RevokeToken(ctx context.Context, id string, by store.Audit) error {
	return wrap("revoke token "+id, s.Write(ctx, func(t sqlite.Tx) error {
		if err := t.Guard(store.ErrNotFound, "token_revoke", conn.Micros(by.At), conn.Text(by.User), id); err != nil {
			return err
		}
		return writeAudit(t, []store.Audit{by})
	}))
}

// UsedToken implements backend.Tokens.
func (s people) UsedToken(ctx context.Context, id string, at time.Time) error {
	return wrap("token "+id, s.Write(ctx, func(t sqlite.Tx) error {
		_, _, err := t.Exec("token_used", conn.Micros(at), id)
		return err
	}))
}
