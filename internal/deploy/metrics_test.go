package deploy_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// metric is a name of ours in an expression, and suffix what Prometheus makes
// of a histogram.
var (
	metric = regexp.MustCompile(`aqueduct_[a-z_]+`)
	suffix = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// metrics are those that the sources make.
func metrics(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	literal := regexp.MustCompile(`"(aqueduct_[a-z_]+)"`)
	for _, dir := range []string{"runtime", "runtime/dispatch", "runtime/events", "runtime/pump", "runtime/turn", "api", "activity", "cmd/engine-node", "sql/oracle", "aq"} {
		for _, path := range glob(t, dir+"/*.go") {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			for _, m := range literal.FindAllStringSubmatch(read(t, path), -1) {
				all[m[1]] = true
			}
		}
	}
	return all
}

// panel is a part of a dashboard; a row may hold others.
type panel struct {
	Title      string
	Type       string
	Datasource struct{ UID string }
	Targets    []struct{ Expr string }
	Panels     []panel
}

func TestDashboardShowsTheMetrics(t *testing.T) {
	t.Parallel()
	const path = "deploy/grafana/dashboards/aqueduct.json"
	var dashboard struct{ Panels []panel }
	if err := json.Unmarshal([]byte(read(t, path)), &dashboard); err != nil {
		t.Fatal(err)
	}
	known, shown := metrics(t), map[string]bool{}
	for _, p := range dashboard.Panels {
		if p.Type == "row" {
			continue
		}
		if !strings.Contains(read(t, "deploy/grafana/provisioning/datasources/prometheus.yml"), "uid: "+p.Datasource.UID+"\n") {
			t.Errorf("%s: panel %q asks %q, which is not provisioned", path, p.Title, p.Datasource.UID)
		}
		if len(p.Targets) == 0 {
			t.Errorf("%s: panel %q shows nothing", path, p.Title)
		}
		for _, q := range p.Targets {
			for _, name := range metric.FindAllString(q.Expr, -1) {
				name = suffix.ReplaceAllString(name, "")
				shown[name] = true
				if !known[name] {
					t.Errorf("%s: panel %q: no source makes %s", path, p.Title, name)
				}
			}
		}
	}
	for name := range documented(t) {
		if !shown[name] {
			t.Errorf("%s: %s is in docs/operating.md and on no panel", path, name)
		}
	}
}

func documented(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(aqueduct_[a-z_]+)").FindAllStringSubmatch(read(t, "docs/operating.md"), -1) {
		all[m[1]] = true
	}
	return all
}

func TestAlertsNameMetrics(t *testing.T) {
	t.Parallel()
	const path = "deploy/prometheus/rules.yml"
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr string
				Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, path)), &rules); err != nil {
		t.Fatal(err)
	}
	known := metrics(t)
	for _, r := range rules.Groups[0].Rules {
		names := metric.FindAllString(strings.ReplaceAll(r.Expr, `job="aqueduct"`, ""), -1)
		for _, name := range names {
			if !known[suffix.ReplaceAllString(name, "")] {
				t.Errorf("%s: %s: no source makes %s", path, r.Alert, name)
			}
		}
		if r.Annotations["summary"] == "" {
			t.Errorf("%s: %s says nothing", path, r.Alert)
		}
	}
}

// Every file of the deployment that ends with .yml is YAML.
func TestYAMLIsYAML(t *testing.T) {
	t.Parallel()
	err := filepath.WalkDir(filepath.Join(root, "deploy"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".yml" {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var content map[string]any
		if err := yaml.Unmarshal(b, &content); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// docs/oracle.md names nothing of the schema that the scripts do not make.
func TestPageNamesWhatTheSchemaHas(t *testing.T) {
	t.Parallel()
	scripts := glob(t, schemaFolder+"/*.sql")
	if len(scripts) == 0 {
		return
	}
	var schema strings.Builder
	for _, path := range scripts {
		schema.WriteString(read(t, path))
	}
	page := read(t, "docs/oracle.md")
	names := map[string]bool{}
	for _, name := range regexp.MustCompile(`\b(?:WF|AQ\$_?WF)_[A-Z_]+\b`).FindAllString(page, -1) {
		names[name] = true
	}
	ofQueueTable := regexp.MustCompile(`^AQ\$_(WF_[A-Z]+_QTAB)_[ITHG]$`) // which Oracle makes with it
	for _, name := range slices.Sorted(maps.Keys(names)) {
		made := name
		if m := ofQueueTable.FindStringSubmatch(name); m != nil {
			made = "queue_table => '" + m[1] + "'"
		}
		if !strings.Contains(schema.String(), made) {
			t.Errorf("docs/oracle.md: %s is not in the schema", name)
		}
	}
	for _, m := range regexp.MustCompile(`\b((?:optional/)?[0-9]{2}_[a-z]+\.sql)\b`).FindAllString(page, -1) {
		if !exists(t, schemaFolder+"/"+m) {
			t.Errorf("docs/oracle.md: %s does not exist", m)
		}
	}
}
