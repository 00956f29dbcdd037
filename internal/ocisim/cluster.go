package ocisim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// startLimit is how long a server may take to accept connections.
const startLimit = 10 * time.Minute

// settings are for speed and not for safety: the files are deleted anyway. A
// minimal log has nothing of what is written into new files.
const settings = `
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
fsync = off
synchronous_commit = off
full_page_writes = off
wal_level = minimal
max_wal_senders = 0
max_wal_size = 64MB
jit = off
max_connections = 400
deadlock_timeout = 200ms
autovacuum_naptime = 5s
`

// supervise runs the server as long as its standard input stays open: it ends
// with the process that holds the other end, however that process ends.
const supervise = `"$@" </dev/null & server=$!
(read -r _; kill -INT $server 2>/dev/null; sleep 10; kill -KILL $server 2>/dev/null) <&3 & reader=$!
wait $server; kill $reader 2>/dev/null
if [ -n "$OCISIM_GONE" ] && ! [ -e "$OCISIM_GONE/keep" ]; then rm -rf "$OCISIM_GONE"; fi`

// cluster is a PostgreSQL cluster in a temporary directory.
type cluster struct {
	pg   postgres
	dir  string
	port int
	cred *syscall.Credential // nil = run as ourselves

	mu   sync.Mutex
	cmd  *exec.Cmd // nil = stopped
	hold *os.File
}

// startCluster makes and starts a cluster, in a directory of base.
func startCluster(ctx context.Context, pg postgres, base string) (*cluster, error) {
	c := &cluster{pg: pg}
	var err error
	if c.cred, err = serverUser(); err != nil {
		return nil, err
	}
	if c.dir, err = os.MkdirTemp(base, "aqueduct-pg-"); err != nil {
		return nil, err
	}
	if err := c.init(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(c.dir))
	}
	// A free port may be taken before the server has it; another is tried.
	for try := 0; ; try++ {
		if c.port, err = freePort(); err != nil {
			break
		}
		if err = c.start(ctx); err == nil || try == 2 {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(c.dir))
	}
	return c, nil
}

// memoryDir is a directory in memory with room for the databases of tests, where
// a copy costs a third of what it costs on a disk; empty = there is none, or
// TMPDIR says where temporary files go.
func memoryDir() string {
	const (
		dir  = "/dev/shm"
		room = 2 << 30
	)
	var fs syscall.Statfs_t
	if os.Getenv("TMPDIR") != "" || syscall.Statfs(dir, &fs) != nil || int64(fs.Bavail)*fs.Bsize < room {
		return ""
	}
	return dir
}

func (c *cluster) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(c.port)) }

// serverUser is whom the server runs as: PostgreSQL refuses root.
func serverUser() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uerr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gerr := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(uerr, gerr); err != nil {
			return nil, err
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("ocisim: root cannot run PostgreSQL, and there is no user postgres or nobody")
}

// freePort asks the system for a port that nobody listens on.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// command is a PostgreSQL program run as the server's user.
func (c *cluster) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(c.pg.bin, name), args...)
	cmd.Dir = c.dir
	cmd.Env = append(os.Environ(), "HOME="+c.dir, "LC_ALL=C", "TZ=UTC", "LD_PRELOAD=")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: c.cred}
	return cmd
}

// init makes the files of the cluster.
func (c *cluster) init(ctx context.Context) error {
	if c.cred != nil {
		if err := os.Chown(c.dir, int(c.cred.Uid), int(c.cred.Gid)); err != nil {
			return err
		}
	}
	data := filepath.Join(c.dir, "data")
	out, err := c.command(ctx, "initdb", "-D", data, "-U", superuser, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync").CombinedOutput()
	if err != nil {
		return fmt.Errorf("ocisim: initdb: %w: %s", err, tail(out))
	}
	f, err := os.OpenFile(filepath.Join(data, "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, settings)
	return errors.Join(err, f.Close())
}

// start starts the server and waits until it answers.
func (c *cluster) start(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cmd != nil {
		return nil
	}
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	log, err := os.OpenFile(filepath.Join(c.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return errors.Join(err, write.Close())
	}
	defer log.Close()
	server := c.command(context.WithoutCancel(ctx), "postgres")
	cmd := exec.Command("/bin/sh", "-c", supervise, "supervise",
		server.Path, "-D", filepath.Join(c.dir, "data"), "-p", strconv.Itoa(c.port))
	cmd.Dir, cmd.SysProcAttr = c.dir, server.SysProcAttr
	cmd.SysProcAttr.Setsid = true
	cmd.Env = append(server.Env, "OCISIM_GONE="+c.dir)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{read}
	if err := cmd.Start(); err != nil {
		return errors.Join(err, write.Close())
	}
	c.cmd, c.hold = cmd, write
	if err := c.awaitReady(ctx); err != nil {
		return errors.Join(err, c.stopLocked())
	}
	return nil
}

// awaitReady waits until the server answers a query.
func (c *cluster) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for {
		_, err := c.psql(ctx, "postgres", "select 1")
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			log, _ := os.ReadFile(filepath.Join(c.dir, "log"))
			return fmt.Errorf("ocisim: PostgreSQL does not answer: %w: %s", err, tail(log))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// psql runs SQL as the superuser and returns its output, unadorned.
func (c *cluster) psql(ctx context.Context, database, sql string) (string, error) {
	cmd := c.command(ctx, "psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1",
		"-h", "127.0.0.1", "-p", strconv.Itoa(c.port), "-U", superuser, "-d", database, "-c", sql)
	cmd.Env = append(cmd.Env, "PGOPTIONS=-c client_min_messages=warning")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("ocisim: psql: %w: %s", err, tail(out))
	}
	return tail(out), nil
}

// stop ends the server at once, breaking its sessions, and keeps the files.
func (c *cluster) stop(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stopLocked()
}

func (c *cluster) stopLocked() error {
	if c.cmd == nil {
		return nil
	}
	keep := filepath.Join(c.dir, "keep")
	if err := os.WriteFile(keep, nil, 0o644); err != nil {
		return err
	}
	err := c.hold.Close()
	// The exit status says how the server died, which we know.
	_ = c.cmd.Wait()
	c.cmd, c.hold = nil, nil
	return errors.Join(err, os.Remove(keep))
}

// close ends the server and deletes its files.
func (c *cluster) close() error {
	return errors.Join(c.stop(context.Background()), os.RemoveAll(c.dir))
}
