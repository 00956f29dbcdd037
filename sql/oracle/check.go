package oracle

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/store/survey"
)

// CheckOptions says what Check looks at: the database as a node's own user
// sees it.
type CheckOptions struct {
	DSN      string                 // of the user of the nodes
	Password func() (string, error) // of Histories, asked for each connection; nil = it is as in DSN
	Schema   string                 // owner of the tables and queues; empty = the user's own
	Sessions int                    // that a node takes, for which room is looked for

	// Verify says what is wrong with a definition.
	Verify func(definition.Record) error
	// Quick leaves out what reads every row.
	Quick bool
}

// Limits of a check.
const (
	MinVersion = 19              // of the database
	MinClient  = 21              // of the client library: older ones fail in parallel array enqueues
	MaxSkew    = 2 * time.Second // between the clocks of a node and of the database; DefaultDeadAfter is an error
)

// checker gathers findings on one database.
type checker struct {
	ctx   context.Context
	e     CheckOptions
	db    *sql.DB
	user  string // who looks
	owner string // of the schema
	list  []survey.Finding
}

// The checks, by what they are about.
type (
	databaseCheck struct{ *checker }
	rightsCheck   struct{ *checker }
	schemaCheck   struct{ *checker }
)

// Check looks at a database and the schema in it, without changing anything,
// with the eyes of the user that nodes have. What that user is not allowed to
// see is a finding, too.
func Check(ctx context.Context, e CheckOptions) []survey.Finding {
	x := &checker{ctx: ctx, e: e}
	db, err := aq.Open(aq.Options{DSN: e.DSN, Schema: e.Schema})
	if err != nil {
		x.failed("connection", err)
		return x.list
	}
	defer db.Close()
	x.db = db.Shared(1)
	if x.user, err = x.text("check_who"); err == nil {
		x.owner, err = x.text("schema_name")
	}
	if err != nil {
		x.failed("connection", err)
		return x.list
	}
	x.good("connection", "user %s, schema %s", x.user, x.owner)
	d, r, m := databaseCheck{x}, rightsCheck{x}, schemaCheck{x}
	for _, check := range []func(){
		d.client, d.version, d.charset, m.schemaVersion, m.objects, m.columns, m.pkg, r.roles, r.privileges, r.grants, r.possessions,
		m.queues, m.subscribers, d.parameters, func() { nls(x) }, d.clock, d.exceptions, d.deadLetters, d.headroom,
	} {
		if ctx.Err() != nil {
			x.failed("examination", ctx.Err())
			break
		}
		check()
	}
	if !e.Quick && ctx.Err() == nil {
		x.contents()
	}
	return x.list
}

func (x *checker) add(check string, g survey.Severity, fix, found string, args ...any) {
	x.list = append(x.list, survey.Finding{Check: check, Severity: g, Found: fmt.Sprintf(found, args...), Fix: fix})
}

func (x *checker) good(check, found string, args ...any) {
	x.add(check, survey.Good, "", found, args...)
}

func (x *checker) warn(check, fix, found string, args ...any) {
	x.add(check, survey.Warning, fix, found, args...)
}

func (x *checker) wrong(check, fix, found string, args ...any) {
	x.add(check, survey.Wrong, fix, found, args...)
}

// failed says that a check could not be made where nothing should hinder it.
func (x *checker) failed(check string, err error) {
	hint := "look for the code under Trouble in docs/oracle.md"
	if p := problemOf(explain(err)); p != nil && p.Hint != "" {
		hint = p.Hint
	}
	x.wrong(check, hint, "%s", oneLine(explain(err)))
}

// unread says that the user may not read what a check needs.
func (x *checker) unread(check, fix string, err error) {
	if fix == "" {
		fix = "look for the code under Trouble in docs/oracle.md"
	}
	x.warn(check, fix, "it could not be found out: %s", oneLine(err))
}

func problemOf(err error) *problem.Error {
	p, _ := err.(*problem.Error) //nolint:errorlint // explain returns it bare
	return p
}

// oneLine is an error without the driver's line breaks.
func oneLine(err error) string {
	text := err.Error()
	if codes := aq.Codes(err); len(codes) > 0 {
		if i := strings.Index(text, fmt.Sprintf("ORA-%05d", codes[0])); i >= 0 {
			text = text[i:]
		}
	}
	return strings.Join(strings.Fields(text), " ")
}

// rows are the rows of a query, each column as text.
func (x *checker) rows(name string, args ...any) ([][]string, error) {
	rows, err := x.db.QueryContext(x.ctx, text(name), args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	var list [][]string
	for rows.Next() {
		cells := make([]sql.NullString, len(columns)) // null or not: the driver's numbers are texts to it, too
		to := make([]any, len(columns))
		for i := range cells {
			to[i] = &cells[i]
		}
		if err := rows.Scan(to...); err != nil {
			return nil, err
		}
		row := make([]string, len(columns))
		for i := range cells {
			row[i] = cells[i].String
		}
		list = append(list, row)
	}
	return list, rows.Err()
}

// text is the first column of the first row of a query, "" for none.
func (x *checker) text(name string, args ...any) (string, error) {
	rows, err := x.rows(name, args...)
	if err != nil || len(rows) == 0 {
		return "", err
	}
	return rows[0][0], nil
}

// number is the same as a number.
func (x *checker) number(name string, args ...any) (int, error) {
	s, err := x.text(name, args...)
	n := 0
	if err == nil {
		_, err = fmt.Sscan(s, &n)
	}
	return n, err
}

// apart says whether the owner of the schema and who looks are two users.
func (x *checker) apart() bool { return x.user != x.owner }
