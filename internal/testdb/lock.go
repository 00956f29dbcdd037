package testdb

import (
	"context"
	"database/sql"
	"errors"
)

// Lock has a session of its own execute a statement on Oracle and not commit: what it
// has changed stays locked until release, which takes it back.
func Lock(ctx context.Context, place, statement string) (release func() error, err error) {
	db, err := sql.Open("godror", place)
	if err != nil {
		return nil, err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err == nil {
		_, err = tx.ExecContext(ctx, statement)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return func() error { return errors.Join(tx.Rollback(), db.Close()) }, nil
}
