package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"os"
	"sync/atomic"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/files"
	"github.com/aqueduct-engine/aqueduct/store"
)

// nodes is this node among those on the database: a row of WF_NODES, whose number names its files.
type nodes struct {
	*files.Peers
	s       *Store
	no      int64
	died    atomic.Bool  // tests: end like a killed process
	trouble conn.Trouble // of Recover
}

// namePatience is how long a name that is in use is asked for again: while another gives
// back what a dead node held, it has its file locked, and the node looks alive.
const namePatience = 3 * time.Second

// join makes this node known. A live node of the same name keeps it.
func join(s *Store, c *conn.Conn, a files.Access) (n *nodes, err error) {
	for until := time.Now().Add(namePatience); ; time.Sleep(namePatience / 60) {
		if n, err = joinOnce(s, c, a); problem.CodeOf(err) != "store.node-in-use" || time.Now().After(until) {
			return n, err
		}
	}
}

// joinOnce makes this node known and returns what dead nodes held, in one transaction.
func joinOnce(s *Store, c *conn.Conn, a files.Access) (*nodes, error) {
	peers, err := files.Join(s.path, a, s.log)
	n := &nodes{Peers: peers, s: s}
	if err == nil {
		err = n.enlist(c)
	}
	switch {
	case err != nil && problem.CodeOf(err) == "internal":
		return nil, conn.ExplainFile(err, files.Folder(s.path))
	case err != nil:
		return nil, err
	}
	n.Scan()
	n.Notify()
	return n, nil
}

func (n *nodes) enlist(c *conn.Conn) error {
	var dead map[int64]*os.File
	_, _, err := c.Exec("begin")
	if err == nil {
		dead, err = n.register(c)
	}
	if err == nil {
		_, _, err = c.Exec("commit")
	}
	if err != nil {
		n.Abort()                // before another can have its number
		_ = c.Script("rollback") // the first error is told
		return conn.Explain(err, n.s.path)
	}
	for no, f := range dead {
		n.Remove(no, f)
	}
	return nil
}

// register writes this node's row, gives its files their names, and returns
// the leases of dead nodes. The result is their files, which are to be removed.
func (n *nodes) register(c *conn.Conn) (map[int64]*os.File, error) {
	var err error
	if n.no, _, err = c.Exec("node_insert", n.s.node, n.s.micros()); err != nil {
		return nil, err
	}
	// Under the lock of a migration: either sees the other.
	if err := n.s.schema.Check(c, n.s.path); err != nil {
		return nil, err
	}
	if err := n.Name(n.no); err != nil {
		return nil, err
	}
	rows, err := nodeRows(c)
	if err != nil {
		return nil, err
	}
	dead := map[int64]*os.File{}
	delete(rows, n.no)
	for no, name := range rows {
		alive, f := n.Probe(no)
		if alive {
			f.Close()
			if name == n.s.node {
				return nil, problem.New(problem.Conflict, "store.node-in-use", "a live node has the name %q", name).
					WithHint("give every node of a database its own name")
			}
			continue
		}
		if err := recoverNode(c, no, f); err != nil {
			return nil, err
		}
		if f != nil {
			dead[no] = f
		}
	}
	return dead, nil
}

// nodeRows are the names of all nodes, by their numbers.
func nodeRows(c *conn.Conn) (map[int64]string, error) {
	list := map[int64]string{}
	err := c.Query("node_list", 2, func(r []driver.Value) error {
		no, _ := r[0].(int64)
		name, _ := r[1].(string)
		list[no] = name
		return nil
	})
	return list, err
}

// recoverNode returns the messages of a dead node. Those its ledger names were being worked on when it died.
func recoverNode(c *conn.Conn, no int64, ledger *os.File) error {
	err := files.EachNoted(ledger, func(id, enq int64) error {
		_, _, err := c.Exec("message_crashed", id, enq, no)
		return err
	})
	if err != nil {
		return err
	}
	return giveBack(c, no)
}

// returnAll returns a node's messages.
func returnAll(c *conn.Conn, no int64) error {
	for {
		_, n, err := c.Exec("message_return", no, int64(promoteMax))
		if err != nil || n < promoteMax {
			return err
		}
	}
}

// giveBack returns a node's messages, and its row when it claims nothing.
func giveBack(c *conn.Conn, no int64) error {
	if err := returnAll(c, no); err != nil {
		return err
	}
	row, err := c.One("stream_claimed", 1, no)
	if err != nil || row != nil {
		return err
	}
	_, _, err = c.Exec("node_delete", no)
	return err
}

// Look implements files.Watcher.
func (n *nodes) Look() { n.s.look() }

// Recover implements files.Watcher.
func (n *nodes) Recover(no int64, ledger *os.File) error {
	err := n.change(func(c *conn.Conn) error {
		if n.Succeeded(no, ledger) { // what has the number now lives
			return nil
		}
		return recoverNode(c, no, ledger)
	})
	if !errors.Is(err, store.ErrClosed) {
		n.trouble.Note(n.s.log, "sqlite: a dead node's messages cannot be given back yet", n.s.path, err)
	}
	return err
}

// Take implements files.Watcher. The row of the node stays: it lives.
func (n *nodes) Take(no int64) error {
	err := n.change(func(c *conn.Conn) error { return returnAll(c, no) })
	if err != nil && !errors.Is(err, store.ErrClosed) {
		n.s.log.Error("sqlite: the messages of a node that hangs cannot be given back yet", "node", no, "error", err)
	}
	return err
}

// Failed implements files.Watcher.
func (n *nodes) Failed() {
	n.s.look()
	select {
	case n.s.failed <- struct{}{}:
	default:
	}
}

// change has the writer change whose the messages are.
func (n *nodes) change(run func(*conn.Conn) error) error {
	return n.s.do(context.Background(), func(t *tx) error {
		t.wrote, t.out.notify = true, true
		return run(t.w.c)
	})
}

// Enter implements store.Ledger.
func (s *Store) Enter(d store.Delivery) {
	if d, ok := d.(*delivery); ok {
		s.nodes.Enter(&d.slot, d.id, d.enq)
	}
}

// Leave implements store.Ledger.
func (s *Store) Leave(d store.Delivery) {
	if d, ok := d.(*delivery); ok {
		s.nodes.Exit(&d.slot)
	}
}
