package embedded

import (
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"math"
	"strings"

	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/sql/steps"
	"github.com/aqueduct-engine/aqueduct/store"
)

// Steps has a store do steps of the application: its Options.Perform. The tables that
// they write to are in the database of the engine, for a commit is one of one file.
func Steps(set *steps.Set) func(sqlite.Tx) store.Perform {
	return func(t sqlite.Tx) store.Perform {
		return func(target string, input json.RawMessage) (json.RawMessage, *snapshot.Error, error) {
			return set.Perform(stepSession{t.Conn()}, target, input)
		}
	}
}

// reserved are the engine's own tables, and SQLite's.
func reserved(table string) bool {
	table = strings.ToUpper(table)
	of := strings.TrimPrefix(table, "SQLITE_")
	return strings.HasPrefix(table, "WF_") || of != table && of != "MASTER" && of != "SCHEMA" && !strings.HasPrefix(of, "AUTOINDEX_")
}

var (
	ofStep   = conn.Guard{Reserved: reserved}
	ofTables = conn.Guard{Reserved: reserved, Tables: true}
)

// MakeTables runs a script that makes the application's own tables, all of it or
// nothing, and at each start: it says create table if not exists.
func (s *Store) MakeTables(ctx context.Context, script string) error {
	err := s.Write(ctx, func(t sqlite.Tx) error {
		session := stepSession{t.Conn()}
		if err := session.Savepoint(); err != nil {
			return err
		}
		err := t.Conn().ScriptFor(ofTables, script)
		if err != nil && t.Conn().InTransaction() {
			return errors.Join(err, session.RollBack())
		}
		return err
	})
	return wrap("tables of the application", err)
}

// CheckSteps says what the database thinks of the statements of a set, before a turn
// finds out.
func (s *Store) CheckSteps(ctx context.Context, set *steps.Set) error {
	if len(set.Procedures()) > 0 {
		return problem.New(problem.Invalid, "config.type", "steps.plsql lists procedures, and the embedded store has none").
			WithHint("use call: sql, or an Oracle database")
	}
	for _, st := range set.Statements() {
		if len(st.Out) > 0 {
			return problem.New(problem.Invalid, "step.statement", "statement %s in %s has RETURNING ... INTO, which the embedded store has not", st.Name, st.File).
				WithHint("write returning COLUMN as NAME, which gives rows")
		}
		err := s.Write(ctx, func(t sqlite.Tx) error { return t.Conn().CheckFor(ofStep, st.Text) })
		if err == nil {
			continue
		}
		return problem.New(problem.Invalid, "step.statement", "statement %s in %s cannot be prepared: %v", st.Name, st.File, cause(err)).
			WithHint("its tables are in the engine's database file; steps.tables names a script that makes them")
	}
	return nil
}

// CheckStep looks at a step of a document that is published: see
// definition.Catalogue.CheckSteps.
func CheckStep(set *steps.Set) definition.StepCheck {
	return func(_ context.Context, step definition.Step) (wrong, _ []problem.Place, err error) {
		if strings.HasPrefix(step.Target, steps.KindPLSQL+"/") {
			return []problem.Place{{Pointer: "/procedure", Code: "step.refused", Detail: "the embedded store has no procedures", Hint: "use call: sql, or an Oracle database"}}, nil, nil
		}
		return set.Check(steps.Use(step)), nil, nil
	}
}

// cause is what SQLite itself has said.
func cause(err error) error {
	for {
		var p *problem.Error
		if errors.As(err, &p) && p.Code == "step.refused" {
			return errors.New(p.Detail)
		}
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// stepSession is the writer's transaction, as a step sees it.
type stepSession struct{ c *conn.Conn }

// Savepoint implements steps.Session. A savepoint of the same name hides the one
// before, which is let go with it.
func (s stepSession) Savepoint() error { return s.c.Script("savepoint step") }

// RollBack implements steps.Session.
func (s stepSession) RollBack() error { return s.c.Script("rollback to step; release step") }

// Over implements steps.Session: an error may have taken the transaction with it.
func (s stepSession) Over() bool { return !s.c.InTransaction() }

// Run implements steps.Tx. After the end of the transaction each statement would be
// one of its own, which nothing takes back.
func (s stepSession) Run(ctx context.Context, text string, args map[string]any) (steps.Answer, error) {
	if s.Over() {
		return steps.Answer{}, &steps.Failure{Title: "Transaction over", Detail: "an error before this statement has ended the transaction"}
	}
	for name, v := range args {
		if n, large := v.(json.Number); large {
			return steps.Answer{}, steps.TooManyBits(name, n)
		}
	}
	answer := steps.Answer{Rows: []map[string]any{}}
	var err error
	answer.Affected, err = s.c.RunFor(ctx, ofStep, text, args, func(columns []string, row []driver.Value) error {
		if len(answer.Rows) == steps.MaxRows {
			return steps.TooManyRows()
		}
		fields := make(map[string]any, len(columns))
		for i, name := range columns {
			v := row[i]
			if f, ok := v.(float64); ok && (math.IsInf(f, 0) || math.IsNaN(f)) {
				v = nil // which JSON does not know
			}
			fields[name] = v
		}
		answer.Rows = append(answer.Rows, fields)
		return nil
	})
	return answer, err
}

// Call implements steps.Session.
func (s stepSession) Call(context.Context, string, map[string]any, []string) (map[string]any, error) {
	return nil, &steps.Failure{Type: "configuration", Status: 400, Title: "No procedures", Detail: "the embedded store has no procedures; use call: sql"}
}

// Failure implements steps.Session. Errors of the disk and of memory are the engine's.
func (s stepSession) Failure(err error) *steps.Failure {
	var p *problem.Error
	if errors.As(err, &p) && p.Code == "step.refused" {
		return &steps.Failure{Title: "Statement refused", Detail: p.Detail}
	}
	name, text, ours := conn.Meaning(err)
	if ours {
		return nil
	}
	return &steps.Failure{Title: name, Detail: text}
}
