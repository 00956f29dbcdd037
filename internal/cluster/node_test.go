package cluster

import (
	"fmt"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/aqueduct-engine/aqueduct/internal/nodes"
)

// startMax is how long a node may take to be ready on a loaded machine.
const startMax = 10 * time.Minute

// node is a process of engine-node serve.
type node struct{ *nodes.Node }

// launch starts a node and waits until it is ready; an error is the end of a
// process that could not start, as when its database is down.
func (b *testCluster) launch(name string, flags ...string) (*node, error) {
	n, err := nodes.Launch(nodes.Settings{
		Program: b.program, Name: name, Store: b.url, Log: filepath.Join(b.logs, name+".log"), Ready: startMax,
		Flags: append([]string{
			"--queue-signal-consumers", "4", "--queue-schedule-consumers", "2", "--queue-command-consumers", "2", "--queue-wait", "2s",
			"--retry-max", "200", "--retry-delay", "200ms", "--retry-delay-max", "2s", "--crash-max", "50",
			"--activity-attempts", "50", "--activity-delay", "200ms", "--activity-delay-max", "2s",
		}, flags...),
	})
	if err != nil {
		return nil, err
	}
	b.t.Cleanup(n.Kill)
	return &node{n}, nil
}

// must launches a node that has no reason not to start.
func (b *testCluster) must(name string, flags ...string) *node {
	b.t.Helper()
	n, err := b.launch(name, flags...)
	if err != nil {
		b.t.Fatal(err)
	}
	return n
}

// stop asks it to end, and says how long that took.
func (n *node) stop(b *testCluster) time.Duration {
	b.t.Helper()
	begun := time.Now()
	if n.Gone() {
		b.t.Errorf("node %s has ended before: %v\n%s", n.Name, n.Err, n.Tail())
	}
	n.Signal(syscall.SIGTERM)
	select {
	case <-n.Ended:
	case <-time.After(startMax):
		b.t.Fatalf("node %s does not end\n%s", n.Name, n.Tail())
	}
	if n.Err != nil {
		b.t.Errorf("node %s: %v\n%s", n.Name, n.Err, n.Tail())
	}
	return time.Since(begun)
}

// slot keeps a node running, as a service manager does: when its process ends
// it starts another, under another name.
type slot struct {
	b     *testCluster
	name  string
	mu    sync.Mutex
	node  *node // nil while none is ready
	lives int
	fails int    // processes that could not start, or ended unasked
	last  string // how the latest process ended, and the end of its log
	over  chan struct{}
	done  sync.WaitGroup
}

func (b *testCluster) slot(name string) *slot {
	s := &slot{b: b, name: name, over: make(chan struct{})}
	s.node = b.must(name + "-1")
	s.lives = 1
	s.done.Go(s.keep)
	return s
}

func (s *slot) keep() {
	for {
		s.mu.Lock()
		n := s.node
		s.mu.Unlock()
		if n != nil {
			select {
			case <-n.Ended:
			case <-s.over:
				return
			}
		}
		s.mu.Lock()
		if n != nil {
			s.last = fmt.Sprintf("%v\n%s", n.Err, n.Tail())
		}
		s.node = nil
		s.lives++
		name := fmt.Sprintf("%s-%d", s.name, s.lives)
		s.mu.Unlock()
		select {
		case <-time.After(200 * time.Millisecond): // a service manager waits, too
		case <-s.over:
			return
		}
		n, err := s.b.launch(name)
		s.mu.Lock()
		if err != nil {
			s.fails++
		}
		s.node = n
		s.mu.Unlock()
	}
}

// now is the running node, or nil.
func (s *slot) now() *node {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.node
}

// stop ends the slot and its node.
func (s *slot) stop() time.Duration {
	close(s.over)
	s.done.Wait()
	if n := s.now(); n != nil && !n.Gone() {
		return n.stop(s.b)
	}
	return 0
}
