package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// node is a process of engine-node serve.
type node struct {
	url   string
	cmd   *exec.Cmd
	ended chan struct{}
}

// startMax is how long a node may take to be ready while everything is slow.
const startMax = 30 * time.Second

// launch starts a node and waits until it is ready.
func launch(program, store, name, log string) (*node, error) {
	cmd := exec.Command(program, "serve", "--listen", "127.0.0.1:0", "--json", "--node", name, "--store-url", store,
		"--queue-signal-consumers", "4", "--queue-schedule-consumers", "2", "--queue-command-consumers", "2", "--queue-wait", "1s",
		"--retry-max", "200", "--retry-delay", "200ms", "--retry-delay-max", "2s", "--crash-max", "100",
		"--activity-attempts", "100", "--activity-delay", "200ms", "--activity-delay-max", "2s", "--drain-timeout", "2s")
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "AQUEDUCT_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	w, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	cmd.Stderr = w
	// The death of this process is that of the node.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		w.Close()
		return nil, err
	}
	n := &node{cmd: cmd, ended: make(chan struct{})}
	line := make(chan string, 1)
	go func() {
		s, _ := bufio.NewReader(out).ReadString('\n')
		line <- s
		_ = cmd.Wait()
		w.Close()
		close(n.ended)
	}()
	select {
	case s := <-line:
		var ready struct{ URL string }
		if json.Unmarshal([]byte(s), &ready) != nil || ready.URL == "" {
			n.kill()
			return nil, fmt.Errorf("node %s says %q", name, s)
		}
		n.url = ready.URL
		return n, nil
	case <-time.After(startMax):
		n.kill()
		return nil, fmt.Errorf("node %s is not ready after %s", name, startMax)
	}
}

func (n *node) kill() {
	_ = n.cmd.Process.Kill()
	<-n.ended
}

func (n *node) signal(s syscall.Signal) { _ = n.cmd.Process.Signal(s) }

// resident is the memory of the process, in bytes; 0 when it is gone.
func (n *node) resident() int64 {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", n.cmd.Process.Pid))
	f := strings.Fields(string(raw))
	if err != nil || len(f) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(f[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// slot keeps a node running while it is wanted, as a service manager does:
// each process under a name of its own.
type slot struct {
	program, store, name, logs string

	mu     sync.Mutex
	node   *node
	wanted bool
	starts bool // a process is being started
	lives  int
	fails  int
	most   int64 // memory of any of its nodes

	over chan struct{}
	done sync.WaitGroup
}

func newSlot(program, store, name, logs string) *slot {
	s := &slot{program: program, store: store, name: name, logs: logs, wanted: true, over: make(chan struct{})}
	s.done.Go(s.keep)
	return s
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
			s.most = max(s.most, n.resident())
			select {
			case <-n.ended:
				s.node = nil
			default:
			}
		}
		begin := s.node == nil && wanted
		if begin {
			s.lives++
			s.starts = true
		}
		name := fmt.Sprintf("%s-%d", s.name, s.lives)
		s.mu.Unlock()
		if !begin {
			continue
		}
		n, err := launch(s.program, s.store, name, filepath.Join(s.logs, s.name+".log"))
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
func (s *slot) now() *node {
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
		n.signal(syscall.SIGCONT) // it may have been stopped
		n.signal(syscall.SIGTERM)
		select {
		case <-n.ended:
		case <-time.After(startMax):
			return fmt.Errorf("node of slot %s does not end", s.name)
		}
	}
	return fmt.Errorf("slot %s does not rest", s.name)
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
		n.kill()
	}
	return err
}
