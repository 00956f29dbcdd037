package embedded

import (
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/history"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/files"
)

// Histories reads the instances of the database at a path, beside nodes or without.
// While it reads one, the write-ahead log grows by what is written meanwhile.
func Histories(path string) (*history.Reader, error) {
	path, err := files.Located(path)
	if err != nil {
		return nil, wrap("histories", err)
	}
	db, err := conn.Pool(path, "mode=rw&_query_only=1")
	if err != nil {
		return nil, wrap("histories", conn.Explain(err, path))
	}
	return &history.Reader{
		DB: db, Done: db.Close, Explain: func(err error) error { return conn.Explain(err, path) },
		Key: keyName, State: "history_state", Read: read,
		Behind: func(r *rows.Select, id string, after int64) { behind(r, id, after, projections.MaxLimit) },
	}, nil
}
