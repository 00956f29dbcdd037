package sqlite

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/sql/embedded/schema"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/store"
)

// childEnv makes the test binary a worker on the database it names.
const childEnv = "AQUEDUCT_SQLITE_TEST_CHILD"

const (
	crashTokens = 200 // instances, each with one message on its way
	crashTurns  = 6   // versions every instance goes through
)

// work moves tokens: every message is one turn of the instance it names, and sends itself again until the instance is
// done. It returns when ctx ends or done says so.
func work(ctx context.Context, s *Store, each func(last bool)) error {
	for {
		d, err := s.Receive(ctx, store.Signals, nil)
		if err != nil {
			return err
		}
		s.Enter(d)
		id := string(d.Message().Body)
		next := snapshot.Snapshot{InstanceID: id, Status: snapshot.Running, Version: 1}
		switch got, err := d.Load(ctx, id); {
		case err == nil:
			next.Version = got.Version + 1
		case !errors.Is(err, store.ErrNotFound):
			return err
		}
		c := store.Change{Snapshot: &next}
		if next.Version < crashTurns {
			c.Send = []store.Send{{Queue: store.Signals, Body: d.Message().Body}}
		}
		if err := d.Commit(ctx, c); err != nil {
			return err // also a doubled turn: its version is taken
		}
		s.Leave(d)
		each(next.Version == crashTurns)
	}
}

// child is the process that gets killed.
func child(path string) error {
	s, err := Open(context.Background(), Options{Schema: schema.Tables{}, Path: path})
	if err != nil {
		return err
	}
	errs := make(chan error, 8)
	for range 8 {
		go func() {
			errs <- work(context.Background(), s, func(bool) {
				if n, err := os.Stdin.Read(make([]byte, 1)); n == 0 || err != nil {
					select {} // it goes no further, however late it is killed
				}
				os.Stdout.WriteString(".\n")
			})
		}()
	}
	return <-errs
}

func TestKilledProcessesLoseAndDoubleNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	s, err := Open(ctx, Options{Schema: schema.Tables{}, Path: path})
	if err != nil {
		t.Fatal(err)
	}
	for i := range crashTokens {
		if err := s.Commit(ctx, store.Change{Send: []store.Send{{Queue: store.Signals, Body: fmt.Appendf(nil, "i-%d", i)}}}); err != nil {
			t.Fatal(err)
		}
	}
	// The store of this process stays open: it is a peer that sees them die.
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() { kill(ctx, t, path, 100) })
	}
	wg.Wait()
	kill(ctx, t, path, 150)

	finish, done := context.WithCancel(ctx)
	defer done()
	count(t, s, finish, done)
	for i := range crashTokens {
		got, err := s.Load(ctx, fmt.Sprint("i-", i))
		if err != nil || got.Version != crashTurns {
			t.Fatalf("instance %d has version %d, %v", i, got.Version, err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	verify(t, path)
}

// count works until every instance is done.
func count(t *testing.T, s *Store, ctx context.Context, done func()) {
	t.Helper()
	finished := 0
	for i := range crashTokens {
		if got, err := s.Load(ctx, fmt.Sprint("i-", i)); err == nil && got.Version == crashTurns {
			finished++
		}
	}
	if finished == crashTokens {
		t.Fatal("the children did everything before they were killed")
	}
	err := work(ctx, s, func(last bool) {
		if last {
			finished++
		}
		if finished == crashTokens {
			done()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("%d of %d are done: %v", finished, crashTokens, err)
	}
}

// kill starts a worker process and kills it after a number of turns, while it makes more.
func kill(ctx context.Context, t *testing.T, path string, turns int) {
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), childEnv+"="+path)
	cmd.Stderr = os.Stderr
	cmd.Stdin = strings.NewReader(strings.Repeat(".", turns+100))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Error(err)
		return
	}
	if err := cmd.Start(); err != nil {
		t.Error(err)
		return
	}
	lines := bufio.NewScanner(out)
	for i := 0; i < turns && lines.Scan(); i++ {
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	cmd.Wait() // its error is the kill
}

// verify checks the file and that nothing is left in it of messages and nodes.
func verify(t *testing.T, path string) {
	t.Helper()
	c, err := conn.Open(path, "", Statements)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for text, want := range map[string]int64{
		"select count(*) from pragma_integrity_check where INTEGRITY_CHECK <> 'ok'": 0,
		"select count(*) from WF_MESSAGES":                                          0,
		"select count(*) from WF_NODES":                                             0,
	} {
		if got, err := c.Number(text); err != nil || got != want {
			t.Errorf("%s: got %d, %v, want %d", text, got, err, want)
		}
	}
}
