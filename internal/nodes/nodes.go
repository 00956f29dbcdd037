// Package nodes runs the real program as processes, for the tests that kill
// them, stop them, and watch what they take.
package nodes

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Settings are how a node is started.
type Settings struct {
	Program string // engine-node
	Name    string
	Store   string // URL
	Log     string // path of what it logs, appended to
	Flags   []string
	Group   *Group        // that limits it; nil = none does
	Tied    bool          // it dies with the process that has started it
	Ready   time.Duration // how long it may take to be ready
}

// Node is a process of engine-node serve.
type Node struct {
	Settings
	URL   string
	Ended chan struct{} // closed when the process has ended
	Err   error         // of its end, after Ended
	cmd   *exec.Cmd
}

// Launch starts a node and waits until it is ready; an error is the end of a
// process that could not start, as when its database is down.
func Launch(s Settings) (*Node, error) {
	args := append([]string{"serve", "--listen", "127.0.0.1:0", "--json", "--node", s.Name, "--store-url", s.Store}, s.Flags...)
	n := &Node{Settings: s, cmd: exec.Command(s.Program, args...), Ended: make(chan struct{})}
	if s.Group != nil {
		n.cmd = exec.Command("/bin/sh", append([]string{"-c", `echo $$ > "$0" && exec "$@"`, s.Group.procs, s.Program}, args...)...)
	}
	n.cmd.Env = Quiet()
	if s.Tied {
		n.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	}
	log, err := os.OpenFile(s.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	n.cmd.Stderr = log
	out, err := n.cmd.StdoutPipe()
	if err == nil {
		err = n.cmd.Start()
	}
	if err != nil {
		log.Close()
		return nil, err
	}
	line := make(chan string, 1)
	go func() {
		said, _ := bufio.NewReader(out).ReadString('\n')
		line <- said
		n.Err = n.cmd.Wait()
		log.Close()
		close(n.Ended)
	}()
	select {
	case said := <-line:
		var ready struct{ URL string }
		if json.Unmarshal([]byte(said), &ready) != nil || ready.URL == "" {
			n.Kill()
			return nil, fmt.Errorf("node %s says %q: %w\n%s", s.Name, said, n.Err, n.Tail())
		}
		n.URL = ready.URL
		return n, nil
	case <-time.After(s.Ready):
		n.Kill()
		return nil, fmt.Errorf("node %s is not ready after %s\n%s", s.Name, s.Ready, n.Tail())
	}
}

// Quiet is the environment without settings of nodes.
func Quiet() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "AQUEDUCT_") {
			env = append(env, v)
		}
	}
	return env
}

// Kill ends the process at once.
func (n *Node) Kill() {
	_ = n.cmd.Process.Kill() // it may be gone
	<-n.Ended
}

// Signal sends a signal; a process that is gone hears none.
func (n *Node) Signal(s syscall.Signal) { _ = n.cmd.Process.Signal(s) }

// Pid is the id of the process.
func (n *Node) Pid() int { return n.cmd.Process.Pid }

// Gone says whether the process has ended.
func (n *Node) Gone() bool {
	select {
	case <-n.Ended:
		return true
	default:
		return false
	}
}

// fatal begins what Go writes when a process ends in trouble of its own.
var fatal = regexp.MustCompile(`(?m)^(panic: |fatal error: |SIG[A-Z]+: )`)

// Tail is the end of its log, or of a process that broke the beginning of what
// it said of that.
func (n *Node) Tail() string {
	raw, _ := os.ReadFile(n.Log) // of one that said nothing it is empty
	const most = 3000
	if at := fatal.FindIndex(raw); at != nil {
		return string(raw[at[0]:min(len(raw), at[0]+2*most)])
	}
	return string(raw[max(0, len(raw)-most):])
}

// Resident is the memory of the process, in bytes; 0 when it is gone.
func (n *Node) Resident() int64 {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", n.Pid()))
	f := strings.Fields(string(raw))
	if err != nil || len(f) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(f[1], 10, 64) // the kernel writes numbers
	return pages * int64(os.Getpagesize())
}
