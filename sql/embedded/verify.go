package embedded

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strings"

	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/files"
	"github.com/aqueduct-engine/aqueduct/store/survey"
)

// Verify looks for what breaks the invariants of package store in the database
// at a path, up to limit violations of each. It writes nothing, sees one moment,
// and works beside nodes; ctx ends it. While it reads, the write-ahead log
// grows by what is written meanwhile.
func Verify(ctx context.Context, path string, limit int) ([]survey.Violation, error) {
	path, err := files.Located(path)
	if err != nil {
		return nil, wrap("verify", err)
	}
	c, err := conn.Open(path, "mode=rw&_query_only=1", queries)
	if err != nil {
		return nil, wrap("verify", conn.Explain(err, path))
	}
	defer c.Close()
	if err := c.Script("begin"); err != nil {
		return nil, wrap("verify", conn.Explain(err, path))
	}
	var list []survey.Violation
	for _, i := range survey.Invariants {
		if list, err = violations(ctx, c, i.Name, limit, list); err != nil {
			return list, wrap("verify", conn.Explain(err, path))
		}
	}
	return list, nil
}

// violations appends what breaks one invariant.
func violations(ctx context.Context, c *conn.Conn, name string, limit int, list []survey.Violation) ([]survey.Violation, error) {
	err := c.Each(ctx, "invariant_"+strings.ReplaceAll(name, "-", "_"), 2, func(row []driver.Value) error {
		list = append(list, survey.Violation{Invariant: name, About: fmt.Sprint(row[0]), Found: fmt.Sprint(row[1])})
		return nil
	}, int64(limit))
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	return list, err
}
