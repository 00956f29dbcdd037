package oracle

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/problem"
)

// No statement waits for a row that a stranger has locked, such as a person who has
// not committed: an update would, for as long as it takes, and with it its session and
// its worker. So each update and each delete is written behind a select of the same rows
// for update nowait, in the same block: blockOf does it, from the text of the statement.
// What sweeps takes the rows that are free and leaves the others for its next time.

// joint are statements whose rows one select takes together, for a change writes both.
var joint = map[string]string{"state_update": "state_lock", "instance_update": "state_lock", "policy_guard": "state_lock"}

var changing = regexp.MustCompile(`^(?:update|delete from) (WF_\w+(?: [A-Z])?)\s`)

// changedRows are the rows that an update or a delete changes, as from and where of a select.
func changedRows(text string) string {
	m := changing.FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	depth := 0
	for i := range text {
		switch {
		case text[i] == '(':
			depth++
		case text[i] == ')':
			depth--
		case depth == 0 && strings.HasPrefix(text[i:], "where "):
			return "from " + m[1] + "\n" + text[i:]
		}
	}
	return "from " + m[1]
}

// lockOf takes the rows that a statement changes, or fails at once.
func lockOf(text string) string {
	rows := changedRows(text)
	if rows == "" {
		return ""
	}
	return "select 1\n" + rows + "\nfor update nowait"
}

// sweepOf is a block that deletes what a statement would, but for what others have
// locked: row by row, with the statement by, whose binds are the names of its columns.
func sweepOf(name, by string) string {
	del := statements[by]
	return "FOR L IN (select " + strings.Join(del.binds, ", ") + "\n" + changedRows(text(name)) + "\nfor update skip locked) LOOP\n" +
		eachBind(del.text, func(bind string) string { return "L." + bind }) + ";\n"
}

// sweep deletes what a statement would, but for what others have locked, in a commit of
// its own.
func sweep(ctx context.Context, db querier, name, by string, args ...any) (int64, error) {
	var n int64
	bind := 0
	block := "DECLARE\nSWEPT NUMBER := 0;\nBEGIN\n" + eachBind(sweepOf(name, by), func(string) string {
		bind++
		return fmt.Sprintf(":%d", bind)
	}) + "SWEPT := SWEPT + SQL%ROWCOUNT;\nEND LOOP;\n" + fmt.Sprintf(":%d := SWEPT;\nEND;", bind+1)
	_, err := db.ExecContext(ctx, block, append(args, sql.Out{Dest: &n})...)
	return n, err
}

// exec executes a statement that commits by itself.
func (s *Store) exec(ctx context.Context, name string, args ...any) (int64, error) {
	if statements[name].lock == "" {
		res, err := s.db.ExecContext(ctx, text(name), args...)
		if err != nil {
			return 0, err
		}
		return res.RowsAffected()
	}
	var n int64
	block, all, err := blockOf([]op{{name: name, args: args, count: &n}})
	if err == nil {
		_, err = s.db.ExecContext(ctx, block, all...)
	}
	return n, err
}

var (
	atLine     = regexp.MustCompile(`ORA-06512: at line (\d+)`)
	tableNames = regexp.MustCompile(`WF_\w+`)
)

// lockedIn is the problem of a block that has met a lock, with the tables of the
// statement that did: the database says the line only.
func lockedIn(block string, err error) error {
	whose := "rows"
	if m := atLine.FindStringSubmatch(err.Error()); m != nil {
		line, _ := strconv.Atoi(m[1])
		lines := strings.SplitAfter(block, "\n")
		statement, _, _ := strings.Cut(strings.Join(lines[min(max(line-1, 0), len(lines)):], ""), ";")
		if found := tableNames.FindAllString(statement, -1); len(found) > 0 {
			whose = "rows of " + strings.Join(found, " or ")
		}
	}
	return problem.Wrap(err, problem.Unavailable, "store.locked", "another session has %s locked that are to be written", whose).
		WithHint("nothing was written, messages come again later; V$LOCKED_OBJECT and DBA_BLOCKERS show a session that does not commit")
}

// isLocked says that somebody else has the rows.
func isLocked(err error) bool { return aq.Classify(err) == aq.Locked }

// passingOver does something for all of a list at once, or, where somebody has rows of
// one locked or one is not over any more, for each by itself. It returns those that it
// has passed over.
func passingOver[T any](list []T, do func(list []T) error) (passed []T, err error) {
	if err = do(list); err == nil || !isLocked(err) && !errors.Is(err, errNotOver) {
		return nil, err
	}
	if len(list) == 1 {
		return list, nil
	}
	for i := range list {
		more, err := passingOver(list[i:i+1], do)
		if err != nil {
			return passed, err
		}
		passed = append(passed, more...)
	}
	return passed, nil
}
