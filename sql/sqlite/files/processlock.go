package files

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// patience bounds the wait for the process lock. It is there for fairness
// alone, SQLite's own lock excludes: a process that hangs in it costs the others
// this once, and then they go past it until it is open again.
const patience = 250 * time.Millisecond

// processLock gives the database to one process after the other: SQLite's own
// waiting starves one of two busy ones. It is two file locks. Who wants to write
// holds the gate while waiting for main, so that the process that has just left
// main waits behind it. The kernel opens both when their holder dies.
//
// A wait for a file lock cannot be broken off. It is done by a goroutine, which
// may be left behind: then it opens what it gets at once.
type processLock struct {
	gate, main *os.File

	mu      sync.Mutex
	waiting chan error // answers the wait under way; nil = there is none
	left    bool       // nobody waits for it any more
	closed  bool
}

// openProcessLock opens the files of the lock, "gate" and "main", in a folder.
func openProcessLock(dir string, a Access) (*processLock, error) {
	t := &processLock{}
	for name, f := range map[string]**os.File{"gate": &t.gate, "main": &t.main} {
		var err error
		if *f, err = a.open(filepath.Join(dir, name)); err != nil {
			return nil, errors.Join(err, t.close())
		}
	}
	return t, nil
}

// enter takes the lock, or goes past it: then leave is nil. It says when it
// does so for the first time.
func (t *processLock) enter() (leave func() error, jams bool, err error) {
	t.mu.Lock()
	if t.waiting != nil {
		t.mu.Unlock()
		return nil, false, nil // it is still jammed
	}
	ok, err := t.try()
	if ok || err != nil {
		t.mu.Unlock()
		return t.leave, false, err
	}
	answer := make(chan error, 1)
	t.waiting, t.left = answer, false
	go t.wait(answer)
	t.mu.Unlock()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case err := <-answer:
		return t.leave, false, err
	case <-timer.C:
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.waiting == nil { // it came at the last moment
		return t.leave, false, <-answer
	}
	t.left = true
	return nil, true, nil
}

// try takes both locks when they are free.
func (t *processLock) try() (bool, error) {
	if ok, err := tryLock(t.gate); !ok || err != nil {
		return false, err
	}
	ok, err := tryLock(t.main)
	return ok, errors.Join(err, unlock(t.gate))
}

// wait takes both locks, however long that takes.
func (t *processLock) wait(answer chan<- error) {
	err := lock(t.gate)
	if err == nil {
		err = errors.Join(lock(t.main), unlock(t.gate))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.waiting = nil
	switch {
	case t.closed:
		_ = t.release() // nobody is there to be told
	case t.left:
		_ = t.leave() // as above; the next to enter finds out what is wrong
	default:
		answer <- err
	}
}

func (t *processLock) leave() error { return unlock(t.main) }

// close closes the files, or leaves that to the wait under way.
func (t *processLock) close() error {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if t.waiting != nil {
		return nil
	}
	return t.release()
}

func (t *processLock) release() error {
	var errs []error
	for _, f := range []*os.File{t.gate, t.main} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}
