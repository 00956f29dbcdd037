package deploy_test

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestScriptsAreShell(t *testing.T) {
	t.Parallel()
	scripts := glob(t, "deploy/oracle/*.sh")
	if len(scripts) == 0 {
		t.Fatal("no scripts")
	}
	tools := [][]string{{"bash", "-n"}}
	if _, err := exec.LookPath("shellcheck"); err == nil {
		tools = append(tools, []string{"shellcheck"})
	} else {
		t.Log("shellcheck is not installed: only bash has looked at the scripts")
	}
	for _, path := range scripts {
		for _, tool := range tools {
			if out, err := exec.Command(tool[0], append(tool[1:], filepath.Join(root, path))...).CombinedOutput(); err != nil {
				t.Errorf("%s: %s: %v\n%s", path, tool[0], err, out)
			}
		}
		info, err := os.Stat(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode()&0o111 == 0 {
			t.Errorf("%s cannot be executed", path)
		}
	}
}

// program puts a shell script on a new path, in front of the others.
func program(t *testing.T, name, text string) (path string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/usr/bin/env bash\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir + string(os.PathListSeparator) + os.Getenv("PATH")
}

// install runs schema.sh against a SQL*Plus that writes down what it is given
// and answers what it is told to.
func install(t *testing.T, answer string) (given, arguments string, ok bool) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"sys_password", "owner_password", "runtime_password"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("the&"+name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path := program(t, "sqlplus", `echo "$*" >>"$SAID/arguments"; cat >>"$SAID/given"; echo "$ANSWER"`)
	cmd := exec.Command("bash", filepath.Join(root, "deploy/oracle/schema.sh"))
	cmd.Env = append(os.Environ(), "PATH="+path, "SAID="+dir, "ANSWER="+answer, "SECRETS="+dir, "CONNECT=host:1/S",
		"OWNER=OWN", "RUNTIME_USER=RUN", "TABLESPACE=SPACE", "SCRIPTS=/schema")
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if strings.Contains(string(out), "_password") {
		t.Error("schema.sh prints a password")
	}
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	return read("given"), read("arguments"), err == nil
}

func TestSchemaRunsTheScriptsInOrder(t *testing.T) {
	t.Parallel()
	given, arguments, ok := install(t, "Table created.")
	if !ok {
		t.Error("schema.sh fails")
	}
	if strings.Contains(arguments, "password") {
		t.Errorf("a password is an argument: %s", arguments)
	}
	var got []string
	for _, m := range regexp.MustCompile(`(?m)^@/schema/(\S+)(.*)$`).FindAllStringSubmatch(given, -1) {
		got = append(got, m[1])
		if want := map[string]string{"00_users.sql": " OWN RUN SPACE", "50_grants.sql": " RUN"}[m[1]]; m[2] != want {
			t.Errorf("%s gets %q, want %q", m[1], m[2], want)
		}
	}
	if !slices.IsSorted(got) {
		t.Errorf("the scripts run in the order %v", got)
	}
	// 90 and above are for removing.
	var want []string
	for _, path := range glob(t, schemaFolder+"/[0-8][0-9]_*.sql") {
		want = append(want, filepath.Base(path))
	}
	if len(want) > 0 && !slices.Equal(got, want) {
		t.Errorf("the scripts %v run, want %v", got, want)
	}
}

func TestSchemaJudgesWhatSQLPlusSays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		answer string
		ok     bool
	}{
		{"ORA-00955: name is already used by an existing object", true},
		{"ORA-24001: cannot create QUEUE_TABLE, already exists\nORA-06512: at line 2", true},
		{"ORA-01920: user name conflicts", true},
		{"ORA-01017: invalid credential", false},
		{"ORA-00955: name is already used\nORA-01031: insufficient privileges", false},
		{"SP2-0310: unable to open file", false},
		{"Warning: Package Body created with compilation errors.", false},
		{"AQUEDUCT-INVALID WF_V_TASKS", false},
	} {
		if _, _, ok := install(t, c.answer); ok != c.ok {
			t.Errorf("%q: ok is %t, want %t", c.answer, ok, c.ok)
		}
	}
}

// What the program takes for an object that exists, the script does too.
func TestSchemaAgreesWithMigrate(t *testing.T) {
	t.Parallel()
	if !exists(t, "sql/oracle/migrate.go") {
		return
	}
	_, text, _ := strings.Cut(read(t, "sql/oracle/migrate.go"), "\nvar present = map[int]bool{")
	text, _, found := strings.Cut(text, "\n}")
	if !found {
		t.Fatal("sql/oracle/migrate.go: no list of codes")
	}
	harmless := regexp.MustCompile(`(?m)^harmless='(.*)'$`).FindStringSubmatch(read(t, "deploy/oracle/schema.sh"))
	for _, m := range regexp.MustCompile(`(\d+): true`).FindAllStringSubmatch(text, -1) {
		code := "ORA-" + strings.Repeat("0", 5-len(m[1])) + m[1]
		if !regexp.MustCompile("^" + harmless[1] + "$").MatchString(code) {
			t.Errorf("schema.sh fails at %s", code)
		}
	}
}

// node.sh makes an address from which the parts can be read again, and leaves the
// password in its file.
func TestNodeAddress(t *testing.T) {
	t.Parallel()
	const user, password = `r/u@n:`, `p/a@s:s ?#%&"é+$(id)` + "`"
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte(password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("bash", filepath.Join(root, "deploy/oracle/node.sh"), "bash", "-c", `printf '%s %s' "$AQUEDUCT_STORE_URL" "$AQUEDUCT_STORE_PASSWORD_FILE"`)
	cmd.Env = append(os.Environ(), "STORE_USER="+user, "STORE_PASSWORD_FILE="+file, "STORE_CONNECT=host:1521/S", "STORE_SCHEMA=OWN")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	address, named, _ := strings.Cut(string(out), " ")
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	_, written := u.User.Password()
	if written || named != file || u.User.Username() != user || u.Host != "host:1521" || u.Path != "/S" || u.Query().Get("schema") != "OWN" {
		t.Errorf("node.sh makes %q", out)
	}
}

// tokens.sh makes each token once, whole or not at all, and keeps those that are there.
func TestTokensAreMadeOnce(t *testing.T) {
	t.Parallel()
	dir, said := t.TempDir(), filepath.Join(t.TempDir(), "said")
	path := program(t, "engine-node", `echo "$*" >>"$SAID"; echo "aq_of_$3"; [ "$3" != "${FAILS:-}" ]`)
	run := func(fails string) bool {
		t.Helper()
		cmd := exec.Command("bash", filepath.Join(root, "deploy/oracle/tokens.sh"), dir)
		cmd.Env = append(os.Environ(), "PATH="+path, "SAID="+said, "FAILS="+fails, "AQUEDUCT_STORE_URL=oracle://u@db:1/S")
		out, err := cmd.CombinedOutput()
		if strings.Contains(string(out), "aq_") {
			t.Errorf("tokens.sh prints a token: %s", out)
		}
		return err == nil
	}
	files := func() (names []string) {
		t.Helper()
		found, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			if !strings.HasPrefix(f.Name(), ".") {
				names = append(names, f.Name())
			}
		}
		return names
	}
	if run("prometheus") || !slices.Equal(files(), []string{"root"}) {
		t.Errorf("a token that is not made: %v", files())
	}
	if first, again := run(""), run(""); !first || !again || !slices.Equal(files(), []string{"prometheus", "root"}) {
		t.Errorf("tokens.sh makes %v", files())
	}
	text, err := os.ReadFile(said)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(text), "tokens create root --role admin "); got != 1 || !strings.Contains(string(text), "tokens create prometheus --role viewer --lifetime 365d --store oracle://u@db:1/S\n") {
		t.Errorf("it asks for\n%s", text)
	}
	token, err := os.ReadFile(filepath.Join(dir, "root"))
	if info, failed := os.Stat(filepath.Join(dir, "root")); err != nil || failed != nil || string(token) != "aq_of_root\n" || info.Mode().Perm() != 0o444 {
		t.Errorf("%q %v %v", token, err, failed)
	}
}

// schema.sh says of what it installs that it is of the version that install.sql says.
func TestSchemaHasItsVersion(t *testing.T) {
	t.Parallel()
	if !exists(t, schemaFolder) {
		return
	}
	version := regexp.MustCompile(`'schema-version', (HEXTORAW\('\d+'\))`)
	want, got := version.FindStringSubmatch(read(t, schemaFolder+"/install.sql")), version.FindStringSubmatch(read(t, "deploy/oracle/schema.sh"))
	if want == nil || got == nil || got[1] != want[1] {
		t.Errorf("schema.sh says %v, install.sql %v", got, want)
	}
}
