// Package ocisim is a stand-in for the client library of Oracle, for tests
// only: godror, unchanged, loads a libclntsh.so that speaks to a private
// PostgreSQL.
//
// It is not Oracle. It executes the driver, the SQL, the binds, transactions,
// queues, faults and round trips of this project on every commit; what it
// cannot prove is listed in README.md.
//
// [Start] builds the library, starts a server that ends with the process, and
// gives databases: [Server.NewDatabase] is an empty one for a test, with its
// data source name for godror, and [Server.NewCopy] one with a schema in it. [Database] breaks what a test wants broken:
// sessions are killed, the server restarts, calls fail by [Database.Fault].
package ocisim

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
)

// errMissing says that PostgreSQL or the C compiler is neither installed nor
// installable here.
var errMissing = errors.New("ocisim: PostgreSQL and gcc are needed")

// Server is a private PostgreSQL with the stand-in library beside it.
type Server struct {
	// LibDir holds libclntsh.so: godror's libDir, or LD_LIBRARY_PATH.
	LibDir string
	// Address is host:port of the server.
	Address string

	cluster *cluster
	mu      sync.Mutex
	made    int               // databases
	kinds   map[string]string // template of each kind of Copy
	copying string            // how a template is copied
}

// Run builds the library and starts a server of its own; Close ends it, and so
// does the end of the process.
func Run(ctx context.Context) (*Server, error) { return run(ctx, "") }

// run does it with the server's files in a directory of base.
func run(ctx context.Context, base string) (*Server, error) {
	pg, err := findPostgres(ctx)
	if err != nil {
		return nil, err
	}
	lib, err := buildLibrary(ctx, pg)
	if err != nil {
		return nil, err
	}
	c, err := startCluster(ctx, pg, base)
	if err != nil {
		return nil, err
	}
	s := &Server{LibDir: lib, Address: c.address(), cluster: c}
	err = s.bootTemplate(ctx)
	if err == nil && base != "" {
		err = s.copyFiles(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return s, nil
}

// Close ends the server and deletes its files.
func (s *Server) Close() error { return s.cluster.close() }

var shared struct {
	sync.Once
	server *Server
	err    error
}

// Start gives the server that all tests of the process share. Where PostgreSQL
// is missing it skips the test and says so; with CI=true that is a failure.
func Start(t testing.TB) *Server {
	t.Helper()
	shared.Do(func() { shared.server, shared.err = run(context.Background(), memoryDir()) })
	if errors.Is(shared.err, errMissing) && os.Getenv("CI") != "true" {
		t.Skip(shared.err)
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server
}

// Stop ends the server that tests share; TestMain may call it after the tests.
func Stop() error {
	if shared.server == nil {
		return nil
	}
	return shared.server.Close()
}

// Restart stops the server, breaking every session, and starts it again.
func (s *Server) Restart(ctx context.Context) error {
	if err := s.Halt(ctx); err != nil {
		return err
	}
	return s.Resume(ctx)
}

// Halt stops the server; sessions break and nobody can connect.
func (s *Server) Halt(ctx context.Context) error { return s.cluster.stop(ctx) }

// Resume starts a stopped server on its old address with its old data.
func (s *Server) Resume(ctx context.Context) error {
	if err := s.cluster.start(ctx); err != nil {
		return fmt.Errorf("ocisim: restart: %w", err)
	}
	return nil
}
