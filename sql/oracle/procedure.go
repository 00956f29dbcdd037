package oracle

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/problem"
)

// A procedure that commits would end the turn in its middle: the message gone, half of
// the instance written. The database is told to refuse that, around each call only, for
// the turn's own commit may stand in a block. Where it has not shown that it does, no
// procedure is called.
const (
	guardOn    = "alter session disable commit in procedure"
	guardOff   = "alter session enable commit in procedure"
	guardProbe = "begin DBMS_TRANSACTION.COMMIT; end;" // a stored procedure that everybody may call
	codeGuard  = 34                                    // cannot COMMIT in current PL/SQL session
)

// confirmed has the database show that it keeps a procedure from committing.
func confirmed(ctx context.Context, s *Store) (bool, error) {
	session, err := s.pool.take(ctx)
	if err != nil {
		return false, explain(err)
	}
	defer s.pool.giveBack(session)
	if err := s.pool.begin(ctx, session); err != nil {
		return false, explain(err)
	}
	if _, err := session.ExecContext(ctx, guardOn); err != nil {
		aq.Spoil(session)
		return false, nil //nolint:nilerr // it does not know the guard
	}
	_, err = session.ExecContext(ctx, guardProbe)
	if _, off := session.ExecContext(ctx, guardOff); off != nil {
		aq.Spoil(session)
		return false, explain(off)
	}
	return slices.Contains(aq.Codes(err), codeGuard), nil
}

// Call implements steps.Session. Names have been checked: they are identifiers.
func (s stepSession) Call(ctx context.Context, procedure string, args map[string]any, out []string) (map[string]any, error) {
	if !s.guarded {
		return nil, problem.New(problem.Denied, "step.refused", "%s is not called: this database has not shown that it keeps a procedure from committing", procedure).
			WithHint("see docs/steps.md; call: sql needs no guard")
	}
	taken := map[string]*string{}
	var formals []string
	var binds []any
	bind := func(name string, v any) {
		formals = append(formals, strings.ToUpper(name)+" => :"+strconv.Itoa(len(binds)+1))
		binds = append(binds, v)
	}
	for _, name := range out {
		to := new(string)
		given, both := args[name]
		if both {
			*to = fmt.Sprint(bindable(given))
		}
		taken[name] = to
		bind(name, sql.Out{Dest: to, In: both})
	}
	for _, name := range slices.Sorted(maps.Keys(args)) {
		if taken[name] == nil {
			bind(name, bindable(args[name]))
		}
	}
	block := "BEGIN " + procedure + "(" + strings.Join(formals, ", ") + "); END;"
	if len(formals) == 0 {
		block = "BEGIN " + procedure + "; END;"
	}
	if _, err := s.ExecContext(ctx, guardOn); err != nil {
		return nil, problem.Wrap(err, problem.Unavailable, "store.busy", "the session does not take its guard")
	}
	err := aq.Within(ctx, s.Session, func() error {
		_, err := s.ExecContext(ctx, block, binds...)
		return err
	})
	_, off := s.ExecContext(ctx, guardOff)
	if aq.Classify(off) == aq.Broken { // by what was to break the call off, and came late
		_, off = s.ExecContext(ctx, guardOff)
	}
	if off != nil { // its commits would be refused
		aq.Spoil(s.Session)
		return nil, problem.Wrap(off, problem.Unavailable, "store.busy", "the session is not rid of its guard")
	}
	if err != nil {
		return nil, late(ctx, err)
	}
	return given(taken), nil
}
