package cluster

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

// startMax is how long a node may take to be ready on a loaded machine.
const startMax = 60 * time.Second

// node is a process of engine-node serve.
type node struct {
	name  string
	url   string
	cmd   *exec.Cmd
	log   string
	ended chan struct{}
	err   error // after ended
}

// launch starts a node and waits until it is ready; an error is the end of a
// process that could not start, as when its database is down.
func (b *bed) launch(name string, flags ...string) (*node, error) {
	args := []string{"serve", "--listen", "127.0.0.1:0", "--json", "--node", name, "--store-url", b.url,
		"--queue-signal-consumers", "4", "--queue-schedule-consumers", "2", "--queue-command-consumers", "2", "--queue-wait", "2s",
		"--retry-max", "200", "--retry-delay", "200ms", "--retry-delay-max", "2s", "--crash-max", "50",
		"--activity-attempts", "50", "--activity-delay", "200ms", "--activity-delay-max", "2s"}
	n := &node{name: name, cmd: exec.Command(b.program, append(args, flags...)...), ended: make(chan struct{}), log: filepath.Join(b.logs, name+".log")}
	n.cmd.Env = quiet()
	log, err := os.Create(n.log)
	if err != nil {
		return nil, err
	}
	n.cmd.Stderr = log
	out, err := n.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := n.cmd.Start(); err != nil {
		return nil, err
	}
	line := make(chan string, 1)
	go func() {
		s, _ := bufio.NewReader(out).ReadString('\n')
		line <- s
		n.err = n.cmd.Wait()
		log.Close()
		close(n.ended)
	}()
	b.t.Cleanup(func() { _ = n.cmd.Process.Kill(); <-n.ended })
	select {
	case s := <-line:
		var ready struct{ URL string }
		if json.Unmarshal([]byte(s), &ready) != nil || ready.URL == "" {
			<-n.ended
			return nil, fmt.Errorf("node %s says %q: %w\n%s", name, s, n.err, n.tail())
		}
		n.url = ready.URL
		return n, nil
	case <-time.After(startMax):
		_ = n.cmd.Process.Kill()
		return nil, fmt.Errorf("node %s is not ready after %s\n%s", name, startMax, n.tail())
	}
}

// must launches a node that has no reason not to start.
func (b *bed) must(name string, flags ...string) *node {
	b.t.Helper()
	n, err := b.launch(name, flags...)
	if err != nil {
		b.t.Fatal(err)
	}
	return n
}

// kill ends the process at once.
func (n *node) kill() {
	_ = n.cmd.Process.Kill()
	<-n.ended
}

// stop asks it to end, and says how long that took.
func (n *node) stop(b *bed) time.Duration {
	b.t.Helper()
	begun := time.Now()
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		b.t.Errorf("node %s: %v\n%s", n.name, err, n.tail())
	}
	select {
	case <-n.ended:
	case <-time.After(startMax):
		b.t.Fatalf("node %s does not end\n%s", n.name, n.tail())
	}
	if n.err != nil {
		b.t.Errorf("node %s: %v\n%s", n.name, n.err, n.tail())
	}
	return time.Since(begun)
}

// gone says whether the process has ended.
func (n *node) gone() bool {
	select {
	case <-n.ended:
		return true
	default:
		return false
	}
}

// tail is the end of its log.
func (n *node) tail() string {
	raw, _ := os.ReadFile(n.log)
	const most = 3000
	return string(raw[max(0, len(raw)-most):])
}

// resident is the memory of the process in MiB; 0 when it is gone.
func (n *node) resident() float64 {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", n.cmd.Process.Pid))
	f := strings.Fields(string(raw))
	if err != nil || len(f) < 2 {
		return 0
	}
	pages, err := strconv.Atoi(f[1])
	if err != nil {
		return 0
	}
	return float64(pages) * float64(os.Getpagesize()) / (1 << 20)
}

// slot keeps a node running, as a service manager does: when its process ends
// it starts another, under another name.
type slot struct {
	b     *bed
	name  string
	mu    sync.Mutex
	node  *node // nil while none is ready
	lives int
	fails int // processes that could not start, or ended unasked
	over  chan struct{}
	done  sync.WaitGroup
}

func (b *bed) slot(name string) *slot {
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
			case <-n.ended:
			case <-s.over:
				return
			}
		}
		s.mu.Lock()
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
	if n := s.now(); n != nil && !n.gone() {
		return n.stop(s.b)
	}
	return 0
}
