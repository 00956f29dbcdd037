package oracle

import (
	"context"
	"sync"
	"time"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/store"
)

// ledger notes in WF_INFLIGHT which messages this node executes, so that one
// that kills its process is known. A row of another run whose message arrives
// here is a crash: that run cannot hold it any more.
//
// A note is written beside the turn, on another connection, many in one
// statement, and a turn that is over before its turn to be written comes is
// never written. A turn that loads its snapshot waits for its note: only one
// that decides on a cached snapshot may die without, and after a death there
// is no cache.
type ledger struct {
	s    *Store
	wake chan struct{}
	quit chan struct{}
	done sync.WaitGroup

	mu     sync.Mutex
	want   map[string]*entry // by message id; entered and not left
	noted  map[string]bool   // in the table
	others map[string]int    // crashes of other runs

	said   time.Time // when the log heard last that the table cannot be written; of write
	unsaid int       // failures since
}

// ledgerQuiet is how long the log hears nothing more of a table that cannot be written:
// every message tries it.
const ledgerQuiet = time.Minute

// entry is a message that was entered.
type entry struct {
	noted  chan struct{} // closed when it is in the table
	done   bool
	flying bool // to the table
	given  bool // back: whoever works on it now is another
	users  int  // of this node: a lost session may have given it to a second worker
}

func newLedger(s *Store) *ledger {
	l := &ledger{s: s, wake: make(chan struct{}, 1), quit: make(chan struct{}),
		want: map[string]*entry{}, noted: map[string]bool{}, others: map[string]int{}}
	l.done.Go(l.write)
	return l
}

// Enter implements store.Ledger.
func (l *ledger) Enter(d store.Delivery) {
	if d, ok := d.(*delivery); ok {
		d.fence = l.enter(d.m.ID)
	}
}

// Leave implements store.Ledger.
func (l *ledger) Leave(d store.Delivery) {
	if d, ok := d.(*delivery); ok {
		l.leave(d.m.ID)
	}
}

func (l *ledger) enter(id string) <-chan struct{} {
	l.mu.Lock()
	e := l.want[id]
	if e == nil {
		e = &entry{noted: make(chan struct{})}
		l.want[id] = e
	}
	e.users++
	e.given = false
	if l.noted[id] {
		e.close()
	}
	l.mu.Unlock()
	l.poke()
	return e.noted
}

func (l *ledger) leave(id string) {
	l.mu.Lock()
	if e := l.want[id]; e != nil {
		if e.users--; e.users <= 0 {
			delete(l.want, id)
			e.close()
		}
	}
	noted := l.noted[id]
	l.mu.Unlock()
	if noted {
		l.poke()
	}
}

// close lets go who waits for the note; the ledger is locked.
func (e *entry) close() {
	if !e.done {
		e.done = true
		close(e.noted)
	}
}

func (l *ledger) poke() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// crashes is how many runs have died in a message. What the last refresh saw
// may have been a run at work that has given the message back since, so it is
// looked at again; without an answer it counts.
func (l *ledger) crashes(ctx context.Context, id string) int {
	l.mu.Lock()
	n := l.others[id]
	l.mu.Unlock()
	if n == 0 {
		return 0
	}
	var now int
	l.s.noteCalls.Add(1)
	if err := l.s.db.QueryRowContext(ctx, text("inflight_crashes"), id, l.s.run).Scan(&rows.Into{To: &now}); err != nil {
		l.s.log.Warn("oracle: ledger", "message", id, "error", explain(err))
		return n
	}
	return now
}

// erase takes the note away in the transaction that gives the message back:
// whoever gets it then finds none. One that is on its way is waited for, and none
// is written from now on.
func (l *ledger) erase(ctx context.Context, session *aq.Session, id string) error {
	l.mu.Lock()
	noted, e := l.noted[id], l.want[id]
	if e != nil {
		if e.given = true; !e.flying {
			e.close()
		}
	}
	flying := e != nil && e.flying
	l.mu.Unlock()
	if flying {
		late := time.NewTimer(fenceMax)
		defer late.Stop()
		select {
		case <-e.noted:
		case <-late.C:
		}
	}
	if !noted && !flying {
		return nil
	}
	_, err := session.ExecContext(ctx, noteDropped, id, l.s.run)
	return err
}

// erased notes that the note is gone.
func (l *ledger) erased(id string) {
	l.mu.Lock()
	delete(l.noted, id)
	l.mu.Unlock()
}

// refresh learns what other runs have noted.
func (l *ledger) refresh(ctx context.Context) error {
	l.s.noteCalls.Add(1)
	found, err := l.s.db.QueryContext(ctx, text("inflight_others"), l.s.run)
	if err != nil {
		return err
	}
	defer found.Close()
	others := map[string]int{}
	for found.Next() {
		var id string
		var n int
		if err := found.Scan(&rows.Into{To: &id}, &rows.Into{To: &n}); err != nil {
			return err
		}
		others[id] = n
	}
	if err := found.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	l.others = others
	l.mu.Unlock()
	return nil
}

// write brings the table to what is wanted, until stop.
func (l *ledger) write() {
	for {
		select {
		case <-l.quit:
			return
		case <-l.wake:
		}
		if err := l.flush(context.Background()); err != nil {
			l.complain(err)
			l.release()
		}
	}
}

// complain says that the table cannot be written, once in a while.
func (l *ledger) complain(err error) {
	if now := l.s.o.Now(); l.said.IsZero() || now.Sub(l.said) >= ledgerQuiet {
		l.s.log.Warn("oracle: ledger", "error", err, "failures", l.unsaid+1)
		l.said, l.unsaid = now, 0
		return
	}
	l.unsaid++
}

// release lets everybody go on when the table cannot be written: the ledger is
// a help, and no turn depends on it.
func (l *ledger) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.want {
		e.flying = false
		e.close()
	}
}

func (l *ledger) flush(ctx context.Context) error {
	l.mu.Lock()
	var add, drop []string
	for id, e := range l.want {
		if !l.noted[id] && !e.given {
			e.flying = true
			add = append(add, id)
		}
	}
	for id := range l.noted {
		if l.want[id] == nil {
			drop = append(drop, id)
		}
	}
	l.mu.Unlock()
	if err := l.note(ctx, add); err != nil {
		return err
	}
	l.mu.Lock()
	for _, id := range add {
		l.noted[id] = true
		if e := l.want[id]; e != nil {
			e.flying = false
			e.close()
		} else {
			l.poke() // it was left meanwhile
		}
	}
	l.mu.Unlock()
	if err := l.drop(ctx, drop); err != nil {
		return err
	}
	l.mu.Lock()
	for _, id := range drop {
		delete(l.noted, id)
	}
	l.mu.Unlock()
	return nil
}

// note writes the notes of messages. One that is in the table has one: an answer
// was lost, or the array of an earlier one failed behind it.
func (l *ledger) note(ctx context.Context, ids []string) error {
	err := l.each(ctx, text("inflight_insert"), ids)
	if problem.CodeOf(err) != "store.exists" {
		return err
	}
	for _, id := range ids {
		if err := l.each(ctx, text("inflight_insert"), []string{id}); err != nil && problem.CodeOf(err) != "store.exists" {
			return err
		}
	}
	return nil
}

// drop deletes notes, many in one statement; where somebody has one locked, row by row.
func (l *ledger) drop(ctx context.Context, ids []string) error {
	bounded, cancel := context.WithCancel(ctx) // not a deadline, which the driver leaves on the connection
	defer cancel()
	defer time.AfterFunc(fenceMax, cancel).Stop()
	err := l.each(bounded, text("inflight_delete"), ids)
	if bounded.Err() == nil {
		return err
	}
	return l.each(ctx, noteDropped, ids)
}

// noteDropped deletes a note, unless somebody has it locked: it is forgotten with the run then.
var noteDropped = "BEGIN\n" + sweepOf("inflight_delete", "inflight_delete") + "END LOOP;\nEND;"

// each executes a statement for many messages at once.
func (l *ledger) each(ctx context.Context, text string, ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	runs := make([]string, len(ids))
	for i := range runs {
		runs[i] = l.s.run
	}
	l.s.noteCalls.Add(1)
	_, err := l.s.db.ExecContext(ctx, text, ids, runs)
	return explain(err)
}

// settle waits until what was entered is noted.
func (l *ledger) settle() {
	l.mu.Lock()
	waits := make([]<-chan struct{}, 0, len(l.want))
	for _, e := range l.want {
		waits = append(waits, e.noted)
	}
	l.mu.Unlock()
	for _, w := range waits {
		<-w
	}
}

func (l *ledger) stop() {
	close(l.quit)
	l.done.Wait()
	l.release()
}
