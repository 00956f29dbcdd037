package main

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/access"
	"github.com/aqueduct-engine/aqueduct/config"
	"github.com/aqueduct-engine/aqueduct/internal/oracletest"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// Documents of a namespace, NS.
var inNamespace = []string{`document: {dsl: '1.0.3', namespace: NS, name: work, version: 1.0.0, title: NS-secret}
do:
  - both:
      fork:
        branches:
          - ask: {call: humanTask, with: {title: NS-secret, candidateUsers: [ann], outcomes: [yes]}}
          - pay: {call: http, with: {method: post, endpoint: 'http://127.0.0.1:9/NS-secret'}}
`, `document: {dsl: '1.0.3', namespace: NS, name: work, version: 1.1.0}
do:
  - ask: {call: humanTask, with: {title: NS-secret, candidateUsers: [ann], outcomes: [yes]}}
`, `document: {dsl: '1.0.3', namespace: NS, name: daily, version: 1.0.0}
schedule: {every: {days: 9}}
do: [{rest: {set: {a: 1}}}]
`, `lifecycle: '1.0'
environment: NS
definition: case
version: '1.0.0'
states: {Draft: {category: initial}, Review: {}, Done: {category: final}}
events: {submit: {}, end: {}}
transitions: [{from: Draft, event: submit, to: Review}, {from: Review, event: end, to: Done}]
`, `policy: '1.0'
environment: NS
definition: case
version: '1.0.0'
states: {Review: {timeout: PT2H, timeoutEvent: end}}
`, `policy: '1.0'
environment: NS
definition: case
version: '1.1.0'
states: {Review: {timeout: PT3H, timeoutEvent: end}}
`}

// about is a request of an operation about what is in a namespace, NS: an instance NS-i, its
// tasks TASK, a dead letter NS-l. As a list it must show what is in that of who asks.
type about struct {
	operation, method, path, body string
	list                          bool
}

var everyOperation = []about{
	{"list-definitions", "GET", "/v1/definitions", "", true},
	{"list-definitions", "GET", "/v1/definitions?limit=1", "", true},
	{"list-versions", "GET", "/v1/definitions/NS/work", "", false},
	{"get-definition", "GET", "/v1/definitions/NS/work/1.0.0", "", false},
	{"get-source", "GET", "/v1/definitions/NS/work/1.0.0/source", "", false},
	{"compare-versions", "GET", "/v1/definitions/NS/work/1.0.0/diff/1.1.0", "", false},
	{"migrate-instances", "POST", "/v1/definitions/NS/work/migrations", `{"from":"1.0.0","to":"1.1.0","dryRun":true}`, false},
	{"list-schedules", "GET", "/v1/schedules", "", true},
	{"list-schedules", "GET", "/v1/schedules?definition=NS/daily", "", false},
	{"list-policies", "GET", "/v1/policies", "", true},
	{"list-policy-versions", "GET", "/v1/policies/NS/case", "", false},
	{"get-policy", "GET", "/v1/policies/NS/case/1.0.0", "", false},
	{"compare-policies", "GET", "/v1/policies/NS/case/1.0.0/diff/1.1.0", "", false},
	{"list-instances", "GET", "/v1/instances", "", true},
	{"list-instances", "GET", "/v1/instances?businessKey=one", "", true},
	{"list-instances", "GET", "/v1/instances?definition=NS/work", "", false},
	{"list-instances", "GET", "/v1/instances?definition=NS/work&where=amount%20%3E%201", "", false},
	{"list-instances", "GET", "/v1/instances?parent=NS-i", "", false},
	{"get-instance", "GET", "/v1/instances/NS-i", "", false},
	{"get-stream", "GET", "/v1/instances/NS-i/stream", "", false},
	{"explain-instance", "GET", "/v1/instances/NS-i/why", "", false},
	{"get-past-instance", "GET", "/v1/instances/NS-i/at/1", "", false},
	{"get-lifecycle", "GET", "/v1/lifecycles/NS/case/one", "", false},
	{"get-timeline", "GET", "/v1/timeline?businessKey=one", "", true},
	{"get-timeline", "GET", "/v1/timeline?instance=NS-i", "", false},
	{"list-commands", "GET", "/v1/commands", "", true},
	{"list-commands", "GET", "/v1/commands?instance=NS-i", "", false},
	{"get-command", "GET", "/v1/instances/NS-i/commands/COMMAND", "", false},
	{"list-dead-letters", "GET", "/v1/dead-letters", "", true},
	{"list-dead-letters", "GET", "/v1/dead-letters?instance=NS-i", "", false},
	{"get-dead-letter", "GET", "/v1/dead-letters/NS-l", "", false},
	{"list-activities", "GET", "/v1/instances/NS-i/activities", "", false},
	{"get-activity", "GET", "/v1/instances/NS-i/activities/x", "", false},
	{"list-tasks", "GET", "/v1/tasks", "", true},
	{"list-tasks", "GET", "/v1/tasks?instance=NS-i", "", false},
	{"get-task", "GET", "/v1/tasks/TASK", "", false},
	{"start-instance", "POST", "/v1/instances", `{"definition":"NS/work","businessKey":"one","startKey":"one"}`, false},
	{"start-instance", "POST", "/v1/instances", `{"definition":"NS/work","version":"9"}`, false},
	{"signal-instance", "POST", "/v1/instances/NS-i/signals", `{"type":"go"}`, false},
	{"trigger-event", "POST", "/v1/lifecycles/NS/case/one/events", `{"event":"submit"}`, false},
	{"attach-activity", "POST", "/v1/instances/NS-i/activities", `{"id":"y","name":"y"}`, false},
	{"update-activity", "POST", "/v1/instances/NS-i/activities/x/update", `{"version":1,"status":"s"}`, false},
	{"freeze-activity", "POST", "/v1/instances/NS-i/activities/x/freeze", `{"version":1}`, false},
	{"claim-command", "POST", "/v1/instances/NS-i/commands/COMMAND/claim", `{}`, false},
	{"retry-command", "POST", "/v1/instances/NS-i/commands/COMMAND/retry", ``, false},
	{"acknowledge-command", "POST", "/v1/instances/NS-i/commands/COMMAND/ack", `{"outcome":"retry"}`, false},
	{"fail-command", "POST", "/v1/instances/NS-i/commands/COMMAND/fail", `{"error":{"title":"no"}}`, false},
	{"complete-command", "POST", "/v1/instances/NS-i/commands/COMMAND/complete", `{"output":1}`, false},
	{"claim-task", "POST", "/v1/tasks/TASK/claim", `{"user":"ann"}`, false},
	{"count-dead-letters", "GET", "/v1/dead-letter-reasons?instance=NS-i", "", false},
	{"get-me", "GET", "/v1/me", "", false},
	{"comment-task", "POST", "/v1/tasks/TASK/comments", `{"user":"ann","text":"so"}`, false},
	{"release-task", "POST", "/v1/tasks/TASK/release", `{"user":"ann"}`, false},
	{"delegate-task", "POST", "/v1/tasks/TASK/delegate", `{"user":"ann","to":"ann"}`, false},
	{"reassign-task", "POST", "/v1/tasks/TASK/reassign", `{"user":"ann"}`, false},
	{"claim-next-tasks", "POST", "/v1/tasks/claim-next", `{"user":"ann","count":50}`, true},
	{"complete-task", "POST", "/v1/tasks/TASK/complete", `{"user":"ann","outcome":"yes"}`, false},
	{"operate-instance", "POST", "/v1/instances/NS-i/operations", `{"operation":"suspend"}`, false},
	{"replay-dead-letter", "POST", "/v1/dead-letters/NS-l/replay", ``, false},
	{"discard-dead-letter", "DELETE", "/v1/dead-letters/NS-l", ``, false},
}

// TestARoleOfANamespaceTellsOfItAlone asks for every operation with every role, limited to
// one of two namespaces: what is in the other is answered as what is not there, lists show
// nothing of it, and what is of all namespaces is refused.
func TestARoleOfANamespaceTellsOfItAlone(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		for _, role := range []access.Role{access.Viewer, access.TaskUser, access.Operator, access.Application} {
			place := fresh()
			t.Run(role, func(t *testing.T) { scopedTo(t, place, role) })
		}
	})
}

// scopedTo asks for every operation as somebody with a role of the shop.
func scopedTo(t *testing.T, place string, role access.Role) {
	n, tasks, command := twoNamespaces(t, place)
	tokens := access.NewTokens(n.store.Parts().Tokens, time.Now, slog.New(slog.DiscardHandler))
	_, secret, err := tokens.Create(t.Context(), access.Wanted{Name: "ann", Roles: []access.Role{role + "@shop"}})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(a about, namespace string) (int, string) {
		in := strings.NewReplacer("NS", namespace, "TASK", tasks[namespace], "COMMAND", command)
		path, end, _ := strings.Cut(a.path, "&after=") // which is nobody's words
		if path = in.Replace(path); end != "" {
			path += "&after=" + end
		}
		r := httptest.NewRequest(a.method, "https://node.example"+path, strings.NewReader(in.Replace(a.body)))
		if r.Header.Set("Authorization", "Bearer "+secret); a.body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		w := httptest.NewRecorder()
		n.handler.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	for _, a := range everyOperation {
		inTheOther(t, a, access.May(a.operation, []access.Role{role}), tasks, ask)
	}
	for _, a := range everyOperation { // and in the shop they may
		code, body := ask(a, "shop")
		missing := code == http.StatusNotFound && !lateOn(a)
		if access.May(a.operation, []access.Role{role}) && (missing || strings.Contains(body, "access.denied")) {
			t.Errorf("%s of the shop: %d %s", a.path, code, body)
		}
	}
	for _, id := range []string{"bank-i", "none-i"} {
		a := about{method: "POST", path: "/v1/instances", body: `{"definition":"shop/work","instanceId":"` + id + `"}`}
		if code, body := ask(a, "shop"); code != http.StatusForbidden {
			t.Errorf("%s: %d %s", a.body, code, body)
		}
	}
	ofAll(t, ask)
	ends(t, ask, role)
}

// ends looks at where pages of the shop end, which tells of nobody else's rows, and is
// where they go on.
func ends(t *testing.T, ask func(about, string) (int, string), role access.Role) {
	t.Helper()
	for _, list := range []string{"/v1/instances", "/v1/tasks", "/v1/dead-letters"} {
		operation := "list-" + strings.TrimPrefix(list, "/v1/")
		if !access.May(operation, []access.Role{role}) {
			continue
		}
		var all, paged []string
		type page struct {
			Items []struct {
				ID string `json:"id"`
			} `json:"items"`
			Next string `json:"next"`
		}
		read := func(query string) (p page) {
			code, body := ask(about{method: "GET", path: list + query}, "shop")
			if err := json.Unmarshal([]byte(body), &p); err != nil || code != http.StatusOK {
				t.Fatalf("%s%s: %d %s", list, query, code, body)
			}
			return p
		}
		for _, i := range read("").Items {
			all = append(all, i.ID)
		}
		for next := ""; ; {
			p := read("?limit=1&after=" + next)
			for _, i := range p.Items {
				paged = append(paged, i.ID)
			}
			if next = p.Next; next == "" {
				break
			}
			if len(next) < 40 {
				t.Errorf("%s: a page ends at %q", list, next)
			}
		}
		if !slices.Equal(all, paged) {
			t.Errorf("%s: %q, by pages %q", list, all, paged)
		}
		for _, guess := range []string{"1", "50.7", "AAAA"} {
			if code, body := ask(about{method: "GET", path: list + "?after=" + guess}, "shop"); code != http.StatusBadRequest || !strings.Contains(body, "page.invalid") {
				t.Errorf("%s after %s: %d %s", list, guess, code, body)
			}
		}
	}
}

// inTheOther asks for what is in another namespace.
func inTheOther(t *testing.T, a about, may bool, tasks map[string]string, ask func(about, string) (int, string)) {
	t.Helper()
	code, body := ask(a, "bank")
	switch {
	case !may:
		if code != http.StatusForbidden {
			t.Errorf("%s: %d %s", a.path, code, body)
		}
	case a.list:
		if code != http.StatusOK || strings.Contains(body, "bank") || !strings.Contains(body, "shop") {
			t.Errorf("%s: %d %s", a.path, code, body)
		}
	default:
		none, absent := ask(a, "none")
		same := func(body, namespace string) string {
			return strings.NewReplacer(tasks[namespace], "TASK", namespace, "NS").Replace(body)
		}
		if code != none || same(body, "bank") != same(absent, "none") || strings.Contains(body, "secret") {
			t.Errorf("%s: of the bank %d %s\nof nothing %d %s", a.path, code, body, none, absent)
		}
		if code < 300 && a.method != http.MethodGet {
			t.Errorf("%s is done in the bank: %d %s", a.path, code, body)
		}
	}
}

// lateOn says that this is about what is not there, or that a request before has taken away.
func lateOn(a about) bool {
	return strings.Contains(a.path, "/dead-letters/") || strings.Contains(a.body, `"version":"9"`)
}

// ofAll finds an operation of a role of one namespace that no request of the table is of, and
// one of all namespaces that it may do.
func ofAll(t *testing.T, ask func(about, string) (int, string)) {
	t.Helper()
	for _, id := range access.Apart() {
		if !slices.ContainsFunc(everyOperation, func(a about) bool { return a.operation == id }) {
			t.Errorf("%s is for roles of a namespace, and nobody has looked what it tells of others", id)
		}
	}
	for _, a := range []about{
		{"get-metrics", "GET", "/metrics", "", false}, {"list-queues", "GET", "/v1/queues", "", false}, {"list-targets", "GET", "/v1/targets", "", false},
		{"publish-event", "POST", "/v1/events", `{"specversion":"1.0","id":"1","source":"s","type":"t"}`, false}, {"reset-target", "POST", "/v1/targets/reset", `{"target":"x"}`, false},
		{"publish-definition", "POST", "/v1/definitions", "x", false}, {"list-audit", "GET", "/v1/audit", "", false}, {"list-tokens", "GET", "/v1/tokens", "", false},
	} {
		if slices.Contains(access.Apart(), a.operation) {
			t.Errorf("%s is of all namespaces", a.operation)
		}
		var p struct{ Code string }
		code, body := ask(a, "shop")
		if err := json.Unmarshal([]byte(body), &p); err != nil || code != http.StatusForbidden || p.Code != "access.denied" {
			t.Errorf("%s of the shop: %d %s", a.operation, code, body)
		}
	}
}

// twoNamespaces is a node with the same in two namespaces, the tasks of their instances and
// the position of their commands.
func twoNamespaces(t *testing.T, place string) (n *node, tasks map[string]string, command string) {
	t.Helper()
	url := "sqlite://" + place
	if strings.Contains(place, "connectString") {
		url = oracletest.URL(t, place)
	}
	l, err := config.Load(config.Source{Env: []string{"AQUEDUCT_STORE_URL=" + url, "AQUEDUCT_ACCESS_TOKENS=true"}})
	if err != nil {
		t.Fatal(err)
	}
	if n, err = wire(t.Context(), l.Config, "n1", slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.close)
	http := inProcess(n.handler)
	do := func(method, path, body string) string {
		t.Helper()
		r := httptest.NewRequest(method, "http://localhost"+path, strings.NewReader(body))
		r.RequestURI = ""
		if r.Header.Set("Content-Type", "application/json"); path == "/v1/definitions" {
			r.Header.Set("Content-Type", "application/yaml")
		}
		res, err := http.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		answer, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode >= 300 {
			t.Fatalf("%s %s: %d %s %v", path, body, res.StatusCode, answer, err)
		}
		return string(answer)
	}
	tasks, command = map[string]string{"none": "none-task"}, "2"
	for _, namespace := range []string{"bank", "shop"} {
		in := func(text string) string { return strings.ReplaceAll(text, "NS", namespace) }
		for _, document := range inNamespace {
			do("POST", "/v1/definitions", in(document))
		}
		do("POST", "/v1/instances", in(`{"definition":"NS/work","version":"1.0.0","instanceId":"NS-i","businessKey":"one","startKey":"one","input":{"secret":"NS-secret"}}`))
		do("POST", "/v1/lifecycles/"+namespace+"/case/one/events", `{"event":"submit"}`)
		do("POST", "/v1/instances/"+namespace+"-i/activities", in(`{"id":"x","name":"NS-secret"}`))
		p, err := n.store.Parts().Tasks.Tasks(t.Context(), backend.TaskQuery{InstanceID: namespace + "-i"})
		if err != nil || len(p.Items) != 1 {
			t.Fatal(p, err)
		}
		tasks[namespace] = p.Items[0].ID
		pending, err := n.store.Parts().Streams.Pending(t.Context(), namespace+"-i", 9)
		if err != nil || len(pending) != 1 {
			t.Fatal(pending, err)
		}
		command = strings.TrimSpace(string(mustJSON(t, pending[0].Position)))
		err = n.store.Parts().Writer.Commit(t.Context(), store.Change{DeadLetter: &projections.DeadLetter{
			ID: namespace + "-l", Queue: string(store.Signals), InstanceID: namespace + "-i", Reason: "signal.foreign", Detail: namespace + "-secret", DiedAt: time.Now().UTC(), Envelope: []byte(`{"x":1}`),
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	return n, tasks, command
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
