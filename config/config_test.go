package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// load reads a configuration from a file's text, variables and arguments.
func load(t *testing.T, file string, env []string, args ...string) (*Loaded, error) {
	t.Helper()
	if file != "" {
		path := filepath.Join(t.TempDir(), "aqueduct.yaml")
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		env = append(slices.Clone(env), fileVariable+"="+path)
	}
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	Flags(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return Load(Source{Flags: flags, Env: env})
}

func TestNothingSaidIsTheDefault(t *testing.T) {
	t.Parallel()
	l, err := Load(Source{Env: []string{"HOME=/x", "AQUEDUCT_NODE=", "AQUEDUCT_ORACLE_DSN=x", "malformed"}})
	if err != nil || l.Config != Default() {
		t.Fatalf("got %+v, %v", l, err)
	}
	if path, ok := l.Store.SQLite(); !ok || path != "./aqueduct-data/aqueduct.db" || l.Store.Oracle() {
		t.Errorf("store %q, %t", path, ok)
	}
	for key, origin := range l.Origins {
		if origin != FromDefault {
			t.Errorf("%s is from %s", key, origin)
		}
	}
}

func TestDefaultsKeepTheirOwnBounds(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, s := range settings() {
		c, standard := Default(), Default()
		if wrong := s.assign(&c, text(s.field(&standard))); wrong != nil || c != standard {
			t.Errorf("%s: the default %q is not read back: %v", s.key, text(s.field(&standard)), wrong)
		}
		if s.meaning == "" || seen[s.key] || seen[s.flag()] || seen[s.variable()] {
			t.Errorf("%s: no meaning, or a name twice", s.key)
		}
		seen[s.key], seen[s.flag()], seen[s.variable()] = true, true, true
	}
}

func TestFlagBeatsEnvBeatsFileBeatsDefault(t *testing.T) {
	t.Parallel()
	file := "limits:\nqueue:\n  handlers: 1\n  wait: 2s\n  signal-consumers: 3\nlog: {level: debug}\nretention: {enabled: false, keep: 7d}\n"
	env := []string{"AQUEDUCT_QUEUE_HANDLERS=10", "AQUEDUCT_QUEUE_WAIT=20s", "AQUEDUCT_STORE_URL=oracle://u:p@h/s"}
	l, err := load(t, file, env, "--queue-handlers=100", "--log-format", "json", "--retention-enabled")
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Queue.Handlers, want.Queue.Wait, want.Queue.SignalConsumers = 100, 20*time.Second, 3
	want.Queue.ScheduleConsumers, want.Queue.CommandConsumers = OracleScheduleConsumers, OracleCommandConsumers
	want.Log = Log{Level: "debug", Format: "json"}
	want.Store.URL = "oracle://u:p@h/s"
	want.Retention.Keep = 7 * day
	if l.Config != want {
		t.Errorf("got  %+v\nwant %+v", l.Config, want)
	}
	for key, origin := range map[string]Origin{
		"queue.handlers": FromFlag, "queue.wait": FromEnv, "queue.signal-consumers": FromFile, "retention.enabled": FromFlag,
		"crash.max": FromDefault, "store.url": FromEnv, "log.format": FromFlag, "log.level": FromFile,
	} {
		if l.Origins[key] != origin {
			t.Errorf("%s is from %s, want %s", key, l.Origins[key], origin)
		}
	}
}

// A text is what stands in the file, also where YAML would make a number or a day of it.
func TestATextOfTheFileIsAsWritten(t *testing.T) {
	t.Parallel()
	l, err := load(t, "---\nstore: {password: 0123456, owner: true}\nnode: 2026-01-31\nqueue: {handlers: 0x10}\n---\n# nothing\n", nil)
	if err != nil || l.Store.Password != "0123456" || l.Store.Schema != "true" || l.Node != "2026-01-31" || l.Queue.Handlers != 16 {
		t.Errorf("%+v %+v, %v", l.Store, l.Queue, err)
	}
	l, err = load(t, "node: &x 0123\nstore: {password: *x}\n", nil)
	if err != nil || l.Store.Password != "0123" {
		t.Errorf("%+v, %v", l.Store, err)
	}
	l, err = load(t, "store: {password: 0123456}\n", []string{"AQUEDUCT_STORE_PASSWORD=x"})
	if err != nil || l.Store.Password != "x" {
		t.Errorf("%+v, %v", l.Store, err)
	}
}

func TestBadConfiguration(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, file string
		env, args  []string
		code, says string
	}{
		{"unknown key", "queue: {weit: 5s}", nil, nil, "config.unknown-key", `unknown setting "queue.weit" (did you mean queue.wait?)`},
		{"a key in capitals", "queue: {WAIT: 5s}", nil, nil, "config.unknown-key", "settings are in lower case: wait"},
		{"a key in both cases", "queue: {wait: 6s}\nQUEUE: {wait: 5s}", nil, nil, "config.unknown-key", "settings are in lower case: queue"},
		{"a second document", "---\nnode: a\n---\nlisten: 127.0.0.1:1\n", nil, nil, "config.not-yaml", "has a second document"},
		{"a second document that is none", "node: a\n--- [", nil, nil, "config.not-yaml", "has a second document"},
		{"a key twice", "queue: {wait: 6s, wait: 5s}", nil, nil, "config.not-yaml", "already defined"},
		{"unknown section", "kueue: {wait: 5s}", nil, nil, "config.unknown-key", "did you mean queue.wait?"},
		{"unknown and empty", "weit:", nil, nil, "config.unknown-key", "weit"},
		{"section as value", "queue: 5", nil, nil, "config.unknown-key", "queue"},
		{"value as section", "listen: {host: x}", nil, nil, "config.unknown-key", "did you mean listen?"},
		{"unknown variable", "", []string{"AQUEDUCT_LISTN=x"}, nil, "config.unknown-variable", "did you mean AQUEDUCT_LISTEN?"},
		{"not yaml", "a: [", nil, nil, "config.not-yaml", "is not a YAML object"},
		{"a list", "- a\n", nil, nil, "config.not-yaml", "is not a YAML object"},
		{"key twice", "node: a\nnode: b\n", nil, nil, "config.not-yaml", "is not a YAML object"},
		{"no such file", "", nil, []string{"--config=/nonexistent/a.yaml"}, "config.unreadable", "cannot be read"},
		{"number as text", "crash: {max: many}", nil, nil, "config.type", `/crash/max: "many" is not a whole number`},
		{"list as number", "crash: {max: [1]}", nil, nil, "config.type", "not a single value"},
		{"no value", "crash: {max: }", nil, nil, "config.type", "has no value"},
		{"fraction", "crash: {max: 1.5}", nil, nil, "config.type", "whole number"},
		{"prefix of settings for secrets", "", []string{"AQUEDUCT_SECRETS_PREFIX=AQUEDUCT_SECRET_"}, nil, "config.prefix", "SECRET_"},
		{"duration without unit", "", []string{"AQUEDUCT_QUEUE_WAIT=5"}, nil, "config.type", "AQUEDUCT_QUEUE_WAIT"},
		{"too many days", "retention: {keep: 99999999d}", nil, nil, "config.type", "30d"},
		{"boolean", "retention: {enabled: maybe}", nil, nil, "config.type", "true or false"},
		{"too small", "", nil, []string{"--crash-max=0"}, "config.range", "--crash-max: is out of range (from 1 to 100)"},
		{"too long", "queue: {wait: 2h}", nil, nil, "config.range", "from 1s to 30s"},
		{"negative", "queue: {wait: -1s}", nil, nil, "config.range", "from 1s to 30s"},
		{"choice", "log: {level: loud}", nil, nil, "config.choice", "debug or info or warn or error"},
		{"durability", "store: {durability: none}", nil, nil, "config.choice", "full or normal"},
		{"open address", "listen: 0.0.0.0:8080", nil, nil, "config.not-loopback", "asks nobody"},
		{"open address by TLS", "listen: 0.0.0.0:8080\ntls: {certificate: c, key: k}", nil, nil, "config.not-loopback", "asks nobody"},
		{"certificate without a key", "tls: {certificate: c}", nil, nil, "config.needs", "needs tls.key"},
		{"key without a certificate", "", nil, []string{"--tls-key=k"}, "config.needs", "needs tls.certificate"},
		{"every address", "", nil, []string{"--listen=:8080"}, "config.not-loopback", "reached from other machines"},
		{"host name", "listen: example.com:80", nil, nil, "config.not-loopback", "example.com"},
		{"no port", "listen: 127.0.0.1", nil, nil, "config.address", "not host:port"},
		{"bad port", "listen: 127.0.0.1:http", nil, nil, "config.address", "not a port number"},
		{"large port", "listen: 127.0.0.1:65536", nil, nil, "config.address", "not a port number"},
		{"no store", "store: {url: 'mysql://root:hunter2@h/d'}", nil, nil, "config.store", "is the address of no store"},
		{"no path", "store: {url: 'sqlite://'}", nil, nil, "config.store", "names no file"},
		{"no database", "store: {url: 'oracle://'}", nil, nil, "config.store", "names no database"},
		{"no sink", "events: {sink: 'ftp://root:hunter2@h/d'}", nil, nil, "config.url", "is not an http or https URL"},
		{"sink without a host", "events: {sink: 'https:///x'}", nil, nil, "config.url", "is not an http or https URL"},
		{"audit of another owner", "store: {url: 'oracle://u:p@h/s', owner: AQ}\nretention: {audit: 30d}", nil, nil, "config.needs", "needs the rights of AQ"},
		{"lifecycle without a sink", "events: {lifecycle: true}", nil, nil, "config.needs", "needs a place"},
		{"list as secret", "store: {url: [hunter2]}", nil, nil, "config.type", "the value is not a single value"},
		{"delays crossed", "retry: {delay: 10s, delay-max: 5s}", nil, nil, "config.order", "at least 10s"},
		{"delays of commands crossed", "activity: {delay: 2m, delay-max: 5s}", nil, nil, "config.order", "at least 2m"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := load(t, c.file, c.env, c.args...)
			if err == nil {
				t.Fatal("accepted")
			}
			if problem.CodeOf(err) != c.code || problem.KindOf(err) != problem.Invalid || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v\nwant %s: %s", err, c.code, c.says)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error tells a secret: %v", err)
			}
		})
	}
}

func TestEverythingWrongIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	_, err := load(t, "a: 1\nlisten: x\n", []string{"AQUEDUCT_B=1", "AQUEDUCT_A=1"}, "--crash-max=0")
	var p *problem.Error
	if !errors.As(err, &p) || len(p.Where) != 5 || p.Detail != "5 settings are wrong" {
		t.Fatalf("got %v", err)
	}
}

func TestLoopbackAddresses(t *testing.T) {
	t.Parallel()
	for _, a := range []string{"127.0.0.1:0", "127.8.8.8:1", "[::1]:8080", "localhost:65535"} {
		if l, err := load(t, "", nil, "--listen="+a); err != nil || l.Listen != a {
			t.Errorf("%s: %v", a, err)
		}
	}
}

func TestPrintMasksSecretsAndTellsOrigins(t *testing.T) {
	t.Parallel()
	l, err := load(t, "node: n1\n", []string{"AQUEDUCT_STORE_URL=oracle://app:hunter2@db:1521/x?password=hunter2"}, "--retention-keep=12h")
	if err != nil {
		t.Fatal(err)
	}
	var table, object bytes.Buffer
	if err := errors.Join(l.Print(&table, false), l.Print(&object, true)); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(table.String()+object.String(), "hunter2") {
		t.Errorf("a secret is printed:\n%s", table.String())
	}
	squeezed := strings.Join(strings.Fields(table.String()), " ")
	for _, want := range []string{
		"file: " + l.File, "store.url oracle://app:***@db:1521/x?*** env", "node n1 file", "retention.keep 12h flag", "crash.max 3 default",
		`watch "" default`,
	} {
		if !strings.Contains(squeezed, want) {
			t.Errorf("no %q in\n%s", want, table.String())
		}
	}
	var parsed struct {
		File     string
		Settings []Value
	}
	if err := json.Unmarshal(object.Bytes(), &parsed); err != nil || len(parsed.Settings) != len(settings()) || parsed.File != l.File {
		t.Fatalf("json: %v, %d settings", err, len(parsed.Settings))
	}
	want := Value{Key: "crash.max", Value: "3", From: FromDefault, Default: "3", Variable: "AQUEDUCT_CRASH_MAX", Flag: "--crash-max",
		Meaning: "times a message may kill its process before it is a dead letter"}
	if !slices.Contains(parsed.Settings, want) {
		t.Errorf("no %+v in %s", want, object.String())
	}
}

func TestMask(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"sqlite://a@b": "sqlite://a@b", "oracle://u/p@h": "oracle://u:***@h", "oracle://h/s": "oracle://h/s",
		"oracle://u@h": "oracle://u@h", "oracle://u:p@q@h": "oracle://u:***@h", "plain": "plain",
	} {
		if got := mask(in); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}

type full struct{ room int }

func (f *full) Write(b []byte) (int, error) {
	if f.room -= len(b); f.room < 0 {
		return 0, errors.New("full")
	}
	return len(b), nil
}

func TestPrintReportsAFailingWriter(t *testing.T) {
	t.Parallel()
	l := &Loaded{Config: Default(), File: "f"}
	if l.Print(&full{}, false) == nil || l.Print(&full{room: 20}, false) == nil || l.Print(&full{}, true) == nil {
		t.Error("a failing writer goes unnoticed")
	}
}

// TestTheAuditOfAnotherOwnerIsKept: where nodes may not delete from it, nobody has to say
// that they shall not.
func TestTheAuditOfAnotherOwnerIsKept(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]time.Duration{
		"sqlite://a.db": 730 * day, "oracle://u:p@h/s": 730 * day, "oracle://u:p@h/s?schema=AQ": 0,
	} {
		l, err := load(t, "", []string{"AQUEDUCT_STORE_URL=" + url})
		if err != nil || l.Retention.Audit != want {
			t.Errorf("%s: %v, %v", url, l, err)
		}
	}
}

// TestThePasswordFileIsReadAgain: of an address without a password, which would count.
func TestThePasswordFileIsReadAgain(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte("first\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	load := func(url string) Store {
		t.Helper()
		l, err := Load(Source{Env: []string{"AQUEDUCT_STORE_URL=" + url, "AQUEDUCT_STORE_PASSWORD_FILE=" + file}})
		if err != nil {
			t.Fatal(err)
		}
		return l.Store
	}
	if load("oracle://u:p@db:1521/S").Rotating() != nil {
		t.Error("the password of the address does not count")
	}
	s := load("oracle://u@db:1521/S")
	if dsn, _ := s.DataSource(); !strings.Contains(dsn, `password="first"`) {
		t.Error(dsn)
	}
	if err := os.WriteFile(file, []byte("second\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := s.Rotating()(); text != "second" || err != nil {
		t.Error(text, err)
	}
	if (Store{URL: "oracle://u@db"}).Rotating() != nil {
		t.Error("a password is read that no file holds")
	}
}

// TestEventTypesNeedIdentities: where nobody has a role, nothing is for a role.
func TestEventTypesNeedIdentities(t *testing.T) {
	t.Parallel()
	for env, want := range map[string]string{"application=a; operator=b": "config.needs", "application": "config.needs", "": ""} {
		_, err := Load(Source{Env: []string{"AQUEDUCT_ACCESS_EVENT_TYPES=" + env}})
		if got := problem.CodeOf(err); err != nil && got != want || err == nil && want != "" {
			t.Errorf("%q: %v", env, err)
		}
	}
	l, err := Load(Source{Env: []string{"AQUEDUCT_ACCESS_EVENT_TYPES=application=a; operator=a; operator=b", "AQUEDUCT_ACCESS_TOKENS=true"}})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := l.Access.Publishing(); err != nil || len(got["a"]) != 2 || len(got["b"]) != 1 {
		t.Error(got, err)
	}
}
