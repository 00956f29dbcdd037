package oracle

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/godror/godror"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/sql/steps"
	"github.com/aqueduct-engine/aqueduct/store"
)

// inside is work that is made in the transaction that writes it: a change with steps of
// the application. It is written the slow way, in calls of its own.
func (s planner) inside(c *store.Change, d *delivery) *work {
	w := &work{apart: true, careful: true}
	if c.Snapshot != nil {
		w.module, w.action = c.Snapshot.Definition.Name, s.doing(c)
	}
	w.made = func(ctx context.Context, session *aq.Session) (*work, error) {
		if err := holds(ctx, session, c); err != nil {
			return nil, err
		}
		whole, err := c.Inside(func(target string, input json.RawMessage) (json.RawMessage, *snapshot.Error, error) {
			return s.o.Steps.Perform(stepSession{session, s.guarded}, target, input)
		})
		if err != nil {
			return nil, err
		}
		return s.plan(ctx, &whole, d)
	}
	return w
}

// holds locks what every turn writes, and refuses a change of another version before
// anything is done for it.
func holds(ctx context.Context, session *aq.Session, c *store.Change) error {
	if c.Snapshot == nil || c.Base() == 0 {
		return nil
	}
	var version int64
	err := session.QueryRowContext(ctx, text("inside_lock"), c.Snapshot.InstanceID).Scan(&version)
	if errors.Is(err, sql.ErrNoRows) || err == nil && version != c.Base() {
		return fmt.Errorf("%s is not at version %d: %w", c.Snapshot.InstanceID, c.Base(), store.ErrStale)
	}
	return explain(err)
}

// executeInside makes work and writes it. With keep, what it has done is taken back when
// it is refused, the steps included, and what was dequeued before stays; without, the
// end of the transaction takes it back.
func executeInside(ctx context.Context, session *aq.Session, w *work, keep bool) error {
	if err := session.Begin(ctx); err != nil {
		return err
	}
	if keep {
		if _, err := session.ExecContext(ctx, text("inside_savepoint")); err != nil {
			return explain(err)
		}
	}
	whole, err := w.made(ctx, session)
	if err == nil {
		whole.apart, whole.careful = true, false
		err = execute(ctx, session, whole, false)
	}
	if err == nil || !keep {
		return err
	}
	if session.Lost(err) {
		return fmt.Errorf("%w: %w", store.ErrLost, err)
	}
	if _, errBack := session.ExecContext(ctx, text("inside_rollback")); errBack != nil {
		return fmt.Errorf("%w: %w", store.ErrLost, explain(errBack))
	}
	return err
}

// stepSession is the transaction of a change, as a step sees it.
type stepSession struct {
	*aq.Session
	guarded bool // the database keeps procedures from committing
}

// Savepoint implements steps.Session.
func (s stepSession) Savepoint() error {
	_, err := s.ExecContext(context.Background(), text("step_savepoint"))
	return explain(err)
}

// RollBack implements steps.Session.
func (s stepSession) RollBack() error {
	_, err := s.ExecContext(context.Background(), text("step_rollback"))
	if aq.Classify(err) == aq.Broken { // by what was to break the step off, and came late
		_, err = s.ExecContext(context.Background(), text("step_rollback"))
	}
	return explain(err)
}

// Run implements steps.Tx.
func (s stepSession) Run(ctx context.Context, query string, args map[string]any) (steps.Answer, error) {
	answer := steps.Answer{Rows: []map[string]any{}}
	bound := make([]any, 0, len(args))
	set := map[string]*string{} // by RETURNING
	for name, v := range args {
		if _, out := v.(steps.Out); out {
			set[name] = new(string)
			bound = append(bound, sql.Named(name, sql.Out{Dest: set[name]}))
			continue
		}
		bound = append(bound, sql.Named(name, bindable(v)))
	}
	err := aq.Within(ctx, s.Session, func() error {
		if !steps.Asks(query) {
			r, err := s.ExecContext(ctx, query, bound...)
			if err == nil {
				answer.Affected, err = r.RowsAffected()
			}
			if err == nil && len(set) > 0 {
				answer.Rows, err = returned(set, answer.Affected)
			}
			return err
		}
		found, err := s.QueryContext(ctx, query, bound...)
		if err != nil {
			return err
		}
		defer found.Close()
		answer.Rows, err = rowsOf(found)
		return err
	})
	return answer, late(ctx, err)
}

// returned is the row that RETURNING has set, as texts; of no row there is none.
func returned(set map[string]*string, affected int64) ([]map[string]any, error) {
	switch {
	case affected == 0:
		return []map[string]any{}, nil
	case affected > 1:
		return nil, steps.SeveralRows(affected)
	}
	return []map[string]any{given(set)}, nil
}

// given is what came out, by name; an empty text is null.
func given(set map[string]*string) map[string]any {
	all := make(map[string]any, len(set))
	for name, v := range set {
		all[name] = nil
		if *v != "" {
			all[name] = *v
		}
	}
	return all
}

// late tells what was broken off because its time was over from what somebody else has
// broken off.
func late(ctx context.Context, err error) error {
	if ctx.Err() != nil && aq.Classify(err) == aq.Broken {
		return &steps.Failure{Title: "Timeout", Detail: err.Error()}
	}
	return err
}

// rowsOf are rows by the names of their columns.
func rowsOf(found *sql.Rows) ([]map[string]any, error) {
	columns, err := found.Columns()
	if err != nil {
		return nil, err
	}
	all := []map[string]any{}
	row, to := make([]any, len(columns)), make([]any, len(columns))
	for i := range row {
		to[i] = &row[i]
	}
	for found.Next() {
		if len(all) == steps.MaxRows {
			return nil, steps.TooManyRows()
		}
		if err := found.Scan(to...); err != nil {
			return nil, err
		}
		fields := make(map[string]any, len(columns))
		for i, name := range columns {
			fields[name] = shown(row[i])
		}
		all = append(all, fields)
	}
	return all, found.Err()
}

// shown is a value as JSON has it.
func shown(v any) any {
	if n, ok := v.(godror.Number); ok {
		return json.Number(n.String())
	}
	return v
}

// bindable is a value as every release takes it: SQL has no booleans before 23ai.
func bindable(v any) any {
	switch v := v.(type) {
	case nil:
		return "" // null
	case bool:
		if v {
			return int64(1)
		}
		return int64(0)
	case json.Number:
		return godror.Number(v)
	}
	return v
}

// Over implements steps.Session: an error undoes its statement alone, and the loss of
// the session is an error of all that follows.
func (s stepSession) Over() bool { return false }

// Failure implements steps.Session. What another attempt may mend, and what ails the
// database or the session, is no error of the task: the turn is made again.
func (s stepSession) Failure(err error) *steps.Failure {
	codes := aq.Codes(err)
	var p *problem.Error
	if errors.As(err, &p) {
		return nil
	}
	switch aq.Classify(err) {
	case aq.Retry, aq.Locked, aq.Broken, aq.Reconnect, aq.Paused:
		return nil
	}
	f := &steps.Failure{Title: "Step failed", Detail: err.Error()}
	if len(codes) > 0 {
		f.Title = fmt.Sprintf("ORA-%05d", codes[0])
		f.Detail = detailOf(err)
	}
	return f
}

// detailOf is what the database says, without the lines that only say where.
func detailOf(err error) string {
	detail := err.Error()
	var e *godror.OraErr
	if errors.As(err, &e) {
		detail = e.Message()
	}
	detail, _, _ = strings.Cut(detail, "\nORA-06512")
	if code, text, ok := strings.Cut(detail, ": "); ok && strings.HasPrefix(code, "ORA-") {
		detail = text
	}
	return strings.TrimSpace(detail)
}

// engineTable is a name that a statement of the application has no business with.
func engineTable(query string) string {
	for _, word := range strings.FieldsFunc(strings.ToUpper(query), func(r rune) bool {
		return r != '_' && r != '$' && r != '#' && (r < '0' || r > '9') && (r < 'A' || r > 'Z')
	}) {
		if strings.HasPrefix(word, "WF_") || strings.HasPrefix(word, "AQ$") {
			return word
		}
	}
	return ""
}

// CheckSteps refuses statements that name what is the engine's, and RETURNING without
// INTO. Whether the database takes them is found out by their first call.
func CheckSteps(set *steps.Set) error {
	for _, st := range set.Statements() {
		if name := engineTable(st.Text); name != "" {
			return problem.New(problem.Invalid, "step.statement", "statement %s in %s names %s, which is the engine's", st.Name, st.File, name).
				WithHint("read what it shows by a view of the application's own")
		}
		if st.Gives && len(st.Out) == 0 {
			return problem.New(problem.Invalid, "step.statement", "statement %s in %s has RETURNING without INTO", st.Name, st.File).
				WithHint("write returning COLUMN into :name, whose value is in the output's row")
		}
	}
	return nil
}
