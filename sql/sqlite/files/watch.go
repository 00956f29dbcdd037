package files

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Watcher is told what becomes of the other processes.
type Watcher interface {
	// Look: others may have changed what is in the database.
	Look()
	// Recover gives back what a peer had that has ended. When it fails the next
	// beat tries again.
	Recover(no int64, ledger *os.File) error
	// Take gives away what a peer has that gives no sign of life. Its process
	// lives. It is called beside the watch.
	Take(no int64) error
	// Failed: a peer's work was given to others.
	Failed()
}

// heartbeat is how often the locks of peers are tried, while there are any, and
// how often this node gives them a sign of life: it touches its file, and no
// database.
const heartbeat = 100 * time.Millisecond

// hungAfter is how long a node whose process lives may give no sign of life.
// Then others get its messages and commands; what it commits of them when it
// goes on is refused.
const hungAfter = 10 * time.Second

// Watch notices wake-ups and peer failures until Stop.
func (p *Peers) Watch(w Watcher) { p.watched.Go(func() { p.watch(w) }) }

func (p *Peers) watch(w Watcher) {
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	tick.Stop()
	ticking := false
	for {
		if peers := !p.alone.Load(); peers != ticking {
			if ticking = peers; peers {
				tick.Reset(heartbeat)
			} else {
				tick.Stop()
			}
		}
		select {
		case <-p.quit:
			return
		case <-p.watcher.Events:
			if p.Scan() {
				// What was committed before the peer was known has woken nobody.
				p.Notify()
			}
			w.Look()
		case err := <-p.watcher.Errors:
			p.log.Warn("sqlite: wake-up", "error", err)
			w.Look()
		case <-tick.C:
			p.beat()
			if p.missed && p.Scan() {
				p.Notify()
			}
			p.check(w)
			p.listen(w)
		}
	}
}

// check looks for peers that have ended.
func (p *Peers) check(w Watcher) {
	p.mu.Lock()
	dead := map[int64]*peer{}
	for no, other := range p.peers {
		if free, _ := tryLock(other.file); free {
			dead[no] = other
		}
	}
	p.mu.Unlock()
	for no, other := range dead {
		if err := w.Recover(no, other.file); err != nil {
			if err := unlock(other.file); err != nil {
				p.log.Error("sqlite: unlock", "error", err)
			}
			continue
		}
		p.log.Info("sqlite: a node has ended", "node", no)
		if other.wakeFile != nil {
			other.wakeFile.Close()
		}
		succeeded := p.Succeeded(no, other.file)
		p.Remove(no, other.file)
		p.mu.Lock()
		delete(p.peers, no)
		p.missed = p.missed || succeeded
		p.alone.Store(len(p.peers) == 0 && !p.missed)
		p.mu.Unlock()
		w.Failed()
	}
}

// A process that is stopped holds the lock of its node all the same. What it
// has in hand must not wait for it: it is known by the signs of life that it
// does not give. Beats are counted, and no clocks compared: a host that sleeps
// stops all its processes.

// beat gives a sign of life.
func (p *Peers) beat() {
	now := unix.NsecToTimeval(time.Now().UnixNano())
	if err := unix.Futimes(int(p.self.Fd()), []unix.Timeval{now, now}); err != nil {
		p.log.Warn("sqlite: heartbeat", "error", err)
	}
}

// listen looks for signs of life of the peers, and has the work of those that
// have given none for long given away.
func (p *Peers) listen(w Watcher) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for no, other := range p.peers {
		info, err := other.file.Stat()
		if err != nil {
			continue // it is on its way out; its lock will tell
		}
		if seen := info.ModTime(); !seen.Equal(other.seen) {
			if other.hung {
				p.log.Warn("sqlite: a node goes on that had given no sign of life", "node", no)
			}
			other.seen, other.silent, other.hung = seen, 0, false
			continue
		}
		if other.silent++; other.silent < int(hungAfter/heartbeat) || other.hung || other.taking {
			continue
		}
		other.taking = true
		p.watched.Go(func() { p.take(no, other, w) }) // beside the watch, which shall go on beating
	}
}

// take has the work of a node given away that hangs.
func (p *Peers) take(no int64, other *peer, w Watcher) {
	err := w.Take(no)
	p.mu.Lock()
	other.taking, other.hung = false, err == nil
	other.silent = 0 // for the next try, when the database did not let it
	p.mu.Unlock()
	if err == nil {
		p.log.Error("sqlite: a node gives no sign of life; others get its messages and commands", "node", no, "after", hungAfter)
		w.Failed()
	}
}

// Hangs says whether a node lives and gives no sign of it.
func (p *Peers) Hangs(no int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	other := p.peers[no]
	return other != nil && other.hung
}
