// Package steps is what documents may have done in the transactions of turns: SQL
// statements and procedures that the operator has listed, and Go functions of the
// program that embeds a node.
//
// A document names a step and gives it arguments. It never gives text: statements stand
// in files of the operator's, arguments are bound. A step runs behind a savepoint in the
// transaction that commits the turn, so what it has written and what the instance
// remembers are there together, or neither is. What it fails with is an error of its
// task, which a document may catch.
//
// A step holds locks of the database, and has a time limit: what takes long is work
// for a function or a worker, outside.
package steps

import (
	"bytes"
	"context"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/aqueduct-engine/aqueduct/nearest"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// Kinds of steps: a command has the target KIND/NAME.
const (
	KindSQL   = "sql"
	KindPLSQL = "plsql"
	KindGo    = "go"
)

// Limits and their defaults.
const (
	DefaultLimit = 2 * time.Second // of one step
	MaxRows      = 1_000           // of one answer
	MaxBytes     = 1 << 20         // of an answer, as JSON
)

// Set is what a node lets documents do. It is filled before it is used.
type Set struct {
	Limit      time.Duration // of one step; 0 = DefaultLimit
	statements map[string]Statement
	functions  map[string]Func
	procedures []string // PACKAGE.PROCEDURE, with * for any at the end
}

// Func is a step of the program that embeds a node. It may be called again when its
// transaction is made again, and does nothing outside of tx that is not to be done
// twice; it calls no method of the node, whose commits may wait for it. Its result is
// written as JSON, and an error, a [*Failure] or any other, is that of its task.
type Func func(ctx context.Context, tx Tx, args json.RawMessage) (any, error)

// Tx is the transaction of a turn.
type Tx interface {
	// Run runs a statement that selects, inserts, updates, deletes or merges, with its
	// parameters :name by their names.
	Run(ctx context.Context, text string, args map[string]any) (Answer, error)
}

// Answer is what a statement has come to, and the output of a call of sql.
type Answer struct {
	Rows     []map[string]any `json:"rows"`     // by the names of columns
	Affected int64            `json:"affected"` // rows that were inserted, updated or deleted
}

// Session is a transaction, as a store has it.
type Session interface {
	Tx
	// Call calls a procedure and gives its out-parameters.
	Call(ctx context.Context, procedure string, args map[string]any, out []string) (map[string]any, error)
	Savepoint() error
	RollBack() error // to the savepoint
	// Over says that the database has ended the transaction by itself.
	Over() bool
	// Failure is what an error of the database is to the task that ran into it; nil:
	// the turn cannot go on with it.
	Failure(err error) *Failure
}

// Failure is the error of a step, as its task raises it.
type Failure struct {
	Type   string // one of the language's kinds, such as runtime, or a URI; "" = runtime
	Status int    // 0 = 500
	Title  string
	Detail string
}

func (f *Failure) Error() string { return strings.TrimPrefix(f.Title+": "+f.Detail, ": ") }

// errorBase is that of the standard errors' types.
const errorBase = "https://open-workflow-specification.org/spec/1.0.0/errors/"

// Raised is the error that the task raises.
func (f *Failure) Raised() *snapshot.Error {
	e := &snapshot.Error{Type: f.Type, Status: f.Status, Title: f.Title, Detail: f.Detail}
	if e.Type == "" {
		e.Type = "runtime"
	}
	if !strings.Contains(e.Type, ":") {
		e.Type = errorBase + e.Type
	}
	if e.Status == 0 {
		e.Status = 500
	}
	return e
}

// Register makes f the step that call: go names. A name that is empty or taken is a
// bug of the program: it panics.
func (s *Set) Register(name string, f Func) {
	if name == "" || f == nil || s.functions[name] != nil {
		panic(fmt.Sprintf("steps: register %q: the name is empty or taken, or the function is nil", name))
	}
	if s.functions == nil {
		s.functions = map[string]Func{}
	}
	s.functions[name] = f
}

// Allow lets documents call procedures: PACKAGE.PROCEDURE, OWNER.PACKAGE.PROCEDURE or
// PROCEDURE, where the last may be *.
func (s *Set) Allow(patterns ...string) error {
	for _, p := range patterns {
		if name := strings.TrimSuffix(p, ".*"); !isProcedure(name) {
			return problem.New(problem.Invalid, "config.type", "%q names no procedures", p).
				WithHint("write PACKAGE.PROCEDURE, or PACKAGE.* for all of a package")
		}
		s.procedures = append(s.procedures, strings.ToUpper(p))
	}
	return nil
}

// Statements are those that call: sql may name, by name.
func (s *Set) Statements() []Statement {
	var list []Statement
	for _, name := range slices.Sorted(maps.Keys(s.statements)) {
		list = append(list, s.statements[name])
	}
	return list
}

// Procedures are the patterns of what call: plsql may name.
func (s *Set) Procedures() []string { return s.procedures }

// Find is a problem when no step of a target is listed on this node.
func (s *Set) Find(target string) error {
	_, err := s.find(target)
	return err
}

// doing runs one step.
type doing func(ctx context.Context, tx Session, in request) (any, error)

func (s *Set) find(target string) (doing, error) {
	kind, name, _ := strings.Cut(target, "/")
	switch kind {
	case KindSQL:
		st, ok := s.statements[name]
		if !ok {
			return nil, s.unknown(target)
		}
		return st.run, nil
	case KindGo:
		f, ok := s.functions[name]
		if !ok {
			return nil, s.unknown(target)
		}
		return func(ctx context.Context, tx Session, in request) (any, error) { return recovered(ctx, f, tx, in) }, nil
	case KindPLSQL:
		for _, p := range s.procedures {
			if allows(p, name) {
				return func(ctx context.Context, tx Session, in request) (any, error) {
					args, err := in.values()
					if err != nil {
						return nil, err
					}
					return tx.Call(ctx, name, args, in.Out)
				}, nil
			}
		}
	}
	return nil, s.unknown(target)
}

// allows reports whether a pattern is that of a procedure. PACKAGE.* says nothing of the
// packages of an owner of that name.
func allows(pattern, procedure string) bool {
	of, all := strings.CutSuffix(pattern, "*")
	name, within := strings.CutPrefix(procedure, of)
	return pattern == procedure || all && within && !strings.Contains(name, ".")
}

func (s *Set) unknown(target string) error {
	what, names, hint := s.listed(target)
	_, name, _ := strings.Cut(target, "/")
	e := problem.New(problem.NotFound, codeUnknown, "no %s %s is listed on this node", what, name).WithHint("%s", hint)
	if near, ok := nearest.Name(name, names); ok {
		e = e.WithHint("did you mean %s? Else: %s", near, hint)
	}
	return e
}

// recovered calls a function and writes its result, whose own code may panic, too.
func recovered(ctx context.Context, f Func, tx Session, in request) (value any, err error) {
	defer func() {
		if v := recover(); v != nil {
			value, err = nil, &Failure{Title: "Function panicked", Detail: fmt.Sprint(v)}
		}
	}()
	if len(in.Args) == 0 {
		in.Args = jsontext.Value("{}")
	}
	if value, err = f(ctx, program{tx}, json.RawMessage(in.Args)); err != nil {
		return nil, err
	}
	return encoded(value)
}

// program is a transaction for a Go function, whose statements are held to what those of
// files are: one that ends the transaction would end the turn with it.
type program struct{ to Tx }

func (p program) Run(ctx context.Context, text string, args map[string]any) (Answer, error) {
	st, wrong, hint := parse(text)
	if wrong == "" {
		wrong = st.fits(slices.Collect(maps.Keys(args)))
	}
	if wrong != "" {
		return Answer{}, &Failure{Title: "Statement refused", Detail: strings.TrimSuffix(wrong+": "+hint, ": ")}
	}
	values := make(map[string]any, len(args))
	for name, v := range args {
		value, err := driver.DefaultParameterConverter.ConvertValue(v)
		if err != nil {
			return Answer{}, invalid("parameter " + name + ": " + err.Error())
		}
		values[name] = value
	}
	return p.to.Run(ctx, st.Text, st.with(values))
}

// request is what a document asks a step for.
type request struct {
	Args jsontext.Value `json:"args"`
	Out  []string       `json:"out"`
}

// values are the arguments as they are bound, by name.
func (r request) values() (map[string]any, error) {
	fields := map[string]jsontext.Value{}
	if len(r.Args) > 0 {
		if err := jsonv2.Unmarshal(r.Args, &fields); err != nil {
			return nil, invalid("the arguments are no object: " + err.Error())
		}
	}
	values := make(map[string]any, len(fields))
	for name, raw := range fields {
		v, err := valueOf(raw)
		if err != nil {
			return nil, invalid("argument " + name + ": " + err.Error())
		}
		values[name] = v
	}
	return values, nil
}

func invalid(detail string) *Failure {
	return &Failure{Type: "validation", Status: 400, Title: "Invalid arguments", Detail: detail}
}

// maxDigits is how many digits a whole number may have: those of a NUMBER of Oracle.
const maxDigits = 38

// TooManyBits is the failure of an argument that is a whole number of more than 64 bits, for a
// database that would round it.
func TooManyBits(name string, n json.Number) *Failure {
	return invalid("argument " + name + ": " + n.String() + " has more than 64 bits, and this database would round it; give it as a text")
}

// valueOf is a JSON value as it is bound: an object or an array as its text, a whole number
// exactly, one of more than 64 bits as a json.Number.
func valueOf(raw jsontext.Value) (any, error) {
	switch raw.Kind() {
	case 'n':
		return nil, nil
	case 't', 'f':
		return raw.Kind() == 't', nil
	case '"':
		var s string
		err := jsonv2.Unmarshal(raw, &s)
		return s, err
	case '0':
		if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
			return n, nil
		}
		if digits := strings.TrimPrefix(string(raw), "-"); !strings.ContainsAny(digits, ".eE") {
			if len(digits) > maxDigits {
				return nil, fmt.Errorf("a whole number of %d digits; at most %d", len(digits), maxDigits)
			}
			return json.Number(raw), nil
		}
		return strconv.ParseFloat(string(raw), 64)
	}
	return string(raw), nil
}

// Perform does the step that a target names in a transaction: see store.Perform.
func (s *Set) Perform(session Session, target string, input json.RawMessage) (json.RawMessage, *snapshot.Error, error) {
	do, err := s.find(target)
	if err != nil {
		return nil, nil, err
	}
	var in request
	if err := jsonv2.Unmarshal(input, &in); err != nil {
		return nil, invalid(err.Error()).Raised(), nil
	}
	limit := s.Limit
	if limit == 0 {
		limit = DefaultLimit
	}
	if err := session.Savepoint(); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	value, err := do(ctx, session, in)
	output, written := value.(json.RawMessage)
	if err == nil && !written {
		output, err = encoded(value)
	}
	over := session.Over() // a function may have passed over the error that ended it
	switch {
	case err == nil && !over:
		return output, nil, nil
	case err == nil:
		err = &Failure{Title: "Transaction over", Detail: "the step went on after an error by which the database had ended the transaction"}
	}
	var f *Failure
	if !errors.As(err, &f) {
		f = session.Failure(err)
	}
	if f != nil && ctx.Err() != nil {
		f = &Failure{Type: "timeout", Status: 408, Title: "Timeout", Detail: fmt.Sprintf(
			"%s was not done in %s: it holds locks of the database for so long; do such work in a function or a worker, outside of the transaction", target, limit)}
	}
	switch {
	case f == nil:
		return nil, nil, err
	case over:
		return nil, f.Raised(), fmt.Errorf("step %s: the transaction is over: %w", target, err)
	}
	if err := session.RollBack(); err != nil {
		return nil, nil, err
	}
	return nil, f.Raised(), nil
}

func encoded(value any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, &Failure{Title: "Result is no JSON", Detail: err.Error()}
	}
	if b.Len() > MaxBytes {
		return nil, &Failure{Title: "Result too large", Detail: fmt.Sprintf("it has more than %d bytes of JSON; return a reference to large data", MaxBytes)}
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// SeveralRows is the failure of a statement whose RETURNING has a place for one row.
func SeveralRows(n int64) *Failure {
	return &Failure{Title: "Several rows", Detail: fmt.Sprintf(
		"the statement has changed %d rows, and RETURNING ... INTO takes one; nothing was done: select them in a step of its own, or call a procedure", n)}
}

// TooManyRows is the failure of a statement that gives more than [MaxRows].
func TooManyRows() *Failure {
	return &Failure{Title: "Result too large", Detail: fmt.Sprintf("the statement gives more than %d rows", MaxRows)}
}
