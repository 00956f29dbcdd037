package embedded

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/survey"
)

// digests stands for the parsers: a source that is not its own digest is damaged.
func digests(r definition.Record) error {
	if string(r.Source) == r.Digest {
		return nil
	}
	return problem.New(problem.Internal, "definition.digest", "definition %s@%s is damaged", r.Name, r.Version)
}

func look(t *testing.T, path string) map[string]survey.Finding {
	t.Helper()
	byCheck := map[string]survey.Finding{}
	for _, f := range Check(t.Context(), CheckOptions{Path: path, Verify: digests}) {
		if f.Severity != survey.Good && f.Fix == "" {
			t.Errorf("nothing is said about how to fix %+v", f)
		}
		byCheck[f.Check] = f
	}
	return byCheck
}

// made makes a database without nodes.
func made(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.db")
	if err := open(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestExaminationOfAHealthyFileBesideANode(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.db")
	open(t, path)
	found := look(t, path)
	for _, f := range found {
		if f.Severity != survey.Good && f.Check != "disk-free" { // the disk is whoever runs this test's
			t.Errorf("%+v", f)
		}
	}
	if len(found) != 17 {
		t.Errorf("%d findings: %+v", len(found), found)
	}
}

func TestExaminationFindsWhatIsPlanted(t *testing.T) {
	t.Parallel()
	for _, p := range []struct {
		check, found, fix string
		severity          survey.Severity
		plant             func(t *testing.T, path string)
	}{
		{"file-present", "there is no file", "engine-node migrate", survey.Wrong, func(t *testing.T, path string) { ok(t, os.Remove(path)) }},
		{"file-present", "is no file", "another path", survey.Wrong, func(t *testing.T, path string) {
			ok(t, os.Remove(path))
			ok(t, os.Mkdir(path, 0o700))
		}},
		{"journal-mode", "delete", "engine-node migrate", survey.Warning, func(t *testing.T, path string) { script(t, path, "pragma journal_mode = delete") }},
		{"application", "another program", "name another path", survey.Wrong, func(t *testing.T, path string) { script(t, path, "pragma application_id = 42") }},
		{"schema-version", "version 99", "run the program", survey.Wrong, func(t *testing.T, path string) { script(t, path, "pragma user_version = 99") }},
		{"schema-version", "version 0", "engine-node migrate", survey.Wrong, func(t *testing.T, path string) { script(t, path, "pragma user_version = 0") }},
		{"schema-version", "version 8", "engine-node migrate", survey.Wrong, func(t *testing.T, path string) {
			script(t, path, "pragma user_version = 8; alter table WF_STREAM drop column CHECKSUM; alter table WF_TASKS drop column CHECKSUM")
		}},
		{"dead-letters", "1 dead letters", "dlq list", survey.Warning, func(t *testing.T, path string) {
			s := open(t, path)
			ok(t, s.Commit(t.Context(), store.Change{DeadLetter: &projections.DeadLetter{ID: "l", Queue: "signal", Envelope: []byte("e"), Reason: "r"}}))
		}},
		{"integrity", "", "", survey.Wrong, func(t *testing.T, path string) {
			s := open(t, path)
			for _, id := range strings.Split("abcdefghijklmnop", "") {
				ok(t, s.Commit(t.Context(), store.Change{DeadLetter: &projections.DeadLetter{ID: id, Queue: "signal", Envelope: bytes.Repeat([]byte(id), 9000), Reason: "r"}}))
			}
			ok(t, s.Close())
			script(t, path, "pragma journal_mode = delete")
			raw := must(os.ReadFile(path))
			from := len(raw) / 4 * 3 // among the letters: tables were made before
			for i := from; i < from+4096*4; i++ {
				raw[i] ^= 0x5a
			}
			ok(t, os.WriteFile(path, raw, 0o600))
		}},
	} {
		t.Run(p.check+" "+p.found, func(t *testing.T) {
			path := made(t)
			p.plant(t, path)
			f := look(t, path)[p.check]
			for check, other := range look(t, path) {
				if p.check == "schema-version" && check != p.check && other.Severity == survey.Wrong {
					t.Errorf("beside it: %+v", other)
				}
			}
			if f.Severity != p.severity || !strings.Contains(f.Found, p.found) || !strings.Contains(f.Fix, p.fix) {
				t.Errorf("got %+v", f)
			}
		})
	}
}

// A disk that is small, and then one that takes no writes.
func TestExaminationOfADisk(t *testing.T) {
	dir := mount(t, "size=8m")
	path := filepath.Join(dir, "a.db")
	ok(t, open(t, path).Close())
	if f := look(t, path)["disk-free"]; f.Severity != survey.Wrong || !strings.Contains(f.Found, "less than 64") {
		t.Errorf("got %+v", f)
	}
	if err := unix.Mount("none", dir, "tmpfs", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Skip("cannot remount: ", err)
	}
	found := look(t, path)
	for _, check := range []string{"folder-writable", "file-writable"} {
		if found[check].Severity != survey.Wrong {
			t.Errorf("%s: got %+v", check, found[check])
		}
	}
}

func script(t *testing.T, path, text string) {
	t.Helper()
	c := must(conn.Open(path, "", sqlite.Statements))
	defer c.Close()
	ok(t, c.Script(text))
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
