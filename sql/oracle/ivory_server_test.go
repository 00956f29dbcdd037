//go:build ivory

package oracle

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// ivory is a server of IvorySQL's in Oracle mode, made for one test.
type ivory struct {
	t    *testing.T
	bin  string
	dir  string
	port int // of Oracle mode
	cred *syscall.Credential
	used int // units of scripts that were executed
}

const (
	ivoryAdmin    = "ivorysql"
	ivoryDatabase = "aqueduct"
)

// startIvory makes a server of the installation at home, with a database of its own.
func startIvory(t *testing.T, home string) *ivory {
	t.Helper()
	s := &ivory{t: t, bin: filepath.Join(home, "bin")}
	for _, name := range []string{"initdb", "pg_ctl", "psql"} {
		if _, err := os.Stat(filepath.Join(s.bin, name)); err != nil {
			t.Fatalf("IVORYSQL_HOME=%s is no installation of IvorySQL: %v", home, err)
		}
	}
	dir, err := os.MkdirTemp("", "aqueduct-ivory-") // t.TempDir is closed to the server's user
	if err != nil {
		t.Fatal(err)
	}
	s.dir = dir
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if os.Geteuid() == 0 {
		s.cred = serverUser(t)
		if err := os.Chown(dir, int(s.cred.Uid), int(s.cred.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	data := filepath.Join(dir, "data")
	s.must("initdb", "-D", data, "-U", ivoryAdmin, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "-m", "oracle")
	s.port = freePort(t)
	settings := fmt.Sprintf("\nport = %d\nivorysql.port = %d\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = ''\nfsync = off\ntimezone = 'UTC'\n",
		freePort(t), s.port)
	f, err := os.OpenFile(filepath.Join(data, "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(settings)
	if cerr := f.Close(); err != nil || cerr != nil {
		t.Fatal(err, cerr)
	}
	s.must("pg_ctl", "-D", data, "-l", filepath.Join(dir, "log"), "-w", "start")
	t.Cleanup(func() { s.must("pg_ctl", "-D", data, "-w", "-m", "immediate", "stop") })
	if _, err := s.psql(ivoryAdmin, "postgres", "CREATE DATABASE "+ivoryDatabase); err != nil {
		t.Fatal(err)
	}
	return s
}

// serverUser is whom the server runs as where we are root, which it refuses.
func serverUser(t *testing.T) *syscall.Credential {
	t.Helper()
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uerr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gerr := strconv.ParseUint(u.Gid, 10, 32)
		if uerr == nil && gerr == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		}
	}
	t.Fatal("root cannot run the server, and there is no user postgres or nobody")
	return nil
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func (s *ivory) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "HOME="+s.dir, "LC_ALL=C", "TZ=UTC", "PGOPTIONS=-c search_path=aqueduct")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.cred}
	return cmd
}

// must runs a program of the installation. The server keeps its own log, and no
// pipe of ours.
func (s *ivory) must(name string, args ...string) {
	s.t.Helper()
	out, err := os.Create(filepath.Join(s.dir, "out"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer out.Close()
	cmd := s.command(name, args...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		said, _ := os.ReadFile(out.Name())
		s.t.Fatalf("%s: %v\n%s", name, err, said)
	}
}

// ivoryError is what the server refuses a text with.
type ivoryError struct {
	code string // SQLSTATE; of RAISE_APPLICATION_ERROR its number
	text string
}

func (e *ivoryError) Error() string { return e.code + ": " + e.text }

var serverError = regexp.MustCompile(`(?s)(?:ERROR|FATAL):  (\w{5}): (.*?)(?:\nLOCATION:|$)`)

// psql executes texts in one session of a user and returns what they select, a
// line for each row, and how many rows others have changed.
func (s *ivory) psql(user, database string, texts ...string) (string, error) {
	args := []string{"-X", "-A", "-t", "-v", "VERBOSITY=verbose", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", strconv.Itoa(s.port),
		"-U", user, "-d", database}
	for _, text := range texts {
		args = append(args, "-c", text)
	}
	cmd := s.command("psql", args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if m := serverError.FindStringSubmatch(stderr.String()); m != nil {
		return "", &ivoryError{m[1], strings.TrimSpace(m[2])}
	}
	if err != nil {
		return "", fmt.Errorf("psql: %w: %s", err, stderr.String())
	}
	return strings.TrimSpace(stdout.String()), nil
}

// run executes texts as they are, in one session of a user whose schema is the
// owner's.
func (s *ivory) run(user string, texts ...string) (string, error) {
	return s.psql(user, ivoryDatabase, texts...)
}

// rolledBack is run in a transaction that is rolled back.
func (s *ivory) rolledBack(user string, texts ...string) (string, error) {
	texts = append([]string{"START TRANSACTION"}, texts...)
	return s.run(user, append(texts, "ROLLBACK")...)
}

// one is the single value that a query selects.
func (s *ivory) one(user, query string) string {
	s.t.Helper()
	out, err := s.run(user, query)
	if err != nil {
		s.t.Fatalf("%s: %v", query, err)
	}
	return out
}

var defineLine = regexp.MustCompile(`(?m)^DEFINE (\w+) = (.*)$`)

// script runs a script as SQL*Plus does, those that it calls included.
func (s *ivory) script(user, name string, arguments ...string) {
	s.t.Helper()
	raw, err := scripts.ReadFile("schema/" + name)
	if err != nil {
		s.t.Fatal(err)
	}
	text := string(raw)
	for i, a := range arguments {
		text = strings.ReplaceAll(text, fmt.Sprintf("&%d", i+1), a)
	}
	for _, m := range defineLine.FindAllStringSubmatch(text, -1) {
		text = strings.ReplaceAll(text, "&"+m[1], m[2])
	}
	lines := strings.Split(text, "\n")
	from := 0
	for i, line := range append(lines, "@@") {
		called, found := strings.CutPrefix(line, "@@")
		if !found {
			continue
		}
		// The lines before keep their numbers.
		s.units(user, split(name, strings.Repeat("\n", from)+strings.Join(lines[from:min(i, len(lines))], "\n")))
		if from = i + 1; called != "" {
			words := strings.Fields(called)
			s.script(user, words[0], words[1:]...)
		}
	}
}

// inTheirWords is a text as IvorySQL takes it.
func inTheirWords(text string) string {
	for _, l := range lacks {
		text = l.ours.ReplaceAllString(text, l.theirs)
	}
	return text
}

// units executes units of scripts, in the words of IvorySQL.
func (s *ivory) units(user string, list []unit) {
	s.t.Helper()
	for _, u := range list {
		s.used++
		_, err := s.run(user, inTheirWords(u.text))
		var e *ivoryError
		if errors.As(err, &e) && strings.HasPrefix(u.script, "upgrade/") && (e.code == "42P07" || e.code == "42701") {
			continue // it is there already, as Oracle says in its own words to a script that is run again
		}
		if err != nil {
			s.t.Errorf("%s, line %d: %v", u.script, u.line, err)
		}
	}
}
