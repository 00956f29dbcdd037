package main

import (
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/aqueduct-engine/aqueduct/internal/nodes"
)

// startMax is how long a node may take to be ready while everything is slow.
const startMax = 30 * time.Second

// flags are how the nodes of a run are set.
var flags = []string{
	"--queue-signal-consumers", "4", "--queue-schedule-consumers", "2", "--queue-command-consumers", "2", "--queue-wait", "1s",
	"--retry-max", "200", "--retry-delay", "200ms", "--retry-delay-max", "2s", "--crash-max", "100",
	"--activity-attempts", "100", "--activity-delay", "200ms", "--activity-delay-max", "2s", "--drain-timeout", "2s",
}

// slot keeps a node running while it is wanted, as a service manager does:
// each process under a name of its own.
type slot struct {
	settings nodes.Settings

	mu     sync.Mutex
	node   *nodes.Node
	wanted bool
	starts bool // a process is being started
	lives  int
	fails  int
	most   int64 // memory of any of its nodes

	over chan struct{}
	done sync.WaitGroup
}

// newSlot begins with a first node. Each has memory bytes; aside, which the
// kernel counts too where a file system is in memory, is beside them. The error
// says why the kernel does not see to it.
func newSlot(program, store, name, logs string, memory, aside int64) (*slot, error) {
	s := &slot{wanted: true, over: make(chan struct{}), settings: nodes.Settings{
		Program: program, Name: name, Store: store, Log: filepath.Join(logs, name+".log"), Tied: true, Ready: startMax,
		Flags: append([]string{"--memory-limit", strconv.FormatInt(memory, 10)}, flags...),
	}}
	var err error
	s.settings.Group, err = nodes.Limit("chaos-"+name, memory+aside)
	s.done.Go(s.keep)
	return s, err
}

func (s *slot) keep() {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-s.over:
			return
		case <-tick.C:
		}
		s.mu.Lock()
		n, wanted := s.node, s.wanted
		if n != nil {
			s.most = max(s.most, n.Resident())
			if n.Gone() {
				s.node = nil
			}
		}
		begin := s.node == nil && wanted
		if begin {
			s.lives++
			s.starts = true
		}
		settings := s.settings
		settings.Name = fmt.Sprintf("%s-%d", s.settings.Name, s.lives)
		s.mu.Unlock()
		if !begin {
			continue
		}
		n, err := nodes.Launch(settings)
		s.mu.Lock()
		s.starts = false
		if err != nil {
			s.fails++
		} else {
			s.node = n
		}
		s.mu.Unlock()
	}
}

// now is the running node, or nil.
func (s *slot) now() *nodes.Node {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.node
}

// rest ends the node in order and keeps it down until wake.
func (s *slot) rest() error {
	s.mu.Lock()
	s.wanted = false
	s.mu.Unlock()
	for deadline := time.Now().Add(2 * startMax); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		s.mu.Lock()
		n, starts := s.node, s.starts
		s.mu.Unlock()
		if starts {
			continue
		}
		if n == nil {
			return nil
		}
		n.Signal(syscall.SIGCONT) // it may have been stopped
		n.Signal(syscall.SIGTERM)
		select {
		case <-n.Ended:
		case <-time.After(startMax):
			return fmt.Errorf("node of slot %s does not end", s.settings.Name)
		}
	}
	return fmt.Errorf("slot %s does not rest", s.settings.Name)
}

func (s *slot) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted = true
}

// close ends the slot and its node.
func (s *slot) close() error {
	err := s.rest()
	close(s.over)
	s.done.Wait()
	if n := s.now(); n != nil {
		n.Kill()
	}
	if s.settings.Group != nil {
		_ = s.settings.Group.Close() // what is left of it goes with the machine
	}
	return err
}
