package memory

import (
	"context"
	"maps"

	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// Settings implements backend.Settings.
func (s people) Settings(ctx context.Context) ([]backend.Setting, error) {
	return view(ctx, s.Store, func(t *data) ([]backend.Setting, error) { return t.settings.List(), nil })
}

// Record implements backend.Settings.
func (s people) Record(ctx context.Context, list []backend.Setting, by ...store.Audit) error {
	return s.update(ctx, func(t *data) error {
		all := backend.Recorded{}
		maps.Copy(all, t.settings)
		for i := range list {
			name, value, err := list[i].Fact()
			if err != nil {
				return err
			}
			if list[i].Number <= all[list[i].Key].Number {
				return store.ErrDuplicate
			}
			if err := all.Add(name, value); err != nil {
				return err
			}
		}
		t.settings = all
		t.noteAudit(by)
		return nil
	})
}
