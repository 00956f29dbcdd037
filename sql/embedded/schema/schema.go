// Package schema makes the tables of the embedded store, and brings those of an older
// program up to date: the first script makes them, each other changes them, and none
// is ever edited. docs/reference/tables.md says what is in them.
package schema

import (
	"embed"
	"fmt"
	"io/fs"
	"sort"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/files"
)

//go:embed *.sql
var scripts embed.FS

// writeAhead switches the file to a write-ahead log. SQLite does not wait for
// another process that is doing the same, so this does.
func writeAhead(c *conn.Conn) error {
	if mode, err := c.Text("pragma journal_mode"); err != nil || mode == "wal" {
		return err
	}
	deadline := time.Now().Add(walPatience)
	for {
		err := c.Script("pragma journal_mode = wal")
		if !conn.IsBusy(err) || time.Now().After(deadline) {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// walPatience bounds the wait for a process that opens the same new file.
const walPatience = 5 * time.Second

// Versions returns the schema version of a database, and the one this program
// knows. A file without a schema has version 0.
func Versions(c *conn.Conn, path string) (have, known int, err error) {
	names, err := fs.Glob(scripts, "*.sql")
	if err != nil {
		return 0, 0, err
	}
	n, err := c.Number("pragma user_version")
	return int(n), len(names), wrap("version", conn.Explain(err, path))
}

// ApplicationID is "AQDU" in the header of the file: file(1) and SQLite's tools
// know by it whose database this is.
const ApplicationID = 0x41514455

// Foreign refuses a database of another program.
func Foreign(c *conn.Conn, path string) error {
	id, err := c.Number("pragma application_id")
	if err != nil || id == ApplicationID {
		return err
	}
	tables, err := c.Number("select count(*) from sqlite_schema")
	if err != nil || id == 0 && tables == 0 {
		return err // a new file
	}
	ours, err := c.Number("select count(*) from sqlite_schema where NAME in ('WF_META', 'WF_RUNTIME_STATES')")
	if err != nil || id == 0 && ours == 2 {
		return err // made before the id was
	}
	return problem.New(problem.Unavailable, "store.foreign", "%s is the database of another program (application id %d, %d tables and views)",
		path, id, tables).WithHint("name another path in store.url; nothing was changed")
}

// outdated refuses to migrate under nodes that run: they know the schema as it
// was, and would go on writing by it.
func outdated(path string, from, to int) error {
	n, err := files.Live(path)
	if err != nil || n == 0 {
		return err
	}
	return problem.New(problem.Unavailable, "store.in-use", "%d nodes run on the database %s with its schema version %d; this program would make it %d",
		n, path, from, to).WithHint("stop them first, back up, and start the new program on all")
}

// Tables is a sqlite.Schema.
type Tables struct{}

// Migrate implements sqlite.Schema.
func (Tables) Migrate(c *conn.Conn, path string) error {
	_, _, err := Migrate(c, path)
	return err
}

// Check implements sqlite.Schema.
func (Tables) Check(c *conn.Conn, path string) error {
	have, known, err := Versions(c, path)
	if err == nil && have != known {
		err = newer(path, have, known)
	}
	return err
}

// wrap says what was attempted.
func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("sqlite: %s: %w", what, err)
}

// Migrate applies what is missing, all of it or nothing. A foreign database, a
// newer schema, and one that nodes of an older program run on are refused before
// anything is written.
func Migrate(c *conn.Conn, path string) (from, to int, err error) {
	if err := Foreign(c, path); err != nil {
		return 0, 0, wrap("migrate", conn.Explain(err, path))
	}
	from, to, err = Versions(c, path)
	if err != nil {
		return from, to, err
	}
	if from > to {
		return from, from, wrap("migrate", newer(path, from, to))
	}
	if err := writeAhead(c); err != nil { // a copy by "vacuum into" has no log
		return from, from, wrap("migrate", conn.Explain(err, path))
	}
	if from == to {
		return from, to, nil
	}
	names, err := fs.Glob(scripts, "*.sql")
	if err != nil {
		return from, from, err
	}
	sort.Strings(names)
	if err := c.Script("begin immediate"); err != nil {
		return from, from, wrap("migrate", conn.Explain(err, path))
	}
	now, _, err := Versions(c, path) // another process may have been faster
	if err == nil && now > to {
		err = newer(path, now, to)
	}
	if err == nil && now > 0 && now < to { // a node that is starting registers under the same lock
		err = outdated(path, now, to)
	}
	if err == nil {
		err = apply(c, names, now)
	}
	if err == nil {
		err = c.Script("commit")
	}
	if err != nil {
		_ = c.Script("rollback") // the error is already what is told
		return from, from, wrap("migrate", conn.Explain(err, path))
	}
	return from, to, nil
}

func newer(path string, have, known int) error {
	return problem.New(problem.Unavailable, "store.newer", "the database %s has schema version %d, this program knows %d", path, have, known).
		WithHint("run the newer program that has migrated it")
}

// apply runs the scripts that come after a version.
func apply(c *conn.Conn, names []string, version int) error {
	for i := version; i < len(names); i++ {
		text, err := scripts.ReadFile(names[i])
		if err != nil {
			return err
		}
		if err := c.Script(string(text)); err != nil {
			return fmt.Errorf("%s: %w", names[i], err)
		}
		if err := c.Script(fmt.Sprintf("pragma user_version = %d", i+1)); err != nil {
			return err
		}
	}
	return c.Script(fmt.Sprintf("pragma application_id = %d", ApplicationID))
}
