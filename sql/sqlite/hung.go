package sqlite

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/aqueduct-engine/aqueduct/store"
)

// A process that is stopped holds the lock of its node all the same. What it
// has in hand must not wait for it: it is known by the signs of life that it
// does not give. Beats are counted, and no clocks compared: a host that sleeps
// stops all its processes.

// beat gives a sign of life.
func (n *nodes) beat() {
	now := time.Now()
	if err := touch(n.self, now); err != nil {
		n.s.log.Warn("sqlite: heartbeat", "error", err)
	}
}

// listen looks for signs of life of the peers, and has the work of those that
// have given none for long given away.
func (n *nodes) listen() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for no, p := range n.peers {
		info, err := p.file.Stat()
		if err != nil {
			continue // it is on its way out; its lock will tell
		}
		if seen := info.ModTime(); !seen.Equal(p.seen) {
			if p.hung {
				n.s.log.Warn("sqlite: a node goes on that had given no sign of life", "node", no)
			}
			p.seen, p.silent, p.hung = seen, 0, false
			continue
		}
		if p.silent++; p.silent < int(hungAfter/heartbeat) || p.hung || p.taking {
			continue
		}
		p.taking = true
		n.watched.Go(func() { n.take(no, p) }) // beside the watch, which shall go on beating
	}
}

// take returns the messages of a node that hangs. Its row stays: it lives.
func (n *nodes) take(no int64, p *peer) {
	err := n.s.do(context.Background(), func(t *tx) error {
		t.wrote, t.notify = true, true
		return returnAll(t.w.c, no)
	})
	n.mu.Lock()
	p.taking, p.hung = false, err == nil
	p.silent = 0 // for the next try, when the database did not let it
	n.mu.Unlock()
	if err != nil {
		if !errors.Is(err, store.ErrClosed) {
			n.s.log.Error("sqlite: the messages of a node that hangs cannot be given back yet", "node", no, "error", err)
		}
		return
	}
	n.s.log.Error("sqlite: a node gives no sign of life; others get its messages and commands", "node", no, "after", hungAfter)
	n.s.look()
	select {
	case n.s.failed <- struct{}{}:
	default:
	}
}

// hangs says whether a node lives and gives no sign of it.
func (n *nodes) hangs(no int64) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.peers[no]
	return p != nil && p.hung
}

// touch sets when a file was written last.
func touch(f *os.File, at time.Time) error {
	t := unix.NsecToTimeval(at.UnixNano())
	return unix.Futimes(int(f.Fd()), []unix.Timeval{t, t})
}
