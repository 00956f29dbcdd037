package sqlite

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/files"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/pieces"
	"github.com/aqueduct-engine/aqueduct/store"
)

// job is work for the writer. run is called inside a transaction, twice when its first group was rolled back.
type job struct {
	run  func(*tx) error
	err  error
	lost bool // it ends the transaction that it runs in
	done chan struct{}
}

// writer owns the only connection that writes.
type writer struct {
	s       *Store
	c       *conn.Conn
	batch   int
	extras  []Extra
	perform func(Tx) store.Perform
	relax   bool // a transaction that only claims is not synced
	numbers map[string]int64
	cuts    *pieces.Memory
	nodeNos map[string]int64
	timer   *time.Timer
	members []*job
	tx      tx
	failed  bool      // the last claim; it is tried again
	retryAt time.Time // not before this
	pause   time.Duration
	trouble conn.Trouble
	logNext int64 // bytes of the log at which readers are waited for again
	busy    bool  // another process held the write lock for busyWait

	suspects []*delivery
}

// Stats counts what the writer did since Open.
type Stats struct {
	Transactions int64 // committed, of every kind
	Regrouped    int64 // groups run again because a member failed after it had written
}

type counters struct{ transactions, regrouped atomic.Int64 }

// Stats returns the counters.
func (s *Store) Stats() Stats {
	return Stats{Transactions: s.stats.transactions.Load(), Regrouped: s.stats.regrouped.Load()}
}

func newWriter(s *Store, c *conn.Conn, o Options) *writer {
	return &writer{
		s: s, c: c, batch: o.Batch, extras: o.Extras, perform: o.Perform, relax: o.Durability == Full,
		numbers: map[string]int64{}, cuts: pieces.NewMemory(min(piecesMax, o.Cache)), nodeNos: map[string]int64{s.node: s.nodes.no},
		timer: time.NewTimer(time.Hour),
	}
}

// run serves until the channel of jobs is closed and empty.
func (w *writer) run() {
	defer w.timer.Stop()
	for {
		w.arm()
		select {
		case j, open := <-w.s.jobs:
			if !open {
				w.end()
				return
			}
			w.group(j)
			if w.s.wanted() {
				w.s.poke()
			}
		case <-w.s.wake:
			if !w.failed || !time.Now().Before(w.retryAt) { // else the timer does it
				w.claimOnly()
			}
		case <-w.timer.C:
			w.claimOnly()
		}
	}
}

const (
	longestSleep = time.Second            // bounds how late a change of the wall clock is noticed
	retryPause   = 100 * time.Millisecond // after a claim that the database refused; doubled with each
	retryMax     = 2 * time.Second        // the longest
)

// arm sets the timer to the next delayed message, when somebody waits.
func (w *writer) arm() {
	w.timer.Stop()
	if w.failed {
		w.timer.Reset(max(time.Until(w.retryAt), 0))
		return
	}
	next := w.s.due.Load()
	if next == 0 || !w.s.anyWaiting() {
		return
	}
	w.timer.Reset(min(max(time.UnixMicro(next).Sub(w.s.now()), 0), longestSleep))
}

// claimOnly gives ready and due messages to receivers that wait. It is not
// synced: losing it in a power cut just leaves the messages ready.
func (w *writer) claimOnly() {
	w.failed = false
	for w.s.wanted() {
		select {
		case j, open := <-w.s.jobs: // a group claims as well
			if open {
				w.group(j)
			}
			return
		default:
		}
		if w.relax {
			if err := w.c.Script("pragma synchronous = normal"); err != nil {
				w.s.log.Error("sqlite: relax", "error", err)
			}
		}
		err := w.transact(nil)
		w.tx.out.handOver(err == nil)
		if w.relax {
			err = errors.Join(err, w.c.Script("pragma synchronous = full"))
		}
		if w.failed = err != nil; w.failed {
			w.pause = min(max(2*w.pause, retryPause), retryMax)
			w.retryAt = time.Now().Add(w.pause)
			return
		}
		w.pause = 0
	}
}

// group commits a job together with those that wait behind it.
func (w *writer) group(first *job) {
	w.members = append(w.members[:0], first)
	err := w.transact(first)
	if w.busy { // it could not begin: nobody waits for more than one that hangs
		for range len(w.s.jobs) { // nobody else receives
			w.members = append(w.members, <-w.s.jobs)
		}
	}
	for _, j := range w.members {
		if j.err = conn.Explain(j.err, w.s.path); err != nil {
			j.err = err
		}
		close(j.done)
	}
	w.tx.out.handOver(err == nil)
	clear(w.members)
	if err == nil {
		w.shorten()
	}
}

// A log of LogPages is copied into the database after each commit, as far as readers allow, and begun anew when
// nobody reads it. Readers that take turns would let it grow for ever: beyond logMax, and with each logStep more, the
// writer waits for those who read now, who are followed by none in the log.
const (
	logMax  = 2 * logStep // what is left of a longer one that is begun anew
	logStep = 64 << 20
	logWait = 500 * time.Millisecond
)

func (w *writer) shorten() {
	log, err := os.Stat(w.s.path + "-wal")
	if err != nil || log.Size() <= logMax {
		w.logNext = 0
		return
	}
	if log.Size() < w.logNext {
		return
	}
	if w.logNext > 0 {
		w.s.log.Warn("sqlite: the write-ahead log grows: somebody reads for long", "path", w.s.path, "bytes", log.Size())
	}
	w.logNext = log.Size() + logStep
	err = errors.Join(w.waits(logWait), w.c.Script("pragma wal_checkpoint(restart)"), w.waits(busyWait))
	if err != nil {
		w.s.log.Error("sqlite: the log cannot be begun anew", "path", w.s.path, "error", err)
	}
}

// transact is attempt, and tells what ails the database. On a full disk it copies the log into the database, as far as
// readers allow, for the next commit to begin it anew: SQLite does so after commits, and there are none.
func (w *writer) transact(first *job) error {
	err := w.attempt(first)
	w.trouble.Note(w.s.log, "sqlite: the database takes no transaction", w.s.path, err)
	if problem.CodeOf(err) == "store.full" {
		if err := w.c.Script("pragma wal_checkpoint(passive)"); err != nil {
			w.s.log.Debug("sqlite: the log cannot be copied into the database", "path", w.s.path, "error", err)
		}
	}
	return err
}

// attempt runs one transaction: first and what follows it, or without first
// only the claims. Its error is the error of every member.
func (w *writer) attempt(first *job) error {
	w.tx.reset(w) // what the last one left is no business of this one, also when it does not begin
	unlock, err := w.s.nodes.Turn()
	if err != nil {
		return conn.Explain(err, w.s.path)
	}
	defer unlock()
	if err = w.s.place.StillSame(); err == nil { // else it would go to a file that nobody finds again
		err = w.begin()
	}
	if err != nil {
		return conn.Explain(err, w.s.path)
	}
	err = w.fill(first)
	if errors.Is(err, errAgain) {
		w.s.stats.regrouped.Add(1)
		err = w.again()
	}
	if err == nil {
		err = w.tx.out.settle()
	}
	if err != nil {
		w.rollback()
		return conn.Explain(err, w.s.path)
	}
	if _, _, err := w.c.Exec("commit"); err != nil {
		w.rollback()
		if conn.IsFull(err) {
			return conn.Explain(err, w.s.path)
		}
		w.tx.out.suspect()
		return store.Unknown(conn.Explain(err, w.s.path))
	}
	w.s.stats.transactions.Add(1)
	if w.suspects = w.suspects[:0]; w.tx.out.notify {
		w.s.nodes.Notify()
	}
	return nil
}

var (
	errAgain = errors.New("run the group again") // a member failed after it had written
	errLost  = errors.New("the transaction ended before its change was whole")
)

// fill runs jobs as they come, without savepoints: a refused change has
// normally written nothing, because guards stand before writes.
func (w *writer) fill(j *job) error {
	begun := time.Now()
	for j != nil {
		if w.members[len(w.members)-1] != j { // the first is one
			w.members = append(w.members, j)
		}
		w.tx.wrote = false
		sends := len(w.tx.out.sends)
		if j.err = j.run(&w.tx); j.err != nil || !w.c.InTransaction() {
			clear(w.tx.out.sends[sends:])
			w.tx.out.sends = w.tx.out.sends[:sends]
			if w.tx.wrote || !w.c.InTransaction() || conn.Fatal(j.err) {
				return errAgain
			}
		}
		if len(w.members) >= w.batch || time.Since(begun) > batchTime {
			return nil
		}
		select {
		case j = <-w.s.jobs: // nil when it is closed
			continue
		default:
		}
		// Whoever is ready to run may have a change: those answered by the last commit. This waits for nobody.
		runtime.Gosched()
		select {
		case j = <-w.s.jobs:
		default:
			return nil
		}
	}
	return nil
}

// again runs the members once more in a new transaction, each in a savepoint, so that each gets its own answer. One
// that ends the transaction for all gets it, too, and stays away while the others begin anew.
func (w *writer) again() error {
	w.rollback()
	if err := w.begin(); err != nil {
		return err
	}
	for _, j := range w.members {
		if j.lost {
			continue
		}
		if _, _, err := w.c.Exec("savepoint"); err != nil {
			return err
		}
		sends := len(w.tx.out.sends)
		j.err = j.run(&w.tx)
		if conn.Fatal(j.err) {
			return j.err
		}
		if j.lost = !w.c.InTransaction(); j.lost {
			j.err = cmp.Or(j.err, errLost)
			return w.again()
		}
		if j.err == nil {
			if _, _, err := w.c.Exec("release"); err != nil {
				return err
			}
			continue
		}
		w.tx.out.sends = w.tx.out.sends[:sends]
		w.forget()
		if _, _, err := w.c.Exec("rollback_to"); err != nil {
			return err
		}
	}
	return nil
}

// How long the writer waits for the write lock of another process. A process that is stopped while it writes cannot
// be fenced: until it goes on or ends, calls are refused with store.busy, after the first that has waited long the
// others at once, as far as SQLite is asked at all.
const (
	busyWait  = 5 * time.Second
	busyAgain = 100 * time.Millisecond // while the last one to wait has waited in vain
)

// waits says how long for.
func (w *writer) waits(d time.Duration) error {
	return w.c.Script(fmt.Sprintf("pragma busy_timeout = %d", d.Milliseconds()))
}

func (w *writer) begin() error {
	_, _, err := w.c.Exec("begin")
	w.tx.reset(w)
	busy := conn.IsBusy(err)
	if busy != w.busy {
		wait := busyWait
		if w.busy = busy; busy {
			wait = busyAgain
		}
		if e := w.waits(wait); e != nil {
			w.s.log.Error("sqlite: busy timeout", "error", e)
		}
	}
	if busy {
		return conn.BusyBy(err, w.s.path, files.Holder(w.s.path))
	}
	return err
}

// rollback ends a failed transaction. SQLite may have ended it already.
func (w *writer) rollback() {
	if w.c.InTransaction() {
		if err := w.c.Script("rollback"); err != nil {
			w.s.log.Error("sqlite: rollback", "error", err)
		}
	}
	w.forget()
}

// forget drops what a rolled back transaction may have given.
func (w *writer) forget() {
	clear(w.numbers)
	w.cuts.Forget()
	clear(w.nodeNos)
	w.nodeNos[w.s.node] = w.s.nodes.no
	for _, x := range w.extras {
		x.Forget()
	}
}

// end returns this node's messages and closes everything.
func (w *writer) end() {
	if !w.s.nodes.died.Load() {
		j := &job{done: make(chan struct{}), run: func(t *tx) error {
			t.wrote, t.out.notify = true, true
			return giveBack(t.w.c, w.s.nodes.no)
		}}
		w.group(j)
		if j.err != nil {
			w.s.log.Error("sqlite: close", "error", j.err)
		}
	}
	if err := w.s.release(w.c); err != nil {
		w.s.log.Error("sqlite: close", "error", err)
	}
}
