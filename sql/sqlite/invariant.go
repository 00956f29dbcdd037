package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/aqueduct-engine/aqueduct/sql/sqlite/files"
	"github.com/aqueduct-engine/aqueduct/store"
)

// Verify looks for what breaks the invariants of package store in the database
// at a path, up to limit violations of each. It writes nothing, sees one moment,
// and works beside nodes; ctx ends it. While it reads, the write-ahead log
// grows by what is written meanwhile.
func Verify(ctx context.Context, path string, limit int) ([]store.Violation, error) {
	path, err := files.Located(path)
	if err != nil {
		return nil, wrap("verify", err)
	}
	c, err := openConn(dsn(path, "mode=rw&_query_only=1"))
	if err != nil {
		return nil, wrap("verify", explain(err, path))
	}
	defer c.close()
	if err := c.script("begin"); err != nil {
		return nil, wrap("verify", explain(err, path))
	}
	var list []store.Violation
	for _, i := range store.Invariants {
		if list, err = c.violations(ctx, i.Name, limit, list); err != nil {
			return list, wrap("verify", explain(err, path))
		}
	}
	return list, nil
}

// violations appends what breaks one invariant.
func (c *conn) violations(ctx context.Context, name string, limit int, list []store.Violation) ([]store.Violation, error) {
	s, err := c.stmt("invariant_" + strings.ReplaceAll(name, "-", "_"))
	if err != nil {
		return list, err
	}
	rows, err := s.rows.QueryContext(ctx, c.bind([]any{int64(limit)}))
	if err != nil {
		return list, fmt.Errorf("%s: %w", name, err)
	}
	defer rows.Close()
	row := make([]driver.Value, 2)
	for {
		err := rows.Next(row)
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if ctx.Err() != nil {
			return list, ctx.Err()
		}
		if err != nil {
			return list, fmt.Errorf("%s: %w", name, err)
		}
		list = append(list, store.Violation{Invariant: name, About: fmt.Sprint(row[0]), Found: fmt.Sprint(row[1])})
	}
}
