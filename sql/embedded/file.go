package embedded

import (
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
)

// Pages returns the bytes that the database at a path takes when its log has
// been written back.
func Pages(path string) (int64, error) {
	c, err := conn.Open(path, "_query_only=1")
	if err != nil {
		return 0, wrap("pages", conn.Explain(err, path))
	}
	defer c.Close()
	n, err := c.Number("select page_count * page_size from pragma_page_count, pragma_page_size")
	return n, wrap("pages", conn.Explain(err, path))
}

// CheckIntegrity has SQLite verify the whole file at a path: every page, index and
// constraint. It reads all of it. Its problem is store.corrupt.
func CheckIntegrity(path string) error {
	c, err := conn.Open(path, "_query_only=1")
	if err != nil {
		return wrap("check", conn.Explain(err, path))
	}
	defer c.Close()
	row, err := c.Text("pragma integrity_check(1)")
	if err == nil && row != "ok" {
		err = problem.New(problem.Internal, "store.corrupt", "the database %s is damaged: %s", path, row).
			WithHint("restore a backup; sqlite3's .recover may save rows")
	}
	return wrap("check", conn.Explain(err, path))
}
