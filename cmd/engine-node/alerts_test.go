package main

import (
	"bufio"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/aqueduct-engine/aqueduct/api/client"
)

// trouble is what a node shows when something is wrong, and the alert that says so.
type trouble struct {
	alert  string
	series map[string]string // what becomes of series after an hour of calm, as promtool writes values
	at     string            // since the calm began
	labels map[string]string // of the alert
	other  bool              // series of a node that is set up otherwise than the one here
}

// Values of a counter that is at n from then on, of one that rises with each scrape.
const (
	once   = "1x400"
	rising = "1+1x400"
)

var troubles = []trouble{
	{alert: "NodeDown", series: map[string]string{`up{}`: "0x400"}, at: "62m", labels: map[string]string{"job": "aqueduct", "node": "node-1"}},
	{alert: "DeadLetter", series: map[string]string{`aqueduct_dead_letters_total{queue="signal"}`: once}, at: "61m", labels: map[string]string{"queue": "signal"}},
	{alert: "DeadLetter", series: map[string]string{`aqueduct_dead_letters_told_total{queue="command"}`: once}, at: "61m", labels: map[string]string{"queue": "command"}},
	{alert: "DeadLettersWait", series: map[string]string{`aqueduct_dead_letters{queue="command"}`: "3x400"}, at: "122m", labels: map[string]string{"queue": "command"}},
	{alert: "InstancesAreFaulted", series: map[string]string{`aqueduct_instances{status="faulted"}`: "2x400"}, at: "77m", labels: map[string]string{}},
	{alert: "DeadLettersAreNotTold", series: map[string]string{`aqueduct_dead_letters_untold_total{}`: rising}, at: "77m", labels: map[string]string{}},
	{alert: "DatabaseIsNotMeasured", series: map[string]string{`aqueduct_database_unmeasured{}`: "4x400"}, at: "63m", labels: map[string]string{"node": "node-1"}},
	{alert: "QueueIsPaused", series: map[string]string{`aqueduct_queue_paused_seconds{class="paused",queue="signal"}`: "61x400"}, at: "61m", labels: map[string]string{"queue": "signal", "class": "paused"}, other: true},
	{alert: "CommandsAreGivenUp", series: map[string]string{`aqueduct_commands_given_up_total{}`: once}, at: "61m", labels: map[string]string{}},
	{alert: "ScheduleWasMissed", series: map[string]string{`aqueduct_schedule_missed_total{}`: once}, at: "61m", labels: map[string]string{}},
	{alert: "WaitWasResent", series: map[string]string{`aqueduct_waits_resent_total{}`: once}, at: "61m", labels: map[string]string{}},
	{alert: "QueueIsOld", series: map[string]string{`aqueduct_queue_oldest_seconds{queue="schedule"}`: "61+15x400"}, at: "63m", labels: map[string]string{"queue": "schedule"}},
	{alert: "MessagesAreRetried", series: map[string]string{`aqueduct_message_retries_total{by="absence",queue="signal"}`: rising}, at: "77m", labels: map[string]string{"queue": "signal"}},
	{alert: "EngineFault", series: map[string]string{`aqueduct_message_retries_total{by="engine",queue="command"}`: once}, at: "61m", labels: map[string]string{"queue": "command"}},
	{alert: "NodeDied", series: map[string]string{`aqueduct_commands_adopted_total{}`: once}, at: "61m", labels: map[string]string{}},
	{alert: "MessageWasStray", series: map[string]string{`aqueduct_messages_stray_total{}`: once}, at: "61m", labels: map[string]string{"node": "node-1"}},
	{alert: "CommandsAreNotAcknowledged", series: map[string]string{`aqueduct_commands_redelivered_total{target="http"}`: rising}, at: "77m", labels: map[string]string{"target": "http"}, other: true},
	{alert: "CommandsAtTheirLimit", series: map[string]string{`aqueduct_commands_running{}`: "256x400"}, at: "72m", labels: map[string]string{"job": "aqueduct", "node": "node-1"}},
	{alert: "BreakerOpened", series: map[string]string{`aqueduct_activity_breaker_opened_total{host="HOST"}`: once}, at: "61m", labels: map[string]string{"host": "HOST"}},
	{alert: "BreakerOpened", series: map[string]string{`aqueduct_activity_breakers{host="elsewhere",state="open"}`: "1x400"}, at: "61m", labels: map[string]string{"host": "elsewhere"}, other: true},
	{alert: "ApiFails", series: map[string]string{`aqueduct_http_requests_total{class="5xx",route="GET /v1/instances"}`: rising}, at: "67m", labels: map[string]string{"route": "GET /v1/instances"}},
	{alert: "CertificateExpires", series: map[string]string{`aqueduct_tls_certificate_expires_seconds{}`: "1209599-15x400"}, at: "61m", labels: map[string]string{"job": "aqueduct", "node": "node-1"}, other: true},
	{alert: "CertificateFilesAreWrong", series: map[string]string{`aqueduct_tls_certificate_files_wrong{}`: "1x400"}, at: "63m", labels: map[string]string{"job": "aqueduct", "node": "node-1"}, other: true},
}

const calling = `document: {dsl: '1.0.3', namespace: test, name: calls, version: 1.0.0}
do:
  - ask: {call: http, with: {method: get, endpoint: ENDPOINT}}
`

// TestAlertsFire: each alert that is shipped fires on what a node exports when its
// trouble comes, from the first time on, and none does on a node that has none. Prometheus
// judges: promtool.
func TestAlertsFire(t *testing.T) {
	t.Parallel()
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("THE ALERTS ARE NOT TRIED: run .ci/install-promtool")
	}
	_, c, url := running(t)
	host := strings.TrimPrefix(url, "http://")
	if _, _, err := c.Publish(t.Context(), "calls.yaml", []byte(strings.ReplaceAll(calling, "ENDPOINT", url+"/healthz"))); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Start(t.Context(), client.StartRequest{Definition: "test/calls"}, time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Instances(t.Context(), client.InstanceQuery{}); err != nil {
		t.Fatal(err)
	}
	exported(t, url+"/metrics") // a host becomes a label when somebody looks
	calm := exported(t, url+"/metrics")
	rules, err := filepath.Abs("../../deploy/prometheus/rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	tests := []any{judged(calm, nil, everyAlert(t, rules))}
	tried := map[string]bool{}
	for _, x := range troubles {
		after := map[string]string{}
		for name, values := range x.series {
			name = strings.ReplaceAll(name, "HOST", host)
			if _, ok := calm[name]; !ok && !x.other {
				t.Errorf("%s: a node does not export %s before there is trouble", x.alert, name)
			}
			after[name] = values
		}
		labels := map[string]string{}
		for name, v := range x.labels {
			labels[name] = strings.ReplaceAll(v, "HOST", host)
		}
		tried[x.alert] = true
		tests = append(tests, judged(calm, after, []any{map[string]any{
			"eval_time": x.at, "alertname": x.alert, "exp_alerts": []any{map[string]any{"exp_labels": labels}},
		}}))
	}
	for _, e := range everyAlert(t, rules) {
		if name := e.(map[string]any)["alertname"].(string); !tried[name] {
			t.Errorf("%s is tried by nobody", name)
		}
	}
	file := filepath.Join(t.TempDir(), "tests.yml")
	b, err := yaml.Marshal(map[string]any{"rule_files": []string{withoutAnnotations(t, rules)}, "evaluation_interval": "15s", "tests": tests})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), promtool, "test", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// judged is a test of promtool: series that stay as they are for an hour, and then become
// what is said of them.
func judged(calm, after map[string]string, expect []any) map[string]any {
	var input []any
	add := func(name, values string) {
		name = strings.Replace(strings.Replace(name, "}", `,job="aqueduct",node="node-1"}`, 1), "{,", "{", 1)
		input = append(input, map[string]any{"series": name, "values": values})
	}
	for name, value := range calm {
		if next, ok := after[name]; ok {
			add(name, value+"x240 "+next)
		} else {
			add(name, value+"x640")
		}
	}
	for name, next := range after {
		if _, ok := calm[name]; !ok {
			add(name, "_x240 "+next)
		}
	}
	return map[string]any{"interval": "15s", "input_series": input, "alert_rule_test": expect}
}

// exported is what a node says of itself, by series, and that it is up.
func exported(t *testing.T, url string) map[string]string {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	all := map[string]string{"up{}": "1"}
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		line := lines.Text()
		i := strings.LastIndexByte(line, ' ')
		if !strings.HasPrefix(line, "aqueduct_") || i < 0 {
			continue
		}
		name := line[:i]
		if !strings.Contains(name, "{") {
			name += "{}"
		}
		all[name] = line[i+1:]
	}
	return all
}

// everyAlert expects none of any of the rules, two hours from the beginning.
func everyAlert(t *testing.T, rules string) (expect []any) {
	t.Helper()
	for _, r := range ruleFile(t, rules) {
		expect = append(expect, map[string]any{"eval_time": "125m", "alertname": r["alert"].(string), "exp_alerts": []any{}})
	}
	return expect
}

func ruleFile(t *testing.T, path string) []map[string]any {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct{ Rules []map[string]any }
	}
	if err := yaml.Unmarshal(b, &file); err != nil || len(file.Groups) != 1 {
		t.Fatal(err, len(file.Groups))
	}
	return file.Groups[0].Rules
}

// withoutAnnotations are the rules without their texts, which promtool compares too.
func withoutAnnotations(t *testing.T, rules string) string {
	t.Helper()
	list := ruleFile(t, rules)
	for _, r := range list {
		delete(r, "annotations")
	}
	b, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "aqueduct", "rules": list}}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "rules.yml")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
