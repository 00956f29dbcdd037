package conn

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"

	"github.com/mattn/go-sqlite3"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// Guard is what a text of others may do on a connection whose tables are not theirs.
// SQLite asks about each thing that a text does, triggers and views included, when it
// prepares it: what is not allowed is not begun.
type Guard struct {
	Reserved func(table string) bool // tables that are read at most
	Tables   bool                    // it may make, change and drop tables that are not reserved
}

// guard is the one in force.
type guard struct {
	Guard
	on     bool
	denied string // what was refused
}

// recursive is SQLITE_RECURSIVE, which the driver does not name.
const recursive = 33

// ask implements SQLite's authorizer.
func (g *guard) ask(action int, first, second, _ string) int {
	if !g.on {
		return sqlite3.SQLITE_OK
	}
	what := ""
	switch action {
	case sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, recursive:
	case sqlite3.SQLITE_FUNCTION:
		if second == "load_extension" {
			what = "load an extension"
		}
	case sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE:
		if g.Reserved(first) || !g.Tables && catalogue[first] {
			what = "write to " + first
		}
	case sqlite3.SQLITE_CREATE_TABLE, sqlite3.SQLITE_CREATE_VIEW, sqlite3.SQLITE_DROP_TABLE, sqlite3.SQLITE_DROP_VIEW:
		if !g.Tables || g.Reserved(first) {
			what = "make or drop " + first
		}
	case sqlite3.SQLITE_CREATE_INDEX, sqlite3.SQLITE_CREATE_TRIGGER, sqlite3.SQLITE_DROP_INDEX, sqlite3.SQLITE_DROP_TRIGGER, sqlite3.SQLITE_ALTER_TABLE:
		if !g.Tables || g.Reserved(first) || g.Reserved(second) {
			what = "make, change or drop " + first + " of " + second
		}
	case sqlite3.SQLITE_REINDEX:
		if !g.Tables {
			what = "make an index anew"
		}
	case sqlite3.SQLITE_TRANSACTION, sqlite3.SQLITE_SAVEPOINT:
		what = "begin or end a transaction or savepoint"
	case sqlite3.SQLITE_PRAGMA:
		what = "use the pragma " + first
	case sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH:
		what = "attach or detach a database"
	default:
		what = "make something beside tables"
	}
	if what == "" {
		return sqlite3.SQLITE_OK
	}
	g.denied = what
	return sqlite3.SQLITE_DENY
}

// catalogue are SQLite's own tables of what there is.
var catalogue = map[string]bool{"sqlite_master": true, "sqlite_schema": true, "sqlite_temp_master": true, "sqlite_temp_schema": true}

// guarded calls f under a guard, and says what it was refused. The authorizer stays
// for good: to set one makes SQLite prepare every statement of the connection again.
func (c *Conn) guarded(g Guard, f func() error) error {
	if c.guard == nil {
		c.guard = &guard{}
		c.c.RegisterAuthorizer(c.guard.ask)
	}
	*c.guard = guard{Guard: g, on: true}
	defer func() { c.guard.on = false }()
	err := f()
	if err != nil && c.guard.denied != "" {
		return problem.New(problem.Denied, "step.refused", "the statement would %s, which is the engine's", c.guard.denied).
			WithHint("it may select from any table, and write to the application's own")
	}
	return err
}

// Meaning says what an error of a statement of others is called and says, and whether
// the database is to blame, which takes nothing then.
func Meaning(err error) (name, text string, database bool) {
	var e sqlite3.Error
	if !errors.As(err, &e) {
		return "Step failed", err.Error(), false
	}
	switch e.Code {
	case sqlite3.ErrConstraint:
		return "Constraint violated", e.Error(), false
	case sqlite3.ErrError, sqlite3.ErrMismatch, sqlite3.ErrRange, sqlite3.ErrTooBig, sqlite3.ErrAuth, sqlite3.ErrInterrupt, sqlite3.ErrMisuse:
		return "Statement failed", e.Error(), false
	}
	return "", "", true
}

// ScriptFor runs plain text under a guard.
func (c *Conn) ScriptFor(g Guard, text string) error {
	return c.guarded(g, func() error { return c.Script(text) })
}

// CheckFor prepares a statement under a guard, and does not run it.
func (c *Conn) CheckFor(g Guard, text string) error {
	return c.guarded(g, func() error {
		s, err := c.Prepare(text)
		if err != nil {
			return err
		}
		return s.Close()
	})
}

// RunFor runs a statement under a guard, with parameters by their names, and calls
// each for every row that it gives. When ctx ends, SQLite interrupts it, and with a
// statement that writes it ends the transaction.
func (c *Conn) RunFor(ctx context.Context, g Guard, text string, args map[string]any, each func(columns []string, row []driver.Value) error) (changed int64, err error) {
	err = c.guarded(g, func() error {
		s, err := c.Prepare(text)
		if err != nil {
			return err
		}
		defer s.Close()
		named := make([]driver.NamedValue, 0, len(args))
		for name, v := range args {
			named = append(named, driver.NamedValue{Name: name, Value: v})
		}
		rows, err := s.rows.QueryContext(ctx, named)
		if err != nil {
			return err
		}
		defer rows.Close()
		columns := rows.Columns()
		row := make([]driver.Value, len(columns))
		for {
			if err := rows.Next(row); err == io.EOF {
				break
			} else if err != nil {
				return err
			}
			if err := each(columns, row); err != nil {
				return err
			}
		}
		if reader, ok := s.Stmt.(interface{ Readonly() bool }); ok && !reader.Readonly() {
			changed, err = c.Number("select changes()")
		}
		return err
	})
	return changed, err
}
