package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/problem"
)

// passing publishes files that it has refused in passing once.
type passing struct {
	mu        sync.Mutex
	refused   map[string]error
	published chan string
}

func (p *passing) Publish(_ context.Context, file string, _ []byte) (definition.Record, bool, error) {
	p.mu.Lock()
	err, known := p.refused[filepath.Base(file)]
	if problem.KindOf(err) != problem.Invalid {
		delete(p.refused, filepath.Base(file))
	}
	p.mu.Unlock()
	if !known {
		p.published <- filepath.Base(file)
	}
	return definition.Record{}, true, err
}

func (*passing) PublishAll(context.Context, []definition.Document) ([]definition.Published, error) {
	return nil, nil
}

// What cannot be published for now, as when the database is away, is tried again without a change of
// its file, when the watch begins and later. What is wrong is not.
func TestAWatchTriesAgainWhatIsRefusedForNow(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write := func(name string) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("\uFEFFdocument: {}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first.yaml")
	write("wrong.yaml")
	p := &passing{published: make(chan string), refused: map[string]error{
		"first.yaml": problem.New(problem.Unavailable, "store.unreachable", "away"), "later.yaml": errors.New("who knows"),
		"wrong.yaml": problem.New(problem.Invalid, "definition.invalid", "wrong"),
	}}
	w, err := watch(t.Context(), folder, p, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	go func() { _ = w.run(t.Context()) }()
	if file := <-p.published; file != "first.yaml" {
		t.Errorf("%s was published", file)
	}
	write("later.yaml")
	if file := <-p.published; file != "later.yaml" {
		t.Errorf("%s was published", file)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.refused) != 1 {
		t.Errorf("left are %v", p.refused)
	}
}

// What the folder's name leads to is watched, also when a link on the way is switched, or another
// folder takes its place, under the same number of the file system or not.
func TestAWatchFollowsItsFolder(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	release := func(folder, file string) {
		if err := errors.Join(os.MkdirAll(filepath.Join(top, folder, "flows"), 0o700),
			os.WriteFile(filepath.Join(top, folder, "flows", file), []byte("document: {}\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	current := filepath.Join(top, "current")
	leads := func(to string) {
		if err := errors.Join(os.Symlink(to, current+"-"), os.Rename(current+"-", current)); err != nil {
			t.Fatal(err)
		}
	}
	release("v1", "one.yaml")
	leads("v1")
	p := &passing{published: make(chan string, 10)}
	w, err := watch(t.Context(), filepath.Join(current, "flows"), p, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	go func() { _ = w.run(t.Context()) }()
	comes := func(file string) {
		t.Helper()
		select {
		case got := <-p.published:
			if got != file {
				t.Fatalf("%s was published, not %s", got, file)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("%s was not published", file)
		}
	}
	comes("one.yaml")
	release("v2", "two.yaml")
	leads("v2")
	comes("two.yaml")
	release("v2", "three.yaml")
	comes("three.yaml")
	if err := os.RemoveAll(filepath.Join(top, "v2", "flows")); err != nil {
		t.Fatal(err)
	}
	release("v2", "four.yaml")
	comes("four.yaml")
}

// Of more folders than are watched the rest is left out, and no file of the others; folders that are gone make room.
func TestAWatchOfTooManyFolders(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	write := func(folder, file string) {
		if err := errors.Join(os.MkdirAll(filepath.Join(top, folder), 0o700),
			os.WriteFile(filepath.Join(top, folder, file), []byte("document: {}\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range watchFolders + 5 {
		if err := os.Mkdir(filepath.Join(top, fmt.Sprintf("d%04d", i)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write("", "zz.yaml")
	write(fmt.Sprintf("d%04d", watchFolders+4), "last.yaml")
	p := &passing{published: make(chan string, 10)}
	w, err := watch(t.Context(), top, p, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	go func() { _ = w.run(t.Context()) }()
	if got := <-p.published; got != "zz.yaml" {
		t.Fatalf("%s is published, not zz.yaml", got)
	}
	for i := range 10 {
		if err := os.Remove(filepath.Join(top, fmt.Sprintf("d%04d", i))); err != nil {
			t.Fatal(err)
		}
	}
	for got := ""; got != "last.yaml"; got = <-p.published {
		if got != "" && got != "zz.yaml" { // which is published again, and is the same
			t.Fatalf("%s is published", got)
		}
	}
}

// Who gave a definition another name is told so, once; other files are nobody's concern.
func TestWhatAWatchDoesNotTake(t *testing.T) {
	t.Parallel()
	folder, other := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		"flow.txt": "# mine\n---\ndocument: {}\n", "flow.YAML": "\uFEFFlifecycle: '1.0'\n", "flow.json.txt": `{"policy": "1.0"}`,
		"sorted.json": `{"do": [], "document": {}}`, "input.json": "{\"customer\": {\n  \"policy\": 7}}",
		"flow.yaml~": "document: {}\n", ".flow.txt": "document: {}\n", "flow.yaml.bak": "document: {}\n",
		"README.md": "# Flows\n\nWrite\n\ndocument: {}\n", "other.yaml": "name: x\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(other, filepath.Join(folder, "linked")); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	p := &passing{published: make(chan string, 10)}
	w, err := watch(t.Context(), folder, p, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	files, err := w.settle()
	if err != nil {
		t.Fatal(err)
	}
	if again := len(w.documents(files)); again != 1 || len(p.published) != 1 || <-p.published != "sorted.json" {
		t.Error("other files are published:", again)
	}
	for _, name := range []string{"flow.txt", "flow.YAML", "flow.json.txt", "linked"} {
		if strings.Count(log.String(), filepath.Join(folder, name)+"\n")+strings.Count(log.String(), filepath.Join(folder, name)+" ") != 1 {
			t.Errorf("%s is not told once: %s", name, &log)
		}
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 4 {
		t.Errorf("%d files are told of: %s", n, &log)
	}
}
