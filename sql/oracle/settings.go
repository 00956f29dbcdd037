package oracle

import (
	"context"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// Settings implements backend.Settings.
func (s identity) Settings(ctx context.Context) ([]backend.Setting, error) {
	if err := s.enter(); err != nil {
		return nil, wrap("settings", err)
	}
	defer s.leave()
	all := backend.Recorded{}
	found, err := s.db.QueryContext(ctx, text("meta_settings"))
	if err != nil {
		return nil, wrap("settings", explain(err))
	}
	defer found.Close()
	for found.Next() {
		var name string
		var value []byte
		if err = found.Scan(&name, &value); err == nil {
			err = all.Add(name, value)
		}
		if err != nil {
			return nil, wrap("settings", err)
		}
	}
	return all.List(), wrap("settings", explain(found.Err()))
}

// Record implements backend.Settings: nodes may insert facts, and change none. One whose
// number another inserts waits for that commit, and is refused.
func (s identity) Record(ctx context.Context, list []backend.Setting, by ...store.Audit) error {
	if err := rows.Fit(&store.Change{Audit: by}); err != nil {
		return wrap("settings", err)
	}
	w := &work{}
	for i := range list {
		name, value, err := list[i].Fact()
		if err != nil {
			return err
		}
		w.add(nil, "meta_insert", name, value)
	}
	w.audit(by)
	if err := s.enter(); err != nil {
		return wrap("settings", err)
	}
	defer s.leave()
	return wrap("settings", change(ctx, s.Store, nil, func(session *aq.Session) error { return execute(ctx, session, w, false) }))
}
