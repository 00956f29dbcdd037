package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"

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
