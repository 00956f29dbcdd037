package embedded

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
)

// BaselineResult is what the bare loop of [Baseline] reached.
type BaselineResult struct {
	PerSecond float64
	P50       time.Duration // from asking for a commit to having it
}

// Baseline measures what this disk, driver and durability allow: a bare loop that
// commits the least rows one step can be made of, and nothing else. Callers
// goroutines commit n steps in all; those that wait together share one
// transaction, as in the store. A step is the state of 1 KB updated under its
// version, the command row, its result row, and the command marked processed.
//
// It is the measure beside every figure of `engine-node bench`; no node uses it.
func Baseline(ctx context.Context, dir string, d sqlite.Durability, n, callers int) (BaselineResult, error) {
	path := filepath.Join(dir, "baseline.db")
	c, err := sqlite.OpenWriter(sqlite.Options{Path: path, Durability: d, Cache: sqlite.DefaultCache, Statements: []embed.FS{sqlite.Statements}})
	if err != nil {
		return BaselineResult{}, wrap("baseline", conn.Explain(err, path))
	}
	defer c.Close()
	f := &bareLoop{c: c, steps: make(chan *bareStep, callers), state: make([]byte, 1024)}
	if err := f.prepare(callers); err != nil {
		return BaselineResult{}, wrap("baseline", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- f.write() }()
	begun := time.Now()
	latencies := f.load(ctx, n, callers)
	seconds := time.Since(begun).Seconds()
	close(f.steps)
	if err := errors.Join(<-ended, ctx.Err()); err != nil {
		return BaselineResult{}, wrap("baseline", err)
	}
	slices.Sort(latencies)
	return BaselineResult{PerSecond: float64(len(latencies)) / seconds, P50: latencies[len(latencies)/2]}, nil
}

type bareLoop struct {
	c      *conn.Conn
	steps  chan *bareStep
	state  []byte
	update *conn.Stmt
	insert *conn.Stmt
	settle *conn.Stmt
}

type bareStep struct {
	instance, version int64
	done              chan struct{}
}

func (f *bareLoop) prepare(callers int) error {
	err := f.c.Script(`pragma journal_mode = wal;
create table STATES (NO integer primary key, VERSION integer not null, DOC blob not null);
create table STREAM (NO integer primary key, PROCESSED integer, DATA blob);`)
	for i := 1; err == nil && i <= callers; i++ {
		err = f.c.Script(fmt.Sprintf("insert into STATES values (%d, 0, zeroblob(1024))", i))
	}
	for _, s := range []struct {
		stmt **conn.Stmt
		text string
	}{
		{&f.update, "update STATES set VERSION = ?, DOC = ? where NO = ? and VERSION = ?"},
		{&f.insert, "insert into STREAM (NO, PROCESSED, DATA) values (?, ?, ?)"},
		{&f.settle, "update STREAM set PROCESSED = 1 where NO = ? and PROCESSED = 0"},
	} {
		if err == nil {
			*s.stmt, err = f.c.Prepare(s.text)
		}
	}
	return err
}

// load asks for n steps from callers goroutines, each on an instance of its own.
func (f *bareLoop) load(ctx context.Context, n, callers int) []time.Duration {
	var wg sync.WaitGroup
	all := make([][]time.Duration, callers)
	for i := range callers {
		wg.Go(func() {
			s := &bareStep{instance: int64(i + 1), done: make(chan struct{}, 1)}
			for range max(n/callers, 1) {
				if ctx.Err() != nil {
					return
				}
				begun := time.Now()
				s.version++
				f.steps <- s
				<-s.done
				all[i] = append(all[i], time.Since(begun))
			}
		})
	}
	wg.Wait()
	return slices.Concat(all...)
}

// write commits whatever waits, again and again. After an error it only
// answers, so that nobody waits for ever.
func (f *bareLoop) write() error {
	var failed error
	var group []*bareStep
	for s := range f.steps {
		group = append(group[:0], s)
		for more := true; more && len(group) < sqlite.DefaultBatch; {
			select {
			case s, more = <-f.steps:
				if more {
					group = append(group, s)
				}
			default:
				more = false
			}
		}
		if failed == nil {
			failed = f.commit(group)
		}
		for _, s := range group {
			s.done <- struct{}{}
		}
	}
	return failed
}

func (f *bareLoop) commit(group []*bareStep) error {
	if _, _, err := f.c.Exec("begin"); err != nil {
		return err
	}
	for _, s := range group {
		entry := s.instance<<sqlite.PositionBits | 2*s.version
		for _, x := range []struct {
			stmt *conn.Stmt
			args []any
		}{
			{f.update, []any{s.version, f.state, s.instance, s.version - 1}},
			{f.insert, []any{entry, int64(0), f.state[:150]}},
			{f.settle, []any{entry}},
			{f.insert, []any{entry + 1, nil, f.state[:150]}},
		} {
			_, rows, err := f.c.Run(x.stmt, x.args...)
			if err != nil {
				return err
			}
			if rows != 1 {
				return fmt.Errorf("a step changed %d rows", rows)
			}
		}
	}
	_, _, err := f.c.Exec("commit")
	return err
}
