// Package conn is SQLite as the embedded store uses it: one connection below
// database/sql, the values that rows hold, and what its errors mean. It knows no
// table; whoever opens a connection brings the statements.
package conn

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"

	"github.com/mattn/go-sqlite3"
)

// Conn is one connection used by one goroutine at a time, below database/sql:
// no pool, no contexts, no named arguments, which is a third of the cost of a
// small statement. Statements are named for their files and stay prepared.
type Conn struct {
	c          *sqlite3.SQLiteConn
	sources    []embed.FS
	statements map[string]*Stmt
	args       []driver.NamedValue // reused by every call
	guard      *guard              // nil = no text of others has run
}

// Stmt is a statement that is prepared.
type Stmt struct {
	driver.Stmt
	exec driver.StmtExecContext
	rows driver.StmtQueryContext
}

// dsn is the address of a database for the driver.
func dsn(path, params string) string {
	u := url.URL{Path: path}
	// A connection is used by one goroutine at a time, and needs no lock of its own.
	s := "file:" + u.EscapedPath() + "?_busy_timeout=5000&_mutex=no"
	if params != "" {
		s += "&" + params
	}
	return s
}

// Open opens a connection to the file at a path, with parameters of the driver.
// Statements are files query/<name>.sql of the sources; the first that has one
// counts.
func Open(path, params string, sources ...embed.FS) (*Conn, error) {
	c, err := (&sqlite3.SQLiteDriver{}).Open(dsn(path, params))
	if err != nil {
		return nil, err
	}
	return &Conn{c: c.(*sqlite3.SQLiteConn), sources: sources, statements: map[string]*Stmt{}}, nil
}

// Pool opens the file at a path for reading by database/sql.
func Pool(path, params string) (*sql.DB, error) { return sql.Open("sqlite3", dsn(path, params)) }

// Statement is the text of a statement, or "" when no source has it.
func Statement(name string, sources ...embed.FS) string {
	for _, from := range sources {
		if text, err := from.ReadFile("query/" + name + ".sql"); err == nil {
			return string(text)
		}
	}
	return ""
}

// Close closes the connection.
func (c *Conn) Close() error {
	for _, s := range c.statements {
		s.Close()
	}
	return c.c.Close()
}

// Script runs plain text: pragmas, migrations, transactions.
func (c *Conn) Script(text string) error {
	_, err := c.c.Exec(text, nil)
	return err
}

// row is the first row of a query in plain text, which has so many columns.
func (c *Conn) row(text string, columns int) ([]driver.Value, error) {
	rows, err := c.c.Query(text, nil)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	row := make([]driver.Value, columns)
	return row, rows.Next(row)
}

// Number returns the single integer of a query in plain text.
func (c *Conn) Number(text string) (int64, error) {
	row, err := c.row(text, 1)
	if err != nil {
		return 0, err
	}
	n, _ := row[0].(int64)
	return n, nil
}

// Text returns the single text of a query in plain text.
func (c *Conn) Text(text string) (string, error) {
	row, err := c.row(text, 1)
	if err != nil {
		return "", err
	}
	return fmt.Sprint(row[0]), nil
}

func (c *Conn) stmt(name string) (*Stmt, error) {
	if s, ok := c.statements[name]; ok {
		return s, nil
	}
	text := Statement(name, c.sources...)
	if text == "" {
		return nil, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	s, err := c.Prepare(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	c.statements[name] = s
	return s, nil
}

// Replace has another statement run under a name, and returns the one before: a
// test's, that fails.
func (c *Conn) Replace(name string, with *Stmt) (was *Stmt) {
	was, c.statements[name] = c.statements[name], with
	return was
}

// Prepare prepares a statement in plain text.
func (c *Conn) Prepare(text string) (*Stmt, error) {
	s, err := c.c.Prepare(text)
	if err != nil {
		return nil, err
	}
	return &Stmt{Stmt: s, exec: s.(driver.StmtExecContext), rows: s.(driver.StmtQueryContext)}, nil
}

// bind numbers the arguments of a statement. The driver clears what was bound
// before, so one that is null needs no call.
func (c *Conn) bind(args []any) []driver.NamedValue {
	c.args = c.args[:0]
	for i, a := range args {
		if a != nil {
			c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: a})
		}
	}
	return c.args
}

// Exec runs a statement and returns the last row id and how many rows it
// changed.
func (c *Conn) Exec(name string, args ...any) (id, changed int64, err error) {
	s, err := c.stmt(name)
	if err != nil {
		return 0, 0, err
	}
	if id, changed, err = c.Run(s, args...); err != nil {
		return 0, 0, fmt.Errorf("%s: %w", name, err)
	}
	return id, changed, nil
}

// Run is Exec of a statement that is prepared.
func (c *Conn) Run(s *Stmt, args ...any) (id, changed int64, err error) {
	r, err := s.exec.ExecContext(context.Background(), c.bind(args))
	if err != nil {
		return 0, 0, err
	}
	id, _ = r.LastInsertId()
	changed, _ = r.RowsAffected()
	return id, changed, nil
}

// Columns are the names of what a query finds.
func (c *Conn) Columns(name string) ([]string, error) {
	s, err := c.stmt(name)
	if err != nil {
		return nil, err
	}
	found, err := s.rows.QueryContext(context.Background(), nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer found.Close()
	return found.Columns(), nil
}

// Query calls each for every row; row is only valid during the call.
func (c *Conn) Query(name string, columns int, each func(row []driver.Value) error, args ...any) error {
	return c.Each(context.Background(), name, columns, each, args...)
}

// Each is a Query that ctx ends.
func (c *Conn) Each(ctx context.Context, name string, columns int, each func(row []driver.Value) error, args ...any) error {
	s, err := c.stmt(name)
	if err != nil {
		return err
	}
	rows, err := s.rows.QueryContext(ctx, c.bind(args))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer rows.Close()
	row := make([]driver.Value, columns)
	for {
		err := rows.Next(row)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := each(row); err != nil {
			return err
		}
	}
}

// One returns the first row, or nil.
func (c *Conn) One(name string, columns int, args ...any) ([]driver.Value, error) {
	var found []driver.Value
	err := c.Query(name, columns, func(row []driver.Value) error {
		if found == nil {
			found = append(found, row...)
		}
		return nil
	}, args...)
	return found, err
}

// InTransaction says whether the connection has begun one that is not over:
// SQLite ends some by itself.
func (c *Conn) InTransaction() bool { return !c.c.AutoCommit() }

// Fatal says that an error is of the database, not of one change.
func Fatal(err error) bool {
	var e sqlite3.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code {
	case sqlite3.ErrConstraint, sqlite3.ErrTooBig, sqlite3.ErrError, sqlite3.ErrMismatch, sqlite3.ErrRange, sqlite3.ErrInterrupt:
		return false
	}
	return true
}
