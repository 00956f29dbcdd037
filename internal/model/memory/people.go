package memory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/lists"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

func (t *data) noteAudit(list []store.Audit) {
	t.audit = slices.Clone(t.audit)
	for _, a := range list {
		a.At = micros(a.At)
		t.audit = append(t.audit, a)
	}
}

// page are the rows behind a mark, newest first.
func page[T any](all []T, at func(T) time.Time, id func(T) string, mark func(T) string, after string, limit int) (backend.Page[T], error) {
	slices.SortFunc(all, func(a, b T) int { return cmp.Or(at(b).Compare(at(a)), cmp.Compare(id(b), id(a))) })
	if after != "" {
		us, last, err := rows.Mark(after)
		if err != nil {
			return backend.Page[T]{}, err
		}
		all = slices.DeleteFunc(all, func(x T) bool {
			return cmp.Or(cmp.Compare(at(x).UnixMicro(), us), cmp.Compare(id(x), last)) >= 0
		})
	}
	limit = projections.Bounded(limit)
	return lists.Page(all[:min(len(all), limit+1)], limit, mark), nil
}

// Audit implements backend.AuditReader.
func (s people) Audit(ctx context.Context, q backend.AuditQuery) (backend.Page[store.Audit], error) {
	return view(ctx, s.Store, func(t *data) (backend.Page[store.Audit], error) {
		all := slices.DeleteFunc(slices.Clone(t.audit), func(a store.Audit) bool {
			return !fits(q.User, a.User) || !fits(q.Action, a.Action) || !fits(q.Target, a.Target) || !fits(q.InstanceID, a.InstanceID) ||
				!fits(q.Result, cmp.Or(a.Result, backend.AuditDone)) || a.At.Before(q.From) || !q.To.IsZero() && !a.At.Before(q.To)
		})
		return page(all, func(a store.Audit) time.Time { return a.At }, func(a store.Audit) string { return a.ID }, lists.AuditMark, q.After, q.Limit)
	})
}

// people keeps who may ask nodes, and who has done what.
type people struct{ *Store }

// MakeToken implements backend.Tokens.
func (s people) MakeToken(ctx context.Context, k backend.Token, by store.Audit) error {
	return s.update(ctx, func(t *data) error {
		if err := rows.Fit(&k); err != nil {
			return err
		}
		if _, ok := t.tokens[k.ID]; ok {
			return fmt.Errorf("memory: token %s: %w", k.ID, store.ErrDuplicate)
		}
		k.CreatedAt, k.ExpiresAt, k.RevokedAt, k.UsedAt = micros(k.CreatedAt), micros(k.ExpiresAt), micros(k.RevokedAt), micros(k.UsedAt)
		t.tokens[k.ID] = k
		t.noteAudit([]store.Audit{by})
		return nil
	})
}

// Token implements backend.Tokens.
func (s people) Token(ctx context.Context, id string) (backend.Token, error) {
	return view(ctx, s.Store, func(t *data) (backend.Token, error) {
		k, ok := t.tokens[id]
		if !ok {
			return k, store.ErrNotFound
		}
		return k, nil
	})
}

// Tokens implements backend.Tokens.
func (s people) Tokens(ctx context.Context, after string, limit int) (backend.Page[backend.Token], error) {
	return view(ctx, s.Store, func(t *data) (backend.Page[backend.Token], error) {
		return page(slices.Collect(maps.Values(t.tokens)), func(k backend.Token) time.Time { return k.CreatedAt },
			func(k backend.Token) string { return k.ID }, lists.TokenMark, after, limit)
	})
}

// RevokeToken implements backend.Tokens.
func (s people) RevokeToken(ctx context.Context, id string, by store.Audit) error {
	return s.update(ctx, func(t *data) error {
		k, ok := t.tokens[id]
		if !ok || !k.RevokedAt.IsZero() {
			return store.ErrNotFound
		}
		k.RevokedAt, k.RevokedBy = micros(by.At), by.User
		t.tokens[id] = k
		t.noteAudit([]store.Audit{by})
		return nil
	})
}

// UsedToken implements backend.Tokens.
func (s people) UsedToken(ctx context.Context, id string, at time.Time) error {
	return s.update(ctx, func(t *data) error {
		if k, ok := t.tokens[id]; ok {
			k.UsedAt = micros(at)
			t.tokens[id] = k
		}
		return nil
	})
}
