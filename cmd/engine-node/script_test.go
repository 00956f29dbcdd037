package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/aqueduct-engine/aqueduct/config"
	"github.com/aqueduct-engine/aqueduct/internal/await"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/store"
)

func TestMain(m *testing.M) {
	testscript.Main(tidied{m}, map[string]func(){"engine-node": main})
}

// tidied are tests that leave no program behind.
type tidied struct{ *testing.M }

func (m tidied) Run() int {
	defer func() { os.RemoveAll(plainFolder) }()
	return m.M.Run()
}

// raced reports whether the race detector looks on. It does so in nodes; a command that is
// over in a moment takes five times as long with it.
var raced bool

var plainFolder string

// plain is the program without the race detector, in a folder of its own.
var plain = sync.OnceValues(func() (_ string, err error) {
	if plainFolder, err = os.MkdirTemp("", "engine-node"); err != nil {
		return "", err
	}
	if out, err := exec.Command("go", "build", "-o", plainFolder+"/engine-node", ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w: %s", err, out)
	}
	return plainFolder, nil
})

// programs sets what every script has. A node is this program, found by NODE_PATH; with
// the race detector commands are another.
func programs(e *testscript.Env) error {
	e.Setenv("USER", "tester")
	e.Setenv("GORACE", "atexit_sleep_ms=0") // else every process under the race detector ends a second late
	e.Values[nodesKey{}] = map[string]*child{}
	e.Setenv("NODE_PATH", e.Getenv("PATH"))
	if !raced {
		return nil
	}
	folder, err := plain()
	e.Setenv("PATH", folder+string(filepath.ListSeparator)+e.Getenv("PATH"))
	return err
}

// TestScripts runs testdata/*.txtar on the real program. Beside the commands
// of testscript they have:
//
//	node NAME [FLAG...]     start `engine-node serve` on a free port, wait until it is ready, set AQUEDUCT_SERVER
//	drain NAME, crash NAME end it with SIGTERM (and exit status 0), with SIGKILL
//	freeze NAME, thaw NAME  stop it with SIGSTOP, let it go on with SIGCONT
//	asked REGEXP            wait until the requests that /once has got match
//	answered                let the first request at /once have its answer
//	rush NAME               end it with SIGTERM, and SIGTERM again while it drains
//	exits N CMD...          the command ends with this exit status
//	retry REGEXP CMD...     repeat the command until it succeeds and its output matches
//	enqueue DATABASE BYTES  put raw bytes on the signal queue
//	script DATABASE SQL     run SQL on a database that no node has open
//	outage DATABASE [late]  leave 500 dead letters of five kinds in a database that no node has open, or one more
//	midway NAME FILE        SIGKILL to the node when it has done a part of the plan whose id is in the file
//	proxy CONFIGURATION SCHEME FILE...  HAProxy as it is shipped, before nodes whose addresses are in the files; $PROXY is its own
//	bank NAME ...           what the bank at $SERVICES/bank/NAME does, and has done: see banks
//
// and $SERVICES, which plays the outside world, and $EXAMPLES.
func TestScripts(t *testing.T) {
	t.Parallel()
	pays := &banks{byName: map[string]*bank{}}
	mux := outside()
	mux.Handle("/bank/", pays)
	services := httptest.NewServer(mux)
	t.Cleanup(services.Close)
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(e *testscript.Env) error {
			e.Setenv("SERVICES", services.URL)
			e.Setenv("EXAMPLES", examples)
			e.Setenv("DB", "sqlite://"+filepath.Join(e.WorkDir, "data", "a.db"))
			return programs(e)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"node": startNode, "drain": drainNode, "crash": crashNode, "freeze": freezeNode, "thaw": thawNode, "asked": asked, "answered": answered, "rush": rushNode, "exits": exits, "retry": retry, "enqueue": enqueue, "script": script,
			"outage": outage, "midway": midway,
			"bank": pays.command, "idp": provides, "pki": signs, "proxy": standsBefore,
		},
	})
}

// outside answers /ok, refuses at /refuse, leads from /to?URL there, and blocks at /slow until the
// caller gives up. The first request at /once is answered when its caller has
// gone on at /go; /asked has the keys of all.
func outside() *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("/ok", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"score":700}`)
	})
	mux.HandleFunc("/refuse", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusBadRequest) })
	mux.HandleFunc("/later", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		http.Error(w, "later", http.StatusServiceUnavailable)
	})
	mux.HandleFunc("/to", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.RawQuery, http.StatusFound) })
	mux.HandleFunc("/slow", func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	})
	var once struct {
		sync.Mutex
		keys []string
	}
	released := make(chan struct{})
	mux.HandleFunc("/once", func(w http.ResponseWriter, r *http.Request) {
		once.Lock()
		once.keys = append(once.keys, r.Header.Get("Idempotency-Key"))
		first := len(once.keys) == 1
		once.Unlock()
		if first {
			_, _ = io.Copy(io.Discard, r.Body)
			select {
			case <-released:
			case <-r.Context().Done():
			}
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"first":%t}`, first)
	})
	mux.HandleFunc("/go", func(http.ResponseWriter, *http.Request) { close(released) })
	mux.HandleFunc("/asked", func(w http.ResponseWriter, _ *http.Request) {
		once.Lock()
		defer once.Unlock()
		same := len(once.keys) > 0 && once.keys[0] != ""
		for _, k := range once.keys {
			same = same && k == once.keys[0]
		}
		fmt.Fprintf(w, "asked %d times, one key: %t", len(once.keys), same)
	})
	return mux
}

type nodesKey struct{}

// child is a node in a process of its own.
type child struct {
	cmd  *exec.Cmd
	done chan error
}

// betweenLooks is the pause between two looks at another process.
const betweenLooks = 20 * time.Millisecond

func nodes(ts *testscript.TestScript) map[string]*child {
	return ts.Value(nodesKey{}).(map[string]*child)
}

func startNode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: node NAME [FLAG...]")
	}
	name := args[0]
	program, err := nodeProgram(ts)
	ts.Check(err)
	cmd := exec.Command(program, append([]string{"serve", "--listen", "127.0.0.1:0", "--json", "--node", name}, args[1:]...)...)
	cmd.Dir = ts.Getenv("WORK")
	for _, v := range []string{"PATH", "HOME", "TMPDIR", "WORK", "GORACE"} {
		cmd.Env = append(cmd.Env, v+"="+ts.Getenv(v))
	}
	log, err := os.Create(ts.MkAbs(name + ".log"))
	ts.Check(err)
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	c := &child{cmd: cmd, done: make(chan error, 1)}
	nodes(ts)[name] = c
	line := make(chan string, 1)
	go func() {
		s, _ := bufio.NewReader(out).ReadString('\n')
		line <- s
		c.done <- cmd.Wait()
		log.Close()
	}()
	ts.Defer(func() {
		_ = cmd.Process.Kill()
		<-c.done
	})
	s, ok := await.Receive(line, func() any { return ts.ReadFile(name + ".log") })
	if !ok {
		ts.Fatalf("node %s is not ready", name)
	}
	var ready struct{ URL string }
	if json.Unmarshal([]byte(s), &ready) != nil || ready.URL == "" {
		ts.Fatalf("node %s says %q\n%s", name, s, ts.ReadFile(name+".log"))
	}
	ts.Setenv("AQUEDUCT_SERVER", ready.URL)
}

func nodeProgram(ts *testscript.TestScript) (string, error) {
	for _, dir := range filepath.SplitList(ts.Getenv("NODE_PATH")) {
		if path := filepath.Join(dir, "engine-node"); exists(path) {
			return path, nil
		}
	}
	return "", errors.New("engine-node is not in NODE_PATH")
}

func end(ts *testscript.TestScript, args []string, sig os.Signal) error {
	if len(args) != 1 || nodes(ts)[args[0]] == nil {
		ts.Fatalf("there is no such node: %v", args)
	}
	c := nodes(ts)[args[0]]
	ts.Check(c.cmd.Process.Signal(sig))
	err, ok := await.Receive(c.done, func() any { return ts.ReadFile(args[0] + ".log") })
	if !ok {
		ts.Fatalf("node %s does not end", args[0])
	}
	c.done <- err
	return err
}

func drainNode(ts *testscript.TestScript, _ bool, args []string) {
	if err := end(ts, args, syscall.SIGTERM); err != nil {
		ts.Fatalf("%v\n%s", err, ts.ReadFile(args[0]+".log"))
	}
}

func crashNode(ts *testscript.TestScript, _ bool, args []string) { _ = end(ts, args, os.Kill) }

func freezeNode(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(nodes(ts)[args[0]].cmd.Process.Signal(syscall.SIGSTOP))
}

func thawNode(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(nodes(ts)[args[0]].cmd.Process.Signal(syscall.SIGCONT))
}

func answered(ts *testscript.TestScript, _ bool, _ []string) {
	answer, err := http.Get(ts.Getenv("SERVICES") + "/go")
	ts.Check(err)
	answer.Body.Close()
}

func asked(ts *testscript.TestScript, _ bool, args []string) {
	re := regexp.MustCompile(args[0])
	var w await.Wait
	for {
		answer, err := http.Get(ts.Getenv("SERVICES") + "/asked")
		ts.Check(err)
		said, err := io.ReadAll(answer.Body)
		ts.Check(err)
		answer.Body.Close()
		if re.Match(said) {
			return
		}
		if !w.Again(betweenLooks, string(said)) { // a node that hangs is waited for
			ts.Fatalf("no match for %q: %s", args[0], said)
		}
	}
}

func rushNode(ts *testscript.TestScript, _ bool, args []string) {
	c := nodes(ts)[args[0]]
	ts.Check(c.cmd.Process.Signal(syscall.SIGTERM))
	retry(ts, false, []string{"node is draining", "cat", args[0] + ".log"})
	var status *exec.ExitError
	if err := end(ts, args, syscall.SIGTERM); !errors.As(err, &status) || status.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
		ts.Fatalf("the second signal did not end node %s: %v", args[0], err)
	}
}

func exits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	var status *exec.ExitError
	got := 0
	if errors.As(err, &status) {
		got = status.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// ago is in what commands print, and differs when nothing moves.
var ago = regexp.MustCompile(`\(\d+ \w+ ago\)`)

func retry(ts *testscript.TestScript, _ bool, args []string) {
	re := regexp.MustCompile("(?m)" + args[0])
	var w await.Wait
	for {
		err := ts.Exec(args[1], args[2:]...)
		out := ts.ReadFile("stdout")
		if err == nil && re.MatchString(out) {
			return
		}
		if !w.Again(betweenLooks, ago.ReplaceAllString(out, "")) {
			ts.Fatalf("no match for %q: %v\n%s%s", args[0], err, out, ts.ReadFile("stderr"))
		}
	}
}

func enqueue(ts *testscript.TestScript, _ bool, args []string) {
	ctx := context.Background()
	c := config.Default()
	c.Store.URL = args[0]
	s, err := openStore(ctx, c.Store, c.Queue, "", 0, slog.New(slog.DiscardHandler))
	ts.Check(err)
	ts.Check(s.Parts().Writer.Commit(ctx, store.Change{Send: []store.Send{{Queue: store.Signals, Body: []byte(args[1])}}}))
	ts.Check(s.Close())
}

func script(ts *testscript.TestScript, _ bool, args []string) {
	c, err := conn.Open(strings.TrimPrefix(args[0], "sqlite://"), "")
	ts.Check(err)
	ts.Check(c.Script(args[1]))
	ts.Check(c.Close())
}
