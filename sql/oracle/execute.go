package oracle

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/store"
)

// A change that meets rows locked by another session is written again, so often and
// after pauses that double: it waits for no lock in the database, where it would keep a
// session and a worker for as long as somebody forgets to commit.
const (
	lockTries = 4
	lockPause = 10 * time.Millisecond
)

// op is one statement of a change.
type op struct {
	name   string // of the statement
	args   []any
	refuse error  // when it changes no row; nil = that is no matter
	count  *int64 // of the rows that it changes

	block string // PL/SQL in the place of a statement
	code  *int64 // in which it says what it has passed over
}

// work is what a change writes, in this order: rows, then messages.
type work struct {
	ops     []op
	sends   []batch
	careful bool // all of it can be taken back, messages included: more round trips

	// made, unless nil, makes what is to be written, in its transaction.
	made func(ctx context.Context, session *aq.Session) (*work, error)

	apart          bool   // not in one block
	module, action string // what the session works at, for who watches it
}

// batch is what a change sends to one queue.
type batch struct {
	queue aq.Queue
	list  []aq.Send
}

func (w *work) add(refuse error, name string, args ...any) {
	w.ops = append(w.ops, op{name: name, args: args, refuse: refuse})
}

// watched is a context under which the session says what it works at.
func (w *work) watched(ctx context.Context) context.Context {
	if w.module == "" {
		return ctx
	}
	return aq.Doing(ctx, w.module, w.action)
}

// execute writes work on a session's transaction. With keep, what was dequeued
// on it before stays so when the work is refused.
func execute(ctx context.Context, session *aq.Session, w *work, keep bool) error {
	ctx = w.watched(context.WithoutCancel(ctx))
	if w.made != nil {
		return executeInside(ctx, session, w, keep)
	}
	if err := session.Begin(ctx); err != nil {
		return err
	}
	parts := blocks(w.ops)
	mark := keep && (w.careful || len(parts) > 1)
	if mark {
		if _, err := session.ExecContext(ctx, text("savepoint")); err != nil {
			return explain(err)
		}
	}
	// One block costs one round trip, and the database itself undoes all of its
	// statements when one fails.
	for _, part := range parts {
		if err := block(ctx, session, part); err != nil {
			return rollBack(ctx, session, mark, err)
		}
	}
	for i := range w.sends {
		err := explain(session.Enqueue(ctx, w.sends[i].queue, w.sends[i].list))
		if err == nil {
			continue
		}
		if keep && !mark { // the rows are written: only the end of the transaction takes them back
			return fmt.Errorf("%w: %w", store.ErrLost, err)
		}
		return rollBack(ctx, session, mark, err)
	}
	return nil
}

// rollBack takes back what the refused work has written before, when there is a
// mark to go back to.
func rollBack(ctx context.Context, session *aq.Session, mark bool, err error) error {
	if !mark {
		return err
	}
	if session.Lost(err) {
		return fmt.Errorf("%w: %w", store.ErrLost, err)
	}
	if _, failed := session.ExecContext(ctx, text("rollback_to")); failed != nil {
		return fmt.Errorf("%w: %w", store.ErrLost, explain(failed))
	}
	return err
}

// blocks cuts work into parts that one block holds.
func blocks(ops []op) [][]op {
	if len(ops) == 0 {
		return nil
	}
	var parts [][]op
	start, binds := 0, 0
	for i := range ops {
		if i > start && (i-start == blockMax || binds+len(ops[i].args) > bindsMax) {
			parts = append(parts, ops[start:i])
			start, binds = i, 0
		}
		binds += len(ops[i].args)
	}
	return append(parts, ops[start:])
}

// refused is what an error of a statement means for its change.
func refused(o *op, err error) error {
	switch {
	case err == o.refuse: //nolint:errorlint // it is the very value
		return err
	case aq.Classify(err) == aq.Duplicate:
		return fmt.Errorf("%s: %w", o.name, store.ErrDuplicate)
	}
	return fmt.Errorf("%s: %w", o.name, explain(err))
}

// run executes a statement by itself: one that waits for nobody's rows.
func (o *op) run(ctx context.Context, tx querier) error {
	if o.block != "" {
		_, err := tx.ExecContext(ctx, o.block+";", o.args...)
		return err
	}
	st, ok := statements[o.name]
	if !ok || len(st.binds) != len(o.args) {
		return problem.New(problem.Internal, "store.statement", "statement %s has %d binds and gets %d values", o.name, len(st.binds), len(o.args))
	}
	res, err := tx.ExecContext(ctx, st.text, o.args...)
	if err != nil || o.refuse == nil {
		return err
	}
	n, err := res.RowsAffected()
	if err == nil && n == 0 {
		return o.refuse
	}
	return err
}

// Limits of a block: the codes that PL/SQL leaves to programs are 20000 to
// 20999, and a block is parsed anew for each of its shapes, so that a short one
// pays more often.
const (
	blockMax  = 64    // statements
	bindsMax  = 100   // values
	blockCode = 20001 // of its first statement
)

// block executes statements in one round trip. An error undoes all of them and
// nothing else.
func block(ctx context.Context, session *aq.Session, ops []op) error {
	if len(ops) == 1 && statements[ops[0].name].lock == "" {
		err := ops[0].run(ctx, session)
		if err != nil {
			return refused(&ops[0], err)
		}
		return nil
	}
	text, args, err := blockOf(ops)
	if err != nil {
		return err
	}
	if _, err = session.ExecContext(ctx, text, args...); err == nil {
		return nil
	}
	return refusedBlock(ops, text, err)
}

// refusedBlock is what an error of a block means for its change.
func refusedBlock(ops []op, text string, err error) error {
	for _, code := range aq.Codes(err) {
		if i := code - blockCode; i >= 0 && i < len(ops) && ops[i].refuse != nil {
			return ops[i].refuse
		}
	}
	if isLocked(err) {
		err = lockedIn(text, err)
	}
	name := "block"
	if len(ops) == 1 {
		name = ops[0].name
	}
	return refused(&op{name: name}, err)
}

// blockOf writes statements as one anonymous block. Each that changes rows follows a
// select that takes them or fails.
func blockOf(ops []op) (string, []any, error) {
	b := blockWriter{taken: map[string]bool{}}
	b.WriteString("BEGIN\n")
	for i := range ops {
		if err := b.statement(&ops[i], i); err != nil {
			return "", nil, err
		}
	}
	b.WriteString("END;")
	return b.String(), b.args, nil
}

type blockWriter struct {
	strings.Builder
	args  []any
	taken map[string]bool // rows that the block has locked
}

func (b *blockWriter) statement(o *op, i int) error {
	st, ok := statements[o.name]
	if o.block != "" {
		st, ok = statement{text: o.block, binds: bindsOf(o.block)}, true
	}
	if !ok || len(st.binds) != len(o.args) {
		return problem.New(problem.Internal, "store.statement", "statement %s has %d binds and gets %d values", o.name, len(st.binds), len(o.args))
	}
	numbers := map[string]string{}
	bind := func(name string) string { // PL/SQL has one bind for one name, in the order of their first places
		if numbers[name] == "" {
			b.args = append(b.args, o.args[slices.Index(st.binds, name)])
			numbers[name] = ":" + strconv.Itoa(len(b.args))
		}
		return numbers[name]
	}
	if st.lock != "" && !b.taken[o.rows(&st)] {
		b.taken[o.rows(&st)] = true
		b.WriteString("FOR L IN (" + eachBind(st.lock, bind) + ") LOOP NULL; END LOOP;\n")
	}
	b.WriteString(eachBind(st.text, bind) + ";\n")
	if o.count != nil {
		b.args = append(b.args, sql.Out{Dest: o.count})
		fmt.Fprintf(b, ":%d := SQL%%ROWCOUNT;\n", len(b.args))
	}
	if o.refuse != nil {
		fmt.Fprintf(b, "IF SQL%%ROWCOUNT = 0 THEN RAISE_APPLICATION_ERROR(-%d, '%s'); END IF;\n", blockCode+i, o.name)
	}
	return nil
}

// rows names what the lock of a statement takes.
func (o *op) rows(st *statement) string {
	return eachBind(st.lock, func(name string) string { return fmt.Sprintf("%q", fmt.Sprint(o.args[slices.Index(st.binds, name)])) })
}

// Commit implements store.Writer.
func (s *Store) Commit(ctx context.Context, c store.Change) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.enter(); err != nil {
		return wrap("commit", err)
	}
	defer s.leave()
	w, err := planner{s}.plan(ctx, &c, nil)
	if err != nil {
		return wrap("commit", err)
	}
	err = write(ctx, s, w)
	if err == nil {
		unsent(s.log, w)
	}
	return wrap("commit", err)
}

// write writes a change on a session of its own, or has another write it with theirs.
func write(ctx context.Context, s *Store, w *work) error {
	all := wholeOf(w)
	run := func(session *aq.Session) error { return execute(ctx, session, w, false) }
	if all == nil {
		return change(ctx, s, all, run)
	}
	p := &waiter{work: w, all: all, ended: make(chan error, 1)}
	if err := s.group.join(ctx, s, p); !errors.Is(err, errAlone) {
		return err
	}
	defer func() { <-s.writers }()
	if err := together(ctx, s, p); !errors.Is(err, errAlone) {
		return err
	}
	return attempts(ctx, s, all, run)
}

// change runs a function on the transaction of a session of its own and
// commits it; where all is given, it is the same in one call.
func change(ctx context.Context, s *Store, all *whole, run func(*aq.Session) error) error {
	select {
	case s.writers <- struct{}{}:
		defer func() { <-s.writers }()
	case <-ctx.Done():
		return ctx.Err()
	}
	return attempts(ctx, s, all, run)
}

// attempts makes a change again when the database asks for it.
func attempts(ctx context.Context, s *Store, all *whole, run func(*aq.Session) error) error {
	var err error
	for attempt := range 1 + lockTries {
		if err = changeOnce(ctx, s, all, run); !passing[aq.Classify(err)] || isOver(err) {
			return err
		}
		if attempt < lockTries {
			s.log.Debug("oracle: a change is written again", "attempt", attempt+1, "error", err)
			pause(ctx, aq.Backoff(attempt)/4)
		}
	}
	return err
}

// passing are the classes after which a change is worth a further attempt at once.
var passing = map[aq.Class]bool{aq.Retry: true, aq.Locked: true, aq.Broken: true, aq.Reconnect: true}

// changeOnce is one attempt. Until its commit is asked for, nothing is written,
// and the attempt may be repeated on another session. One whose connection may have
// died while it was idle goes the longer way, which learns so before the commit.
func changeOnce(ctx context.Context, s *Store, all *whole, run func(*aq.Session) error) error {
	session, err := s.pool.take(ctx)
	if err != nil {
		return explain(err)
	}
	defer s.pool.giveBack(session)
	if err := s.pool.begin(ctx, session); err != nil {
		return explain(err)
	}
	if all != nil && session.Fresh() {
		return all.run(ctx, session)
	}
	if err := run(session); err != nil {
		return explain(err)
	}
	return commit(session)
}

// isOver says whether an error is an answer: of the store's own guards, or of
// a commit.
func isOver(err error) bool {
	for _, sentinel := range []error{store.ErrStale, store.ErrLost, store.ErrTaken, store.ErrNotFound, store.ErrDuplicate, store.ErrUnknown} {
		if errors.Is(err, sentinel) {
			return true
		}
	}
	return false
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
