package files_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/aqueduct-engine/aqueduct/sql/sqlite/files"
)

// joined is a node that sees others, and is seen when it has a number.
func joined(t *testing.T, path string) *files.Peers {
	t.Helper()
	a, err := files.AccessOf("")
	if err != nil {
		t.Fatal(err)
	}
	p, err := files.Join(path, a, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func named(t *testing.T, path string, no int64) *files.Peers {
	t.Helper()
	p := joined(t, path)
	if err := p.Name(no); err != nil {
		t.Fatal(err)
	}
	return p
}

// What a transaction has numbered that was rolled back, the next one numbers again: a
// node removes its own files, and not those of the one that has its number now.
func TestFilesOfAnotherAreLeft(t *testing.T) {
	for name, end := range map[string]func(first *files.Peers, seen *os.File){
		"aborted": func(first *files.Peers, _ *os.File) { first.Abort() },
		"left": func(first *files.Peers, _ *os.File) {
			if err := first.Leave(false); err != nil {
				t.Error(err)
			}
		},
		"recovered": func(first *files.Peers, seen *os.File) {
			first.Remove(7, seen)
			first.Abort()
		},
	} {
		path := filepath.Join(t.TempDir(), "a.db")
		first := named(t, path, 7)
		seen, err := os.Open(filepath.Join(files.Folder(path), "7.node"))
		if err != nil {
			t.Fatal(err)
		}
		second := named(t, path, 7)
		end(first, seen)
		seen.Close()
		if n, err := files.Live(path); n != 1 || err != nil {
			t.Errorf("%s: %d nodes live, %v", name, n, err)
		}
		if _, err := os.Stat(filepath.Join(files.Folder(path), "7.wake")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := second.Leave(false); err != nil {
			t.Error(err)
		}
		if left, err := filepath.Glob(filepath.Join(files.Folder(path), "7.*")); len(left) > 0 || err != nil {
			t.Errorf("%s: the second has left %v, %v", name, left, err)
		}
	}
}

// A node that has no descriptor to look takes nobody for dead, and itself not for
// alone; it finds the others when it has one.
func TestWithoutDescriptorsNobodyIsDead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	a, b := named(t, path, 1), named(t, path, 2)
	defer a.Leave(false)
	defer b.Leave(false)
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	low := was
	low.Cur = 3
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &low); err != nil {
		t.Fatal(err)
	}
	found, alone := b.Scan(), b.Alone()
	alive, _ := b.Probe(1)
	live, errLive := files.Live(path)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &was); err != nil {
		t.Fatal(err)
	}
	if found || alone || !alive || errLive == nil {
		t.Errorf("found %v, alone %v, alive %v, %d live (%v)", found, alone, alive, live, errLive)
	}
	if !b.Scan() || b.Alone() || b.Scan() {
		t.Error("the other is not found once")
	}
	if _, f := b.Probe(3); f != nil {
		t.Error("there is no node 3")
	}
}

// A peer whose wake file is gone is found once: two who tell each other of each peer that
// they find would not end.
func TestAPeerWithoutAWakeFileIsFoundOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	a, b := joined(t, path), named(t, path, 2)
	defer a.Leave(false)
	defer b.Leave(false)
	if err := os.Remove(filepath.Join(files.Folder(path), "2.wake")); err != nil {
		t.Fatal(err)
	}
	if first, second := a.Scan(), a.Scan(); !first || second {
		t.Errorf("found: %t, and then %t", first, second)
	}
}
