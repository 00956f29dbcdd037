package ocisim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
)

const (
	superuser = "app"           // may do everything, like an owner with the DBA role
	template  = "ocisim_booted" // a database with the stand-in's schema in it
)

// Database is a database of one test. Its users are shared by the server.
type Database struct {
	Name string

	server *Server
}

// bootTemplate makes the database that others are copied from.
func (s *Server) bootTemplate(ctx context.Context) error {
	parts, err := fs.Glob(client, "client/boot/*.sql")
	if err != nil {
		return err
	}
	var boot strings.Builder
	for _, name := range parts { // in order
		part, err := client.ReadFile(name)
		if err != nil {
			return err
		}
		boot.Write(part)
	}
	if _, err := s.cluster.psql(ctx, "postgres", "create database "+template); err != nil {
		return err
	}
	_, err = s.cluster.psql(ctx, template, boot.String())
	return err
}

// Create makes an empty database.
func (s *Server) Create(ctx context.Context) (*Database, error) {
	s.mu.Lock()
	defer s.mu.Unlock() // two copies of a template cannot be made at once
	return s.copyOf(ctx, template)
}

// Copy makes a database of a kind: like one that was empty before prepare, which
// runs once for a kind and leaves no session behind.
func (s *Server) Copy(ctx context.Context, kind string, prepare func(context.Context, *Database) error) (*Database, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kinds[kind] == "" {
		d, err := s.copyOf(ctx, template)
		if err != nil {
			return nil, err
		}
		if err := prepare(ctx, d); err != nil {
			return nil, errors.Join(err, d.Drop(ctx))
		}
		if s.kinds == nil {
			s.kinds = map[string]string{}
		}
		s.kinds[kind] = d.Name
	}
	return s.copyOf(ctx, s.kinds[kind])
}

// copyFiles makes templates be copied file by file, which in memory costs half
// of what page by page does; on a disk it costs double.
func (s *Server) copyFiles(ctx context.Context) error {
	choice, err := s.cluster.psql(ctx, "postgres", "select current_setting('server_version_num')::int >= 150000")
	if choice == "t" { // older servers know no other way
		s.copying = " strategy file_copy"
	}
	return err
}

// copyOf copies a database that nobody is connected to.
func (s *Server) copyOf(ctx context.Context, name string) (*Database, error) {
	s.made++
	d := &Database{Name: fmt.Sprintf("test%d", s.made), server: s}
	_, err := s.cluster.psql(ctx, "postgres", "create database "+d.Name+" template "+name+s.copying)
	if err != nil {
		return nil, err
	}
	return d, nil
}

// NewDatabase makes an empty database that is dropped with the test.
func (s *Server) NewDatabase(t testing.TB) *Database {
	t.Helper()
	d, err := s.Create(t.Context())
	return d.of(t, err)
}

// NewCopy is Copy for a test: the database is dropped with it.
func (s *Server) NewCopy(t testing.TB, kind string, prepare func(context.Context, *Database) error) *Database {
	t.Helper()
	d, err := s.Copy(t.Context(), kind, prepare)
	return d.of(t, err)
}

// of gives a database to a test, which ends if there is none.
func (d *Database) of(t testing.TB, err error) *Database {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Drop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return d
}

// Drop deletes the database and breaks the sessions on it.
func (d *Database) Drop(ctx context.Context) error {
	_, err := d.server.cluster.psql(ctx, "postgres", "drop database if exists "+d.Name+" with (force)")
	return err
}

// ConnectString is what Oracle calls EZConnect: host:port/service.
func (d *Database) ConnectString() string { return d.server.Address + "/" + d.Name }

// DSN is a data source name for godror: a user with all rights, standalone
// connections, UTC, and the library's directory.
func (d *Database) DSN() string { return d.UserDSN(superuser) }

// UserDSN is the data source name of another user; any password fits.
func (d *Database) UserDSN(user string) string {
	return fmt.Sprintf("user=%q password=%q connectString=%q libDir=%q timezone=UTC standaloneConnection=1",
		user, "x", d.ConnectString(), d.server.LibDir)
}

// LibDir is where the library is.
func (d *Database) LibDir() string { return d.server.LibDir }

// Env is the environment of a process that finds the library without libDir.
func (d *Database) Env() []string {
	return append(os.Environ(), "LD_LIBRARY_PATH="+d.server.LibDir)
}

// CreateUser makes a user without rights, with a schema of its own name in
// this database. Users are known to all databases of the server.
func (d *Database) CreateUser(ctx context.Context, name string) error {
	name = strings.ToLower(name)
	_, err := d.Postgres(ctx, fmt.Sprintf("call ocisim.create_user('%s', false)", name))
	return err
}

// Kill breaks every session of the database, as a crash of its processes
// would, and says how many there were.
func (d *Database) Kill(ctx context.Context) (string, error) {
	return d.Postgres(ctx, "select count(pg_terminate_backend(pid)) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() and application_name like 'ocisim%'")
}

// Sessions counts the sessions that clients hold.
func (d *Database) Sessions(ctx context.Context) (string, error) {
	return d.Postgres(ctx, "select count(*) from pg_stat_activity where datname = current_database() and application_name like 'ocisim:%'")
}

// Fault makes calls fail in the sessions of clients whose name is like a
// pattern of SQL: those in whose environment OCISIM_NAME is so, or whose program
// is called so. It replaces the faults set before; an empty specification is
// none. The specification is op:nth:action[=argument], separated by commas; see
// README.md. New sessions have it at once, open ones moments later.
func (d *Database) Fault(ctx context.Context, client, specification string) error {
	quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
	sql := "delete from ocisim.fault where client = " + quote(client)
	if specification != "" {
		sql += "; insert into ocisim.fault values (" + quote(client) + ", " + quote(specification) + ")"
	}
	_, err := d.Postgres(ctx, sql+"; notify ocisim_fault")
	return err
}

// Postgres runs PostgreSQL's own SQL beside the stand-in and returns its
// output: for a checker that must not lean on the code it checks.
func (d *Database) Postgres(ctx context.Context, sql string) (string, error) {
	return d.server.cluster.psql(ctx, d.Name, sql)
}
