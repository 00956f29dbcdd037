package embedded

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// Settings implements backend.Settings.
func (s identity) Settings(ctx context.Context) ([]backend.Setting, error) {
	all := backend.Recorded{}
	err := s.Write(ctx, func(t sqlite.Tx) error { // with the writer's connection: a list of its own would be a function more
		return t.Conn().Query("meta_settings", 2, func(r []driver.Value) error {
			name, _ := r[0].(string)
			value, _ := r[1].([]byte)
			return all.Add(name, value)
		})
	})
	return all.List(), wrap("settings", err)
}

// Record implements backend.Settings.
func (s identity) Record(ctx context.Context, list []backend.Setting, by ...store.Audit) error {
	return wrap("settings", s.Write(ctx, func(t sqlite.Tx) error {
		for i := range list {
			name, value, err := list[i].Fact()
			if err != nil {
				return err
			}
			if _, n, err := t.Exec("meta_insert", name, value); err != nil || n == 0 {
				return orDuplicate(err, list[i].Key)
			}
		}
		return writeAudit(t, by)
	}))
}

func orDuplicate(err error, what string) error {
	if err == nil {
		err = fmt.Errorf("%s: %w", what, store.ErrDuplicate)
	}
	return err
}
