package oracle

import (
	"context"
	"fmt"
	"time"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/lists"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// audit writes who has had the work done. Rows that do not fit their columns have been
// refused before.
func (w *work) audit(list []store.Audit) {
	for i := range list {
		w.add(nil, "audit_insert", auditColumns.Named(statements["audit_insert"].binds, &list[i], values, nil)...)
	}
}

// runAudited executes a statement that must change a row, and writes who has had it
// done.
func runAudited(ctx context.Context, s *Store, by []store.Audit, name string, args ...any) error {
	if err := rows.Fit(&store.Change{Audit: by}); err != nil {
		return err
	}
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	w := &work{}
	w.add(store.ErrNotFound, name, args...)
	w.audit(by)
	return change(ctx, s, nil, func(session *aq.Session) error { return execute(ctx, session, w, false) })
}

// newer continues a list, newest first, behind a mark of a moment and an id.
func newer(r *rows.Select, at, id, after string) error {
	if after == "" {
		return nil
	}
	us, last, err := rows.Mark(after)
	if err == nil {
		behind(r, at, "<", "CAST(? AS TIMESTAMP(6))", time.UnixMicro(us).UTC(), id, last)
	}
	return err
}

// Audit implements backend.AuditReader.
func (s people) Audit(ctx context.Context, q backend.AuditQuery) (p backend.Page[store.Audit], err error) {
	r, limit := read("audit_select"), projections.Bounded(q.Limit)
	r.Equals("A.USER_NAME", q.User)
	r.Equals("A.ACTION", q.Action)
	r.Equals("A.OBJECT_ID", q.Target)
	r.Equals("A.INSTANCE_ID", q.InstanceID)
	if q.Result == backend.AuditDone {
		r.Where("A.RESULT is null")
	} else {
		r.Equals("A.RESULT", q.Result)
	}
	if !q.From.IsZero() {
		r.Where("A.OCCURRED_ON_UTC >= CAST(? AS TIMESTAMP(6))", stamp(q.From))
	}
	if !q.To.IsZero() {
		r.Where("A.OCCURRED_ON_UTC < CAST(? AS TIMESTAMP(6))", stamp(q.To))
	}
	if err := newer(r, "A.OCCURRED_ON_UTC", "A.AUDIT_ID", q.After); err != nil {
		return p, wrap("audit", err)
	}
	r.Order("A.OCCURRED_ON_UTC desc, A.AUDIT_ID desc", limit+1)
	found, err := list[store.Audit](ctx, s.Store, r)
	return lists.Page(found, limit, lists.AuditMark), wrap("audit", err)
}

// MakeToken implements backend.Tokens.
func (s people) MakeToken(ctx context.Context, k backend.Token, by store.Audit) error {
	if err := rows.Fit(&k); err != nil {
		return wrap("token "+k.ID, err)
	}
	args := tokenColumns.Named(statements["token_insert"].binds, &k, values, nil)
	return wrap("token "+k.ID, runAudited(ctx, s.Store, []store.Audit{by}, "token_insert", args...))
}

// Token implements backend.Tokens.
func (s people) Token(ctx context.Context, id string) (backend.Token, error) {
	r := read("token_select")
	r.Where("T.TOKEN_ID = ?", id)
	k, err := single[backend.Token](ctx, s.Store, r)
	return k, wrap("token", err)
}

// Tokens implements backend.Tokens.
func (s people) Tokens(ctx context.Context, after string, limit int) (p backend.Page[backend.Token], err error) {
	r := read("token_select")
	if err := newer(r, "T.CREATED_ON_UTC", "T.TOKEN_ID", after); err != nil {
		return p, wrap("tokens", err)
	}
	limit = projections.Bounded(limit)
	r.Order("T.CREATED_ON_UTC desc, T.TOKEN_ID desc", limit+1)
	found, err := list[backend.Token](ctx, s.Store, r)
	return lists.Page(found, limit, lists.TokenMark), wrap("tokens", err)
}

// RevokeToken implements backend.Tokens.
func (s people) RevokeToken(ctx context.Context, id string, by store.Audit) error {
	return wrap("revoke token "+id, runAudited(ctx, s.Store, []store.Audit{by}, "token_revoke", stamp(by.At), by.User, id))
}

// UsedToken implements backend.Tokens. Who has the row locked notes it himself, or
// revokes it.
func (s people) UsedToken(ctx context.Context, id string, at time.Time) error {
	err := runStatement(ctx, s.Store, &op{name: "token_used", args: []any{stamp(at), id}})
	if isLocked(err) {
		return nil
	}
	return wrap(fmt.Sprintf("token %s is used", id), err)
}
