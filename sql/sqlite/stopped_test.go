package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/embedded/schema"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/files"
	"github.com/aqueduct-engine/aqueduct/store"
)

// holdEnv makes the test binary a node that says where it is, and stays there until its standard input ends.
const holdEnv = "AQUEDUCT_SQLITE_TEST_HOLD"

// Places where a node can be stopped.
const (
	holdWrite   = "write"   // in SQLite's write lock
	holdGate    = "gate"    // in the first lock of the process lock
	holdMain    = "main"    // in the second
	holdMessage = "message" // with a message in hand, in no lock
	holdCommand = "command" // with a command that it has claimed
)

// holder is the process that gets stopped.
func holder(path, where string) error {
	s, err := Open(context.Background(), Options{Schema: schema.Tables{}, Path: path, Node: "holder"})
	if err != nil {
		return err
	}
	defer s.Close()
	here := func() {
		os.Stdout.WriteString("here\n")
		io.Copy(io.Discard, os.Stdin)
	}
	switch where {
	case holdWrite:
		err = s.do(context.Background(), func(t *tx) error {
			t.out.send(store.Send{Queue: store.Signals, Body: []byte("of the holder")})
			here()
			return nil
		})
	case holdGate, holdMain:
		var f *os.File
		if f, err = os.OpenFile(filepath.Join(files.Folder(path), where), os.O_RDWR, 0); err == nil {
			if err = unix.Flock(int(f.Fd()), unix.LOCK_EX); err == nil {
				here()
			}
			err = errors.Join(err, f.Close())
		}
	case holdMessage:
		var d store.Delivery
		if d, err = s.Receive(context.Background(), store.Signals, nil); err == nil {
			here()
			err = d.Commit(context.Background(), store.Change{Send: []store.Send{{Queue: store.Signals, Body: []byte("of the holder")}}})
		}
	case holdCommand:
		if err = s.Commit(context.Background(), store.Change{Claims: []store.Claim{{InstanceID: "i", Position: 1, Owner: "holder", Attempts: 1}}}); err == nil {
			here()
			done := crumb("i")
			done.Snapshot.Version, done.Rows.Settled = 2, []engine.Settled{{Position: 1}}
			late := s.Commit(context.Background(), done) // over the version that it knows
			claim := store.Claim{InstanceID: "i", Position: 1, Expect: "holder", Done: true}
			err = errors.Join(late, s.Commit(context.Background(), store.Change{Claims: []store.Claim{claim}}))
			err = errors.New(strings.ReplaceAll(fmt.Sprint(err), "\n", "; "))
		}
	}
	if err != nil {
		os.Stdout.WriteString(err.Error() + "\n")
		return err
	}
	os.Stdout.WriteString("over\n")
	return nil
}

// held is a node in another process.
type held struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.Closer
	out *bufio.Scanner
}

// hold starts a node and stops it where it is told.
func hold(t *testing.T, path, where string) *held {
	t.Helper()
	h := &held{t: t, cmd: exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")}
	h.cmd.Env = append(os.Environ(), childEnv+"="+path, holdEnv+"="+where)
	h.cmd.Stderr = os.Stderr
	in, err := h.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	h.in, h.out = in, bufio.NewScanner(out)
	t.Cleanup(func() {
		h.cmd.Process.Kill()
		h.cmd.Wait()
	})
	if !h.out.Scan() || h.out.Text() != "here" {
		t.Fatalf("the holder said %q", h.out.Text())
	}
	h.signal(syscall.SIGSTOP)
	return h
}

func (h *held) signal(s syscall.Signal) {
	h.t.Helper()
	if err := h.cmd.Process.Signal(s); err != nil {
		h.t.Fatal(err)
	}
}

// goOn lets the node finish what it does, and returns what it says of it.
func (h *held) goOn() string {
	h.t.Helper()
	h.signal(syscall.SIGCONT)
	h.in.Close()
	h.out.Scan()
	said := h.out.Text()
	h.cmd.Wait()
	return said
}

// lines is a log that tests read.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func openLogged(t *testing.T, path string) (*Store, *lines) {
	t.Helper()
	return openTrusting(t, path, 0)
}

func openTrusting(t *testing.T, path string, trust time.Duration) (*Store, *lines) {
	t.Helper()
	log := &lines{}
	s, err := Open(t.Context(), Options{Schema: schema.Tables{}, Path: path, Node: "live", Log: slog.New(slog.NewTextHandler(log, nil)), trust: trust})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, log
}

func put(ctx context.Context, s *Store, body string) error {
	return s.Commit(ctx, store.Change{Send: []store.Send{{Queue: store.Signals, Body: []byte(body)}}})
}

// TestStoppedWriterIsToldAndBounded: a process that is stopped in SQLite's write lock holds up every writer. Each is
// told so in time, by whom, and nothing is lost when that process goes on, or is killed.
func TestStoppedWriterIsToldAndBounded(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"goes on", "is killed"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "a.db")
			s, log := openLogged(t, path)
			if err := put(t.Context(), s, "before"); err != nil {
				t.Fatal(err)
			}
			h := hold(t, path, holdWrite)
			name := fmt.Sprintf("process %d (", h.cmd.Process.Pid)

			const callers = 1000 // more than several transactions take
			begun := time.Now()
			errs := make(chan error, callers)
			for i := range callers {
				go func() { errs <- put(t.Context(), s, fmt.Sprint("refused ", i)) }()
			}
			for range callers {
				if err := <-errs; problem.CodeOf(err) != "store.busy" || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), ", stopped)") {
					t.Errorf("told %v", err)
				}
			}
			if took := time.Since(begun); took > 7*busyWait {
				t.Errorf("the callers waited %s", took)
			}
			var took time.Duration
			for range 10 { // a busy machine may be late, but not each time
				again := time.Now()
				if err := put(t.Context(), s, "refused at once"); problem.CodeOf(err) != "store.busy" {
					t.Errorf("told %v", err)
				}
				if took = time.Since(again); took <= busyWait/2 {
					break
				}
			}
			if took > busyWait/2 {
				t.Errorf("told after %s, again and again", took)
			}
			// The pauses between two lines grow.
			if !strings.Contains(log.String(), name) || strings.Count(log.String(), "takes no transaction") > 5+int(time.Since(begun)/(4*busyWait)) {
				t.Errorf("logged:\n%s", log)
			}
			want := []string{"before"}
			if end == "goes on" {
				if said := h.goOn(); said != "over" {
					t.Errorf("the holder said %q", said)
				}
				want = append(want, "of the holder")
			} else {
				h.signal(syscall.SIGKILL)
				h.cmd.Wait()
			}
			if err := put(t.Context(), s, "after"); err != nil {
				t.Fatal(err)
			}
			want = append(want, "after")
			for _, body := range want {
				d, err := s.Receive(t.Context(), store.Signals, nil)
				if err != nil || string(d.Message().Body) != body {
					t.Fatalf("received %q, %v, want %q", d.Message().Body, err, body)
				}
				if err := d.Commit(t.Context(), store.Change{}); err != nil {
					t.Fatal(err)
				}
			}
			for !strings.Contains(log.String(), "works again") { // which it is only said to do after a while
				if err := s.Probe(t.Context()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(50 * time.Millisecond)
			}
		})
	}
}

// TestStoppedWithTheProcessLockHoldsNobodyUp: the process lock is for fairness; who is
// stopped in it costs the others its wait once.
func TestStoppedWithTheProcessLockHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	for _, where := range []string{holdGate, holdMain} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "a.db")
			s, log := openLogged(t, path)
			h := hold(t, path, where)
			for range 2 { // it jams, opens, and jams again
				for i := range 50 {
					if err := put(t.Context(), s, fmt.Sprint(i)); err != nil {
						t.Fatal(err)
					}
				}
			}
			// Each wait that was in vain would be told.
			if n := strings.Count(log.String(), "hangs with the process lock"); n != 1 {
				t.Errorf("told %d times:\n%s", n, log)
			}
			if said := h.goOn(); said != "over" {
				t.Errorf("the holder said %q", said)
			}
			if err := put(t.Context(), s, "after"); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestStoppedNodesMessagesAreTakenOver: what a stopped node has in hand goes to
// another; when it goes on, its commit is refused.
func TestStoppedNodesMessagesAreTakenOver(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	s, log := openLogged(t, path)
	if err := put(t.Context(), s, "once"); err != nil {
		t.Fatal(err)
	}
	h := hold(t, path, holdMessage)
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	d, err := s.Receive(ctx, store.Signals, nil)
	if err != nil || string(d.Message().Body) != "once" {
		t.Fatalf("received %v, %v", d, err)
	}
	if err := d.Commit(t.Context(), store.Change{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "gives no sign of life") {
		t.Errorf("logged:\n%s", log)
	}
	if said := h.goOn(); !strings.Contains(said, store.ErrLost.Error()) {
		t.Errorf("the stopped node's commit: %q", said)
	}
	var left int
	if err := s.db.QueryRow("select count(*) from WF_MESSAGES").Scan(&left); err != nil || left != 0 {
		t.Errorf("left %d messages, %v", left, err)
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		t.Error("it took too long")
	}
}

// TestStoppedNodesCommandsAreTakenOver: a command that a stopped node has claimed is announced again, marked as
// perhaps performed; another node performs and settles it, and what the stopped one commits of it when it goes on is
// refused.
func TestStoppedNodesCommandsAreTakenOver(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	s, _ := openLogged(t, path)
	open := false
	c := crumb("i")
	c.Rows.Stream = []projections.Entry{{InstanceID: "i", Position: 1, Kind: "command", Type: "call", Processed: &open, Data: []byte("{}")}}
	ok(t, s.Commit(t.Context(), c))
	h := hold(t, path, holdCommand)
	if n, err := s.Orphans(t.Context(), 10); n != 0 || err != nil {
		t.Fatalf("%d orphans of a node that was stopped just now, %v", n, err)
	}
	select {
	case <-s.PeerFailures():
	case <-time.After(15 * time.Minute):
		t.Fatal("nobody says that the node hangs")
	}
	if n, err := s.Orphans(t.Context(), 10); n != 1 || err != nil {
		t.Fatalf("%d orphans, %v", n, err)
	}
	d, err := s.Receive(t.Context(), store.Commands, nil)
	ok(t, err)
	ok(t, d.Commit(t.Context(), store.Change{Claims: []store.Claim{{InstanceID: "i", Position: 1, Owner: "live", Attempts: 2, Unknown: true}}}))
	done := crumb("i")
	done.Snapshot.Version, done.Rows.Settled = 2, []engine.Settled{{Position: 1}}
	ok(t, s.Commit(t.Context(), done))
	said := h.goOn()
	if !strings.Contains(said, store.ErrStale.Error()) || !strings.Contains(said, store.ErrTaken.Error()) {
		t.Errorf("the stopped node's commits: %q", said)
	}
	if n, err := s.Orphans(t.Context(), 10); n != 0 || err != nil {
		t.Errorf("%d orphans in the end, %v", n, err)
	}
	var all, processed int
	ok(t, s.db.QueryRowContext(t.Context(), "select count(*), sum(PROCESSED) from WF_STREAM").Scan(&all, &processed))
	if all != 1 || processed != 1 {
		t.Errorf("%d entries, %d processed", all, processed)
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
