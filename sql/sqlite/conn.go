package sqlite

import (
	"context"
	"database/sql/driver"
	"embed"
	"fmt"
	"io"

	"github.com/mattn/go-sqlite3"
)

//go:embed query/*.sql
var queries embed.FS

// conn is one connection used by one goroutine at a time, below database/sql:
// no pool, no contexts, no named arguments, which is a third of the cost of a
// small statement. Statements are named for their file in query/ and stay
// prepared.
type conn struct {
	c          *sqlite3.SQLiteConn
	statements map[string]*stmt
	args       []driver.NamedValue // reused by every call
}

type stmt struct {
	driver.Stmt
	exec driver.StmtExecContext
	rows driver.StmtQueryContext
}

func openConn(dsn string) (*conn, error) {
	c, err := (&sqlite3.SQLiteDriver{}).Open(dsn)
	if err != nil {
		return nil, err
	}
	return &conn{c: c.(*sqlite3.SQLiteConn), statements: map[string]*stmt{}}, nil
}

func (c *conn) close() error {
	for _, s := range c.statements {
		s.Close()
	}
	return c.c.Close()
}

// script runs plain text: pragmas, migrations, transactions.
func (c *conn) script(text string) error {
	_, err := c.c.Exec(text, nil)
	return err
}

// number returns the single integer of a query in plain text.
func (c *conn) number(text string) (int64, error) {
	rows, err := c.c.Query(text, nil)
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	dest := make([]driver.Value, 1)
	if err := rows.Next(dest); err != nil {
		return 0, err
	}
	n, _ := dest[0].(int64)
	return n, nil
}

// text returns the single text of a query in plain text.
func (c *conn) text(query string) (string, error) {
	rows, err := c.c.Query(query, nil)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	dest := make([]driver.Value, 1)
	if err := rows.Next(dest); err != nil {
		return "", err
	}
	return fmt.Sprint(dest[0]), nil
}

func (c *conn) stmt(name string) (*stmt, error) {
	if s, ok := c.statements[name]; ok {
		return s, nil
	}
	text, err := queries.ReadFile("query/" + name + ".sql")
	if err != nil {
		return nil, err
	}
	s, err := c.prepare(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	c.statements[name] = s
	return s, nil
}

func (c *conn) prepare(text string) (*stmt, error) {
	s, err := c.c.Prepare(text)
	if err != nil {
		return nil, err
	}
	return &stmt{Stmt: s, exec: s.(driver.StmtExecContext), rows: s.(driver.StmtQueryContext)}, nil
}

// bind numbers the arguments of a statement. The driver clears what was bound
// before, so one that is null needs no call.
func (c *conn) bind(args []any) []driver.NamedValue {
	c.args = c.args[:0]
	for i, a := range args {
		if a != nil {
			c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: a})
		}
	}
	return c.args
}

// exec runs a statement and returns the last row id and how many rows it
// changed.
func (c *conn) exec(name string, args ...any) (id, changed int64, err error) {
	s, err := c.stmt(name)
	if err != nil {
		return 0, 0, err
	}
	r, err := s.exec.ExecContext(context.Background(), c.bind(args))
	if err != nil {
		return 0, 0, fmt.Errorf("%s: %w", name, err)
	}
	id, _ = r.LastInsertId()
	changed, _ = r.RowsAffected()
	return id, changed, nil
}

// columns are the names of what a query finds.
func (c *conn) columns(name string) ([]string, error) {
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

// query calls each for every row; row is only valid during the call.
func (c *conn) query(name string, columns int, each func(row []driver.Value) error, args ...any) error {
	s, err := c.stmt(name)
	if err != nil {
		return err
	}
	rows, err := s.rows.QueryContext(context.Background(), c.bind(args))
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

// one returns the first row, or nil.
func (c *conn) one(name string, columns int, args ...any) ([]driver.Value, error) {
	var found []driver.Value
	err := c.query(name, columns, func(row []driver.Value) error {
		if found == nil {
			found = append(found, row...)
		}
		return nil
	}, args...)
	return found, err
}
