// Package deploy holds the files of docker-compose.yml, Dockerfile and deploy/
// to the code and to each other. It starts no container: what only a container
// shows it does not know.
package deploy_test

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"github.com/aqueduct-engine/aqueduct/config"
	"github.com/aqueduct-engine/aqueduct/sql/oracle"
)

var root = filepath.Join("..", "..")

// schemaFolder comes with the Oracle store; without it there is nothing to
// compare with.
const schemaFolder = "sql/oracle/schema"

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func exists(t *testing.T, path string) bool {
	t.Helper()
	_, err := os.Stat(filepath.Join(root, path))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

// glob lists files by their path from the root.
func glob(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(root, pattern))
	if err != nil {
		t.Fatal(err)
	}
	for i, path := range found {
		if found[i], err = filepath.Rel(root, path); err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// composition is the part of a compose file that we rely on.
type composition struct {
	Services map[string]service
	Secrets  map[string]struct{ File string }
	Volumes  map[string]any
}

type service struct {
	Image       string
	Entrypoint  []string
	Command     []string
	NetworkMode string `yaml:"network_mode"`
	Environment map[string]string
	Volumes     []string
	Secrets     []string
	Ports       []string
	DependsOn   yaml.Node `yaml:"depends_on"`
	Restart     string
	Build       struct {
		Args map[string]string
	}
}

// needs are the services that a service depends on.
func (s service) needs(t *testing.T) []string {
	t.Helper()
	var list []string
	switch s.DependsOn.Kind {
	case 0:
		return nil
	case yaml.SequenceNode:
		if err := s.DependsOn.Decode(&list); err != nil {
			t.Fatal(err)
		}
		return list
	}
	byName := map[string]any{}
	if err := s.DependsOn.Decode(&byName); err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(byName))
}

func compose(t *testing.T) composition {
	t.Helper()
	var c composition
	if err := yaml.Unmarshal([]byte(read(t, "docker-compose.yml")), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// pinned is an image with a version of at least two parts, or with a name of
// our own that is built here.
var pinned = regexp.MustCompile(`^[a-z0-9./-]+:v?\d+\.\d+[a-zA-Z0-9.-]*$|^aqueduct/engine-node:local$`)

func TestImagesArePinned(t *testing.T) {
	t.Parallel()
	for name, s := range compose(t).Services {
		if !pinned.MatchString(s.Image) {
			t.Errorf("service %s: the image %q has no version", name, s.Image)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^FROM (\S+)`).FindAllStringSubmatch(read(t, "Dockerfile"), -1) {
		if tag := regexp.MustCompile(`:[a-z]*-?\d[a-z0-9.-]*$`); !tag.MatchString(m[1]) {
			t.Errorf("Dockerfile: the image %q has no version", m[1])
		}
	}
}

func TestServicesFindEachOther(t *testing.T) {
	t.Parallel()
	c := compose(t)
	for name, s := range c.Services {
		for _, other := range s.needs(t) {
			if _, ok := c.Services[other]; !ok {
				t.Errorf("service %s depends on %s, which does not exist", name, other)
			}
		}
		if other, ok := strings.CutPrefix(s.NetworkMode, "service:"); ok {
			if _, ok := c.Services[other]; !ok {
				t.Errorf("service %s is in the network of %s, which does not exist", name, other)
			}
			if len(s.Ports) > 0 {
				t.Errorf("service %s publishes ports, but has no network of its own", name)
			}
		}
		for _, secret := range s.Secrets {
			if _, ok := c.Secrets[secret]; !ok {
				t.Errorf("service %s: secret %s does not exist", name, secret)
			}
		}
		for _, port := range s.Ports {
			if !strings.HasPrefix(port, "127.0.0.1:") {
				t.Errorf("service %s: port %s is published to other machines", name, port)
			}
		}
	}
}

// Every folder and file that a container gets is there; a volume is declared.
func TestMountsExist(t *testing.T) {
	t.Parallel()
	c := compose(t)
	for name, s := range c.Services {
		for _, v := range s.Volumes {
			from, _, _ := strings.Cut(v, ":")
			path, bind := strings.CutPrefix(from, "./")
			switch {
			case !bind:
				if _, ok := c.Volumes[from]; !ok {
					t.Errorf("service %s: volume %s is not declared", name, from)
				}
			case path == schemaFolder && !exists(t, "sql/oracle"):
			case !exists(t, path):
				t.Errorf("service %s: %s does not exist", name, from)
			case !strings.HasSuffix(v, ":ro"):
				t.Errorf("service %s: %s is mounted for writing", name, from)
			}
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^COPY (?:--chmod=\d+ )?(\S+/\S+) `).FindAllStringSubmatch(read(t, "Dockerfile"), -1) {
		if !exists(t, m[1]) {
			t.Errorf("Dockerfile: %s does not exist", m[1])
		}
	}
}

// What compose calls a secret, secrets.sh makes, in a folder that git and the
// image leave out.
func TestSecretsAreMade(t *testing.T) {
	t.Parallel()
	made := regexp.MustCompile(`(?m)^names=\((.*)\)$`).FindStringSubmatch(read(t, "deploy/oracle/secrets.sh"))
	if made == nil {
		t.Fatal("secrets.sh: no list of names")
	}
	var want []string
	for name, s := range compose(t).Secrets {
		want = append(want, name)
		if s.File != "./deploy/secrets/"+name {
			t.Errorf("secret %s is in %s", name, s.File)
		}
	}
	slices.Sort(want)
	if got := strings.Fields(made[1]); !slices.Equal(slices.Sorted(slices.Values(got)), want) {
		t.Errorf("secrets.sh makes %v, want %v", got, want)
	}
	if !strings.Contains(read(t, "deploy/.gitignore"), "/secrets/\n") || !strings.Contains(read(t, "Dockerfile.dockerignore"), "deploy/secrets\n") {
		t.Error("deploy/secrets is not left out of git and of the image")
	}
}

// nodes are the services that run a node, with their environment.
func nodes(t *testing.T) map[string]service {
	t.Helper()
	all := map[string]service{}
	for name, s := range compose(t).Services {
		if _, ok := s.Environment["AQUEDUCT_NODE"]; ok {
			all[name] = s
		}
	}
	if len(all) != 3 {
		t.Fatalf("%d nodes, want 3", len(all))
	}
	return all
}

// The configuration of every node loads, and no two claim the same.
func TestNodesAreConfigured(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for name, s := range nodes(t) {
		env := []string{"AQUEDUCT_STORE_URL=oracle://user:password@host:1521/service?schema=OWNER"}
		for k, v := range s.Environment {
			env = append(env, k+"="+v)
		}
		l, err := config.Load(config.Source{Env: env})
		if err != nil {
			t.Errorf("service %s: %v", name, err)
			continue
		}
		if seen[l.Node] || seen[l.Listen] {
			t.Errorf("service %s: another node is %s or listens on %s", name, l.Node, l.Listen)
		}
		seen[l.Node], seen[l.Listen] = true, true
		if !l.Access.Asks() {
			t.Errorf("service %s asks nobody who they are", name)
		}
		if s.NetworkMode != "service:pod" {
			t.Errorf("service %s listens on loopback, and its network is %q", name, s.NetworkMode)
		}
	}
}

// Every variable with our prefix that a file of the deployment names is a
// setting.
func TestVariablesAreSettings(t *testing.T) {
	t.Parallel()
	l, err := config.Load(config.Source{})
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{"AQUEDUCT_CONFIG": true}
	for _, v := range l.Values() {
		known[v.Variable] = true
	}
	variable := regexp.MustCompile(`(?:^|\$\{?|export |-e |\n\s*)(AQUEDUCT_[A-Z_]+)(?:[:=}]|\b)`)
	for _, path := range append(glob(t, "deploy/oracle/*.sh"), "docker-compose.yml", "Dockerfile") {
		for _, m := range variable.FindAllStringSubmatch(read(t, path), -1) {
			if !known[m[1]] {
				t.Errorf("%s: %s is no setting", path, m[1])
			}
		}
	}
}

// The health check of the image asks the node where it listens, by TLS where it speaks that,
// whether the environment, a file or a flag says so.
func TestTheHealthCheckAsksAsTheNodeSpeaks(t *testing.T) {
	t.Parallel()
	if !regexp.MustCompile(`(?m)^HEALTHCHECK .* CMD \["ready.sh"\]$`).MatchString(read(t, "Dockerfile")) {
		t.Fatal("the Dockerfile has another health check")
	}
	folder := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("engine-node", "#!/bin/sh\n[ \"$*\" = \"$WANTED\" ] && cat \"$SHOWN\"\n", 0o700)
	write("curl", "#!/bin/sh\necho \"$@\"\n", 0o700)
	file := write("node.yaml", "listen: 127.0.0.1:82\ntls: {certificate: /run/node.pem, key: /run/node.key}\n", 0o600)
	for want, c := range map[string]struct{ env, words []string }{
		"-fsSk -o /dev/null http://127.0.0.1:8080/readyz": {words: []string{"engine-node", "serve"}},
		"-fsSk -o /dev/null http://127.0.0.1:81/readyz":   {env: []string{"AQUEDUCT_LISTEN=127.0.0.1:81", "AQUEDUCT_TLS_CERTIFICATE="}, words: []string{"engine-node", "serve"}},
		"-fsSk -o /dev/null https://127.0.0.1:82/readyz":  {env: []string{"AQUEDUCT_CONFIG=" + file}, words: []string{"engine-node", "serve"}},
		"-fsSk -o /dev/null https://127.0.0.1:83/readyz":  {words: []string{"/sbin/init", "--", "engine-node", "serve", "--config", file, "--listen=127.0.0.1:83"}},
	} {
		flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
		config.Flags(flags)
		given := c.words[slices.Index(c.words, "serve")+1:]
		if err := flags.Parse(given); err != nil {
			t.Fatal(err)
		}
		l, err := config.Load(config.Source{Env: c.env, Flags: flags})
		if err != nil {
			t.Fatal(err)
		}
		var shown strings.Builder
		if err := l.Print(&shown, false); err != nil {
			t.Fatal(err)
		}
		check := exec.Command(filepath.Join(root, "deploy/oracle/ready.sh"), write("cmdline", strings.Join(c.words, "\x00")+"\x00", 0o600))
		check.Env = append(c.env, "PATH="+folder+":"+os.Getenv("PATH"), "SHOWN="+write("shown", shown.String(), 0o600),
			"WANTED="+strings.Join(slices.Concat([]string{"config"}, given, []string{"--json=false"}), " "))
		if got, err := check.CombinedOutput(); err != nil || strings.TrimSpace(string(got)) != want {
			t.Errorf("%q: %s, %v, want %s", c, got, err, want)
		}
	}
}

// The proxy and Prometheus ask each node where it listens, Prometheus with the token that
// is made for it.
func TestNodesAreAsked(t *testing.T) {
	t.Parallel()
	var scraped struct {
		ScrapeConfigs []struct {
			Authorization struct {
				File string `yaml:"credentials_file"`
			}
			StaticConfigs []struct {
				Targets []string
				Labels  map[string]string
			} `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
		RuleFiles []string `yaml:"rule_files"`
	}
	if err := yaml.Unmarshal([]byte(read(t, "deploy/prometheus/prometheus.yml")), &scraped); err != nil {
		t.Fatal(err)
	}
	for _, f := range scraped.RuleFiles {
		read(t, "deploy/prometheus/"+f)
	}
	watched, want := map[string]string{}, map[string]string{}
	for _, s := range scraped.ScrapeConfigs[0].StaticConfigs {
		watched[s.Labels["node"]] = s.Targets[0]
	}
	for _, s := range nodes(t) {
		want[s.Environment["AQUEDUCT_NODE"]] = s.Environment["AQUEDUCT_LISTEN"]
	}
	proxies := glob(t, "deploy/haproxy*.cfg")
	if len(proxies) != 3 {
		t.Errorf("files for the proxy: %v", proxies)
	}
	for _, file := range proxies {
		text, got := read(t, file), map[string]string{}
		for _, m := range regexp.MustCompile(`(?m)^\s+server (\S+) (\S+)$`).FindAllStringSubmatch(text, -1) {
			got[m[1]] = m[2]
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: servers %v, want %v", file, got, want)
		}
		if tool, err := exec.LookPath("haproxy"); err == nil && !strings.Contains(text, "ssl crt ") {
			if out, err := exec.Command(tool, "-c", "-f", filepath.Join(root, file)).CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", file, err, out)
			}
		}
	}
	folder, name := filepath.Split(scraped.ScrapeConfigs[0].Authorization.File)
	if !slices.Contains(compose(t).Services["prometheus"].Volumes, "tokens:"+strings.TrimSuffix(folder, "/")+":ro") ||
		!regexp.MustCompile(`(?m)^token `+name+` viewer$`).MatchString(read(t, "deploy/oracle/tokens.sh")) {
		t.Errorf("prometheus.yml: nobody makes %s", scraped.ScrapeConfigs[0].Authorization.File)
	}
	if !maps.Equal(watched, want) {
		t.Errorf("prometheus.yml: targets %v, want %v", watched, want)
	}
}

// The sessions of the nodes stay below what a small database has.
func TestSessionsFit(t *testing.T) {
	t.Parallel()
	const sessionsMax, besideConsumers = 100, oracle.DefaultWriters + oracle.DefaultReaders
	sum := 0
	for name, s := range nodes(t) {
		sum += besideConsumers
		for _, queue := range []string{"SIGNAL", "SCHEDULE", "COMMAND"} {
			n, err := strconv.Atoi(s.Environment["AQUEDUCT_QUEUE_"+queue+"_CONSUMERS"])
			if err != nil {
				t.Errorf("service %s: %v", name, err)
			}
			sum += n
		}
	}
	if sum > sessionsMax {
		t.Errorf("the nodes take up to %d sessions, more than %d", sum, sessionsMax)
	}
}

// Settings of the build that are said twice are the same.
func TestClientIsOne(t *testing.T) {
	t.Parallel()
	for name, text := range compose(t).Services["node-1"].Build.Args {
		value := regexp.MustCompile(`:-(.*)\}$`).FindStringSubmatch(text)
		if value != nil && !strings.Contains(read(t, "Dockerfile"), "ARG "+name+"="+value[1]+"\n") {
			t.Errorf("docker-compose.yml: %s is %s, in the Dockerfile something else", name, value[1])
		}
	}
}
