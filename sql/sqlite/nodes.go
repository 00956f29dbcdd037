package sqlite

import (
	"context"
	"database/sql/driver"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/store"
)

// nodes is the directory beside the database in which processes see each
// other. A node has two files, named for its number:
//
//	<no>.node  locked while the node lives; holds the ledger
//	<no>.wake  written by others when this node should look at the queues
//
// and all share the locks "gate" and "main", the process lock that gives the
// database to one process after the other.
type nodes struct {
	s           *Store
	dir         string
	no          int64
	perms       perms
	self        *os.File
	processLock *processLock
	watcher     *fsnotify.Watcher
	quit        chan struct{}
	once        sync.Once
	watched     sync.WaitGroup // watch, which uses the files
	died        atomic.Bool    // tests: end like a killed process

	mu    sync.Mutex
	peers map[int64]*peer
	alone atomic.Bool // no peers

	trouble trouble // of settle
	ledger  sync.Mutex
	free    []int64 // slots to use again
	slots   int64
}

type peer struct {
	file, wakeFile *os.File

	seen   time.Time // the last sign of life: when its file was written
	silent int       // beats since
	hung   bool      // it has given none for so long that its work was given away
	taking bool      // its work is being given away
}

// heartbeat is how often the locks of peers are tried, while there are any, and
// how often this node gives them a sign of life: it touches its file, and no
// database.
const heartbeat = 100 * time.Millisecond

// hungAfter is how long a node whose process lives may give no sign of life.
// Then others get its messages and commands; what it commits of them when it
// goes on is refused.
const hungAfter = 10 * time.Second

// join makes this node known and returns what dead nodes held, in one
// transaction.
func join(s *Store, c *conn, p perms) (*nodes, error) {
	n := &nodes{s: s, dir: s.path + "-nodes", perms: p, quit: make(chan struct{}), peers: map[int64]*peer{}}
	n.alone.Store(true)
	if err := n.open(c); err != nil {
		n.remove()
		n.closeFiles()
		var p *problem.Error
		if errors.As(err, &p) {
			return nil, err
		}
		return nil, explainFile(err, n.dir)
	}
	n.scan()
	n.notify()
	return n, nil
}

func (n *nodes) open(c *conn) (err error) {
	if err := n.perms.folder(n.dir); err != nil {
		return err
	}
	if n.processLock, err = openProcessLock(n.dir, n.perms); err != nil {
		return err
	}
	// Locked before it has its name, so that it is never seen unlocked.
	if n.self, err = os.CreateTemp(n.dir, ".new-*"); err != nil {
		return err
	}
	if err := n.perms.apply(n.self.Name(), n.perms.file); err != nil {
		return err
	}
	if err := flock(n.self, unix.LOCK_EX); err != nil {
		return err
	}
	if n.watcher, err = fsnotify.NewWatcher(); err != nil {
		return unwatched(err)
	}
	if _, _, err := c.exec("begin"); err != nil {
		return explain(err, n.s.path)
	}
	dead, err := n.register(c)
	if err == nil {
		_, _, err = c.exec("commit")
	}
	if err != nil {
		_ = c.script("rollback") // the first error is told
		return explain(err, n.s.path)
	}
	for no, f := range dead {
		n.removeFiles(no, f)
	}
	return nil
}

// register writes this node's row, gives its files their names, and returns
// the leases of dead nodes. The result is their files, for removeFiles.
func (n *nodes) register(c *conn) (map[int64]*os.File, error) {
	var err error
	if n.no, _, err = c.exec("node_insert", n.s.node, n.s.micros()); err != nil {
		return nil, err
	}
	// Under the lock of a migration: either sees the other.
	have, known, err := versions(c, n.s.path)
	if err == nil && have != known {
		err = newer(n.s.path, have, known)
	}
	if err != nil {
		return nil, err
	}
	wakeFile, err := n.perms.open(n.path(n.no, "wake"))
	if err != nil {
		return nil, err
	}
	if err := wakeFile.Close(); err != nil {
		return nil, err
	}
	if err := n.watcher.Add(n.path(n.no, "wake")); err != nil {
		return nil, unwatched(err)
	}
	if err := os.Rename(n.self.Name(), n.path(n.no, "node")); err != nil {
		return nil, err
	}
	rows, err := nodeRows(c)
	if err != nil {
		return nil, err
	}
	dead := map[int64]*os.File{}
	for _, r := range rows {
		if r.no == n.no {
			continue
		}
		alive, f := n.probe(r.no)
		if alive {
			f.Close()
			if r.name == n.s.node {
				return nil, problem.New(problem.Conflict, "store.node-in-use", "a live node has the name %q", r.name).
					WithHint("give every node of a database its own name")
			}
			continue
		}
		if err := n.recover(c, r.no, f); err != nil {
			return nil, err
		}
		if f != nil {
			dead[r.no] = f
		}
	}
	return dead, nil
}

// unwatched keeps a lack of watches apart from a full disk: both are ENOSPC.
func unwatched(err error) error {
	return problem.Wrap(err, problem.Unavailable, "store.watch", "the wake-up file of this node cannot be watched").
		WithHint("raise fs.inotify.max_user_watches or max_user_instances")
}

type nodeRow struct {
	no   int64
	name string
}

func nodeRows(c *conn) ([]nodeRow, error) {
	var list []nodeRow
	err := c.query("node_list", 2, func(r []driver.Value) error {
		no, _ := r[0].(int64)
		name, _ := r[1].(string)
		list = append(list, nodeRow{no, name})
		return nil
	})
	return list, err
}

func (n *nodes) path(no int64, kind string) string {
	return filepath.Join(n.dir, strconv.FormatInt(no, 10)+"."+kind)
}

// probe says whether a node lives. Of a dead one the file is returned locked,
// or nil when there is none.
func (n *nodes) probe(no int64) (alive bool, f *os.File) {
	f, err := os.OpenFile(n.path(no, "node"), os.O_RDWR, 0)
	if err != nil {
		return false, nil
	}
	return flock(f, unix.LOCK_EX|unix.LOCK_NB) != nil, f
}

// recover returns the messages of a dead node. Those its ledger names were
// being worked on when it died.
func (n *nodes) recover(c *conn, no int64, ledger *os.File) error {
	if ledger != nil {
		raw, err := io.ReadAll(io.NewSectionReader(ledger, 0, slotsMax*slotBytes))
		if err != nil {
			return explainFile(err, n.dir)
		}
		for ; len(raw) >= slotBytes; raw = raw[slotBytes:] {
			id, enq := int64(binary.LittleEndian.Uint64(raw)), int64(binary.LittleEndian.Uint64(raw[8:]))
			if id == 0 {
				continue
			}
			if _, _, err := c.exec("message_crashed", id, enq, no); err != nil {
				return err
			}
		}
	}
	return giveBack(c, no)
}

// returnAll returns a node's messages.
func returnAll(c *conn, no int64) error {
	for {
		_, n, err := c.exec("message_return", no, int64(promoteMax))
		if err != nil || n < promoteMax {
			return err
		}
	}
}

// giveBack returns a node's messages, and its row when it claims nothing.
func giveBack(c *conn, no int64) error {
	if err := returnAll(c, no); err != nil {
		return err
	}
	row, err := c.one("stream_claimed", 1, no)
	if err != nil || row != nil {
		return err
	}
	_, _, err = c.exec("node_delete", no)
	return err
}

// removeFiles removes the files of a node whose messages are returned.
func (n *nodes) removeFiles(no int64, f *os.File) {
	os.Remove(n.path(no, "node"))
	os.Remove(n.path(no, "wake"))
	if f != nil {
		f.Close()
	}
}

// scan finds the peers, and reports whether there are new ones.
func (n *nodes) scan() (found bool) {
	names, err := filepath.Glob(filepath.Join(globEscape(n.dir), "*.node"))
	if err != nil {
		n.s.log.Error("sqlite: nodes", "error", err)
		return false
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, name := range names {
		no, err := strconv.ParseInt(strings.TrimSuffix(filepath.Base(name), ".node"), 10, 64)
		if err != nil || no == n.no || n.peers[no] != nil {
			continue
		}
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		wakeFile, err := os.OpenFile(n.path(no, "wake"), os.O_WRONLY, 0)
		if err != nil {
			wakeFile = nil // it is on its way out; the lock will tell
		}
		n.peers[no] = &peer{file: f, wakeFile: wakeFile}
		found = true
	}
	n.alone.Store(len(n.peers) == 0)
	return found
}

// globEscape makes a path stand for itself in a pattern.
func globEscape(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(s)
}

// watch notices wake-ups and peer failures until stop.
func (n *nodes) watch() {
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	tick.Stop()
	ticking := false
	for {
		if peers := !n.alone.Load(); peers != ticking {
			if ticking = peers; peers {
				tick.Reset(heartbeat)
			} else {
				tick.Stop()
			}
		}
		select {
		case <-n.quit:
			return
		case <-n.watcher.Events:
			if n.scan() {
				// What was committed before the peer was known has woken nobody.
				n.notify()
			}
			n.s.look()
		case err := <-n.watcher.Errors:
			n.s.log.Warn("sqlite: wake-up", "error", err)
			n.s.look()
		case <-tick.C:
			n.beat()
			n.check()
			n.listen()
		}
	}
}

// check looks for peers that have ended.
func (n *nodes) check() {
	n.mu.Lock()
	dead := map[int64]*peer{}
	for no, p := range n.peers {
		if flock(p.file, unix.LOCK_EX|unix.LOCK_NB) == nil {
			dead[no] = p
		}
	}
	n.mu.Unlock()
	for no, p := range dead {
		if !n.settle(no, p) {
			continue
		}
		n.mu.Lock()
		delete(n.peers, no)
		n.alone.Store(len(n.peers) == 0)
		n.mu.Unlock()
		n.s.look()
		select {
		case n.s.failed <- struct{}{}:
		default:
		}
	}
}

// settle recovers a dead peer. When the database does not let it, the lock is
// given up and the next beat tries again.
func (n *nodes) settle(no int64, p *peer) bool {
	err := n.s.do(context.Background(), func(t *tx) error {
		t.wrote, t.notify = true, true
		return n.recover(t.w.c, no, p.file)
	})
	if !errors.Is(err, store.ErrClosed) {
		n.trouble.note(n.s.log, "sqlite: a dead node's messages cannot be given back yet", n.s.path, err)
	}
	if err != nil {
		if err := flock(p.file, unix.LOCK_UN); err != nil {
			n.s.log.Error("sqlite: unlock", "error", err)
		}
		return false
	}
	n.s.log.Info("sqlite: a node has ended", "node", no)
	if p.wakeFile != nil {
		p.wakeFile.Close()
	}
	n.removeFiles(no, p.file)
	return true
}

// notify makes the peers look at the queues.
func (n *nodes) notify() {
	if n.alone.Load() {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for no, p := range n.peers {
		if p.wakeFile == nil {
			continue
		}
		if _, err := p.wakeFile.WriteAt([]byte{1}, 0); err != nil {
			n.s.log.Warn("sqlite: notify", "node", no, "error", err)
		}
	}
}

// turn takes the process lock while there are peers.
func (n *nodes) turn() (unlock func(), err error) {
	if n.alone.Load() {
		return func() {}, nil
	}
	leave, jams, err := n.processLock.enter()
	if err != nil {
		return nil, err
	}
	if jams {
		n.s.log.Warn("sqlite: a process hangs with the process lock of the database; this one goes past it", "path", n.s.path, "after", processLockWait)
	}
	return func() {
		if leave == nil {
			return
		}
		if err := leave(); err != nil {
			n.s.log.Error("sqlite: process lock", "error", err)
		}
	}, nil
}

func (n *nodes) stop()           { n.once.Do(func() { close(n.quit) }) }
func (n *nodes) abandoned() bool { return n.died.Load() }

// leave removes this node's files and tells the peers, when the watch is over.
func (n *nodes) leave() error {
	n.watched.Wait()
	if !n.abandoned() {
		n.remove()
	}
	err := n.closeFiles()
	if !n.abandoned() {
		n.notify()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.peers {
		p.file.Close()
		if p.wakeFile != nil {
			p.wakeFile.Close()
		}
	}
	return err
}

func (n *nodes) remove() {
	if n.no != 0 {
		os.Remove(n.path(n.no, "node"))
		os.Remove(n.path(n.no, "wake"))
	}
	if n.self != nil {
		os.Remove(n.self.Name()) // when it did not get its name
	}
}

func (n *nodes) closeFiles() error {
	var errs []error
	if n.watcher != nil {
		errs = append(errs, n.watcher.Close())
	}
	errs = append(errs, n.processLock.close())
	if n.self != nil {
		errs = append(errs, n.self.Close())
	}
	return errors.Join(errs...)
}

// The ledger: slots of message id and time in the node's own file, written to
// the page cache, which a killed process leaves behind.
const (
	slotBytes = 16
	slotsMax  = 1 << 16
)

// Enter implements store.Ledger.
func (s *Store) Enter(d store.Delivery) {
	if d, ok := d.(*delivery); ok {
		s.nodes.enter(d)
	}
}

// Leave implements store.Ledger.
func (s *Store) Leave(d store.Delivery) {
	if d, ok := d.(*delivery); ok {
		s.nodes.exit(d)
	}
}

func (n *nodes) enter(d *delivery) {
	n.ledger.Lock()
	if d.slot == 0 {
		if last := len(n.free) - 1; last >= 0 {
			d.slot, n.free = n.free[last], n.free[:last]
		} else if n.slots < slotsMax {
			n.slots++
			d.slot = n.slots
		}
	}
	slot := d.slot
	n.ledger.Unlock()
	n.note(slot, d.id, d.enq)
}

func (n *nodes) exit(d *delivery) {
	n.ledger.Lock()
	slot := d.slot
	d.slot = 0
	n.ledger.Unlock()
	if slot == 0 {
		return
	}
	n.note(slot, 0, 0)
	n.ledger.Lock()
	n.free = append(n.free, slot)
	n.ledger.Unlock()
}

func (n *nodes) note(slot, id, enq int64) {
	if slot == 0 {
		return
	}
	var b [slotBytes]byte
	binary.LittleEndian.PutUint64(b[:], uint64(id))
	binary.LittleEndian.PutUint64(b[8:], uint64(enq))
	if _, err := n.self.WriteAt(b[:], (slot-1)*slotBytes); err != nil && !errors.Is(err, os.ErrClosed) {
		n.s.log.Warn("sqlite: ledger", "error", err)
	}
}
