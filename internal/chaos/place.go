package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/aqueduct-engine/aqueduct/internal/ocisim"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
)

// place is a database that can be put into trouble.
type place interface {
	name() string // of testdb.Open
	url() string
	// troubles are what only this kind of database can have, by name. Each
	// lasts until it returns.
	troubles() map[string]func(ctx context.Context) error
	refusal() string                  // what clients are told of them, as it is counted
	backup(ctx context.Context) error // no node runs
	restore(ctx context.Context) error
	inMemory() int64 // what the kernel counts as memory of nodes though it is the database's
	close() error
}

// troubleTime is how long a trouble of the database lasts.
const troubleTime = 2 * time.Second

// file is an SQLite file on a small file system of its own, where the process
// may mount one; else on the common one, which is never full.
type file struct {
	dir     string
	path    string
	mounted bool
	size    int64 // of the mounted file system
	copy    string
}

// The size of that file system: for the log, and for what a second of work leaves
// in the database.
const (
	diskBytes       = 256 << 20
	diskBytesSecond = 2 << 20
)

func newFile(dir string, length time.Duration) (*file, error) {
	f := &file{dir: filepath.Join(dir, "disk"), copy: filepath.Join(dir, "backup.db")}
	f.path = filepath.Join(f.dir, "chaos.db")
	if err := os.Mkdir(f.dir, 0o700); err != nil {
		return nil, err
	}
	f.size = diskBytes + diskBytesSecond*int64(length.Seconds())
	f.mounted = unix.Mount("none", f.dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0700", f.size)) == nil
	return f, nil
}

// inMemory is the mounted file system: it is of memory, and pages that a node
// has written are the node's.
func (f *file) inMemory() int64 {
	if !f.mounted {
		return 0
	}
	return f.size
}

func (f *file) name() string { return f.path }
func (f *file) url() string  { return "sqlite://" + f.path }

func (f *file) troubles() map[string]func(ctx context.Context) error {
	list := map[string]func(ctx context.Context) error{"foreign lock": f.lock}
	if f.mounted {
		list["full disk"] = f.fill
	}
	return list
}

func (f *file) refusal() string {
	if f.mounted {
		return "answer store.full"
	}
	return "request repeated"
}

// fill leaves no byte on the disk for a while, and reads meanwhile, so that the
// write-ahead log cannot begin anew in the room that it has.
func (f *file) fill(ctx context.Context) error {
	reader, err := sql.Open("sqlite3", "file:"+f.path+"?_query_only=1")
	if err != nil {
		return err
	}
	defer reader.Close()
	tx, err := reader.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // it has only read
	var n int
	if err := tx.QueryRowContext(ctx, "select count(*) from WF_NODES").Scan(&n); err != nil {
		return err
	}
	ballast := filepath.Join(f.dir, "ballast")
	b, err := os.Create(ballast)
	if err != nil {
		return err
	}
	end := time.After(troubleTime)
	chunk := make([]byte, 1<<20)
	for {
		// Whatever becomes free is taken at once.
		for size := len(chunk); size > 0; {
			if _, err := b.Write(chunk[:size]); err != nil {
				size /= 2
			}
		}
		select {
		case <-time.After(20 * time.Millisecond):
			continue
		case <-end:
		case <-ctx.Done():
		}
		return errors.Join(b.Close(), os.Remove(ballast))
	}
}

// lock holds the write lock as a shell would that has begun a transaction.
func (f *file) lock(ctx context.Context) error {
	db, err := sql.Open("sqlite3", "file:"+f.path+"?_busy_timeout=20000")
	if err != nil {
		return err
	}
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, "begin immediate"); err != nil {
		return err
	}
	select {
	case <-time.After(troubleTime):
	case <-ctx.Done():
	}
	_, err = conn.ExecContext(context.WithoutCancel(ctx), "rollback")
	return err
}

// backup copies the file, as docs/operating.md allows while no process has it
// open.
func (f *file) backup(context.Context) error { return copyFile(f.copy, f.path) }

// restore follows docs/operating.md.
func (f *file) restore(context.Context) error {
	for _, rest := range []string{"", "-wal", "-shm", "-nodes"} {
		if err := os.RemoveAll(f.path + rest); err != nil {
			return err
		}
	}
	return copyFile(f.path, f.copy)
}

func (f *file) close() error {
	if !f.mounted {
		return nil
	}
	return unix.Unmount(f.dir, unix.MNT_DETACH)
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// schema is a schema of Oracle on the stand-in.
type schema struct {
	server *ocisim.Server
	db     *ocisim.Database
	aside  *ocisim.Database // from where db is copied
}

func newSchema(ctx context.Context) (*schema, error) {
	server, err := ocisim.Run(ctx)
	if err != nil {
		return nil, err
	}
	s := &schema{server: server}
	if s.db, err = server.Create(ctx); err == nil {
		s.aside, err = server.Create(ctx)
	}
	if err == nil {
		err = testdb.Install(ctx, s.db.DSN())
	}
	if err != nil {
		return nil, errors.Join(err, server.Close())
	}
	return s, nil
}

func (s *schema) name() string    { return s.db.DSN() }
func (s *schema) inMemory() int64 { return 0 }

func (s *schema) url() string {
	q := url.Values{"libDir": {s.db.LibDir()}}
	return "oracle://app:x@" + s.db.ConnectString() + "?" + q.Encode()
}

func (s *schema) troubles() map[string]func(ctx context.Context) error {
	return map[string]func(ctx context.Context) error{
		"broken sessions": func(ctx context.Context) error { _, err := s.db.Kill(ctx); return err },
		"server restart":  s.restart,
		"full tablespace": func(ctx context.Context) error { return s.fail(ctx, "execute", "1653") },
		"lost commits":    func(ctx context.Context) error { return s.fail(ctx, "commit", "3113") },
	}
}

func (s *schema) refusal() string { return "answer store.unreachable" }

// restart stops the server for a while.
func (s *schema) restart(ctx context.Context) error {
	if err := s.server.Halt(ctx); err != nil {
		return err
	}
	select {
	case <-time.After(troubleTime / 2):
	case <-ctx.Done():
	}
	return s.server.Resume(context.WithoutCancel(ctx))
}

// fail makes the calls of every session of nodes fail for a while: as many of
// them as the stand-in counts, and those again that come after.
func (s *schema) fail(ctx context.Context, op, code string) error {
	spec := ""
	for i := 1; i <= 12; i++ {
		if i > 1 {
			spec += ","
		}
		spec += fmt.Sprintf("%s:%d:error=%s", op, i, code)
	}
	end := time.Now().Add(troubleTime)
	for time.Now().Before(end) && ctx.Err() == nil {
		if err := s.db.Fault(ctx, "engine-node%", spec); err != nil {
			return err
		}
		select {
		case <-time.After(troubleTime / 5):
		case <-ctx.Done():
		}
	}
	return s.db.Fault(context.WithoutCancel(ctx), "engine-node%", "")
}

func (s *schema) backup(ctx context.Context) error {
	_, err := s.aside.Postgres(ctx, "drop database if exists backup")
	if err != nil {
		return err
	}
	return s.copied(ctx, "backup", s.db.Name)
}

func (s *schema) restore(ctx context.Context) error {
	if err := s.db.Drop(ctx); err != nil {
		return err
	}
	return s.copied(ctx, s.db.Name, "backup")
}

// copied copies a database; the server notices only after a moment that the
// sessions of ended processes are gone.
func (s *schema) copied(ctx context.Context, to, from string) error {
	var err error
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if _, err = s.aside.Postgres(ctx, "create database "+to+" template "+from); err == nil {
			return nil
		}
	}
	return err
}

func (s *schema) close() error { return s.server.Close() }
