package api

import (
	"context"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/aqueduct-engine/aqueduct/access"
	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/internal/pki"
	"github.com/aqueduct-engine/aqueduct/principal"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

func (b *node) Create(context.Context, access.Wanted) (backend.Token, string, error) {
	return backend.Token{}, "", b.err
}
func (b *node) Tokens(context.Context, string, int) (backend.Page[backend.Token], error) {
	return backend.Page[backend.Token]{}, b.err
}
func (b *node) Revoke(context.Context, string) error { return b.err }
func (b *node) Audit(context.Context, backend.AuditQuery) (backend.Page[store.Audit], error) {
	return backend.Page[store.Audit]{}, b.err
}
func (b *node) At(_ context.Context, id string, position int64) (snapshot.Snapshot, error) {
	s := b.snap
	s.Position = position
	return s, b.err
}
func (b *node) Moments(_ context.Context, q backend.MomentQuery) (backend.Page[backend.Moment], error) {
	b.moments = q
	return backend.Page[backend.Moment]{Items: []backend.Moment{{Kind: "task", Ref: "t"}, {Kind: "activity", Ref: "a"}}}, b.err
}
func (b *node) Attach(_ context.Context, a backend.Activity) (backend.Activity, bool, error) {
	b.attached = a
	return a, true, b.err
}
func (b *node) Change(_ context.Context, c backend.ActivityChange) (backend.Activity, error) {
	b.change = c
	return backend.Activity{InstanceID: c.InstanceID, ID: c.ID}, b.err
}
func (b *node) Activity(_ context.Context, instance, id string) (backend.Activity, error) {
	return backend.Activity{InstanceID: instance, ID: id}, b.err
}
func (b *node) Activities(context.Context, string, string, int) (backend.Page[backend.Activity], error) {
	return backend.Page[backend.Activity]{Items: make([]backend.Activity, 1)}, b.err
}
func (b *node) DeadLetter(_ context.Context, id string) (projections.DeadLetter, error) {
	return projections.DeadLetter{ID: id, InstanceID: "of-" + id}, nil
}
func (b *node) Note(ctx context.Context, action, target, instance, code string) error {
	p := principal.Of(ctx)
	b.noted = append(b.noted, strings.Join([]string{p.Name, action, target, instance, code, p.Reason}, " "))
	return b.unnoted
}

// bearers are known by what they bear: "NAME:ROLE,ROLE".
type bearers struct{ err error }

func (b bearers) Verify(_ context.Context, bearer string) (principal.Principal, error) {
	name, roles, ok := strings.Cut(bearer, ":")
	if !ok {
		return principal.Principal{}, access.ErrOther
	}
	return principal.Principal{Name: name, Kind: principal.Token, Roles: strings.Split(roles, ",")}, b.err
}

// guarded is a node's API that asks who sends a request.
func guarded(t *testing.T, b *node, err error) http.Handler {
	t.Helper()
	return guardedBy(t, b, &access.Gate{Verifiers: []access.Verifier{bearers{err}}})
}

func guardedBy(t *testing.T, b *node, g *access.Gate) http.Handler {
	t.Helper()
	return guardedAt(t, b, g, func() time.Time { return time.Unix(0, 0) })
}

func guardedAt(t *testing.T, b *node, g *access.Gate, now func() time.Time) http.Handler {
	t.Helper()
	h, failed := New(Config{
		Starter: b, Signaller: b, Tasks: b, Commenter: b, Operator: b, Acknowledger: b, DeadLetters: b, Dispatcher: b, Publisher: b, Migrator: b, Definitions: b, Tokens: b, Auditor: b, Activities: b, Past: b, Bulk: bulkNode{b},
		Reader: Reader{Instances: b, Streams: b, Tasks: b, DeadLetters: b, Backlog: b, Members: b, Audit: b, Activities: b, Moments: b, Plans: bulkNode{b}},
		Ready:  func(context.Context) error { return nil }, Now: now,
		Registerer: prometheus.NewRegistry(), Metrics: http.NotFoundHandler(), Access: g, Secret: []byte("a secret of the database"),
	})
	if failed != nil {
		t.Fatal(failed)
	}
	return h
}

// described are the operations of the API, by its own document, and the two paths
// beside it: a method and a path of each.
func described(t *testing.T) map[string][2]string {
	t.Helper()
	var doc struct {
		Paths map[string]map[string]struct {
			OperationID string `json:"operationId"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(call(handler(t, &node{}), "GET", "/openapi.json", "").Body.Bytes(), &doc); err != nil || len(doc.Paths) < 20 {
		t.Fatal(len(doc.Paths), err)
	}
	found := map[string][2]string{"get-metrics": {"GET", "/metrics"}, "get-openapi": {"GET", "/openapi.json"}}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			found[op.OperationID] = [2]string{strings.ToUpper(method), path}
		}
	}
	return found
}

// TestEveryOperationHasRoles: an operation that no role is given for, and a role for
// an operation that is not there.
func TestEveryOperationHasRoles(t *testing.T) {
	t.Parallel()
	all := described(t)
	for id := range all {
		if !access.Anybody(id) && !slices.Contains(access.Operations(), id) {
			t.Errorf("%s: which roles may do it? access/roles.go says it of every operation", id)
		}
	}
	for _, id := range access.Operations() {
		if all[id][0] == "" {
			t.Errorf("access/roles.go gives roles for %s, which the API does not have", id)
		}
	}
}

// TestMatrix asks for every operation with every role, by a token and by a certificate,
// with none, and with a token and a certificate that nobody knows: it is refused before
// its body is read, or not at all.
func TestMatrix(t *testing.T) {
	t.Parallel()
	ours := pki.New("ours")
	by := &access.Certificates{Authorities: ours.Pool, Roles: map[string][]access.Role{}, Now: time.Now}
	held := map[access.Role]*x509.Certificate{}
	for _, role := range access.Roles {
		by.Roles["CN=of-"+role] = []access.Role{role}
		held[role] = ours.Sign(x509.Certificate{Subject: pkix.Name{CommonName: "of-" + role}}).X509()
	}
	strange := pki.New("strange").Sign(x509.Certificate{Subject: pkix.Name{CommonName: "of-admin"}}).X509()
	h := guardedBy(t, &node{err: problem.New(problem.NotFound, "x.unknown", "x")}, &access.Gate{Verifiers: []access.Verifier{bearers{}}, Certificates: by})
	path := strings.NewReplacer("{id}", "x", "{namespace}", "a", "{name}", "b", "{version}", "1", "{to}", "2", "{position}", "1",
		"{environment}", "a", "{definition}", "b", "{reference}", "c")
	for id, op := range described(t) {
		show := func(authorization string, held ...*x509.Certificate) (int, string) {
			r := httptest.NewRequest(op[0], "https://node.example"+path.Replace(op[1]), nil)
			if r.TLS.PeerCertificates = held; authorization != "" {
				r.Header.Set("Authorization", authorization)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Header().Get(requestHeader) == "" {
				t.Errorf("%s: the answer does not say which request it is of", id)
			}
			if w.Code != http.StatusUnauthorized && w.Code != http.StatusForbidden && (w.Code != http.StatusBadRequest || held == nil) {
				return w.Code, ""
			}
			return w.Code, problemOf(t, w).Code
		}
		ask := func(authorization string) (int, string) { return show(authorization) }
		for authorization, want := range map[string]string{"": "access.token-missing", "Basic YTpi": "access.token-missing", "Bearer ": "access.token-missing",
			"Bearer x": "access.token-refused", "Bearer x" + strings.Repeat("x", 24<<10): "access.token-refused"} {
			if authorization == "" && access.Anybody(id) {
				want = ""
			}
			if status, code := ask(authorization); code != want || want != "" && status != http.StatusUnauthorized {
				t.Errorf("%s with %.20q: %d %s, want %s", id, authorization, status, code, want)
			}
		}
		for _, role := range access.Roles {
			want := ""
			if !access.Anybody(id) && !access.May(id, []access.Role{role}) {
				want = "access.denied"
			}
			if status, code := ask("bearer ann:" + role); code != want {
				t.Errorf("%s as %s: %d %s, want %q", id, role, status, code, want)
			}
			if status, code := show("", held[role]); code != want && (want != "" || status != http.StatusBadRequest) {
				t.Errorf("%s with a certificate of %s: %d %s, want %q", id, role, status, code, want)
			}
			if status, code := show("bearer ann:"+role, held[role]); status != http.StatusBadRequest || code != "request.invalid" {
				t.Errorf("%s as two: %d %s", id, status, code)
			}
		}
		if status, code := show("", strange); !access.Anybody(id) && (status != http.StatusUnauthorized || code != "access.certificate-refused") {
			t.Errorf("%s with a strange certificate: %d %s", id, status, code)
		}
	}
}

// TestAccessUnavailable: who cannot be asked about is not let in, and not refused for
// good either.
func TestAccessUnavailable(t *testing.T) {
	t.Parallel()
	h := guarded(t, &node{}, problem.New(problem.Unavailable, "access.unavailable", "the database does not answer"))
	p := problemOf(t, call(h, "GET", "/v1/instances", "", "Authorization", "Bearer ann:viewer"))
	if p.Status != http.StatusServiceUnavailable || p.Code != "access.unavailable" {
		t.Errorf("%d %s", p.Status, p.Code)
	}
}

// forgotten are known for a number of requests, and refused after them.
type forgotten struct {
	bearers
	left *int
}

func (f forgotten) Verify(ctx context.Context, bearer string) (principal.Principal, error) {
	if *f.left--; *f.left < 0 {
		return principal.Principal{}, problem.New(problem.Denied, "access.token-refused", "it is revoked")
	}
	return f.bearers.Verify(ctx, bearer)
}

// TestWhoIsRefusedWhileTheyWaitIsToldNothing: a token that is revoked while a request waits
// is not good for its answer; what was done by then is said.
func TestWhoIsRefusedWhileTheyWaitIsToldNothing(t *testing.T) {
	t.Parallel()
	left, step, at := 0, time.Duration(0), time.Unix(0, 0)
	b := &node{}
	h := guardedAt(t, b, &access.Gate{Verifiers: []access.Verifier{forgotten{left: &left}}}, func() time.Time { at = at.Add(step); return at })
	for _, c := range []struct {
		known        int
		step         time.Duration
		method, path string
		status       int
	}{
		{1, time.Second, "GET", "/v1/tasks?limit=1", http.StatusUnauthorized},
		{2, time.Second, "GET", "/v1/tasks?limit=1", http.StatusOK},
		{1, time.Millisecond, "GET", "/v1/tasks?limit=1", http.StatusOK},
		{1, time.Second, "GET", "/openapi.json", http.StatusUnauthorized},
		{1, time.Second, "DELETE", "/v1/dead-letters/l", http.StatusNoContent},
		{1, time.Second, "POST", "/v1/instances?wait=1s", http.StatusUnauthorized}, // what was begun is begun
	} {
		left, step = c.known, c.step
		body := ""
		if c.method == "POST" {
			body = `{"definition":"t/d"}`
		}
		w := call(h, c.method, c.path, body, "Authorization", "Bearer ann:viewer,operator")
		if w.Code != c.status {
			t.Errorf("%s, known %d times, after %s: %d %s", c.path, c.known, c.step, w.Code, w.Body)
		}
		if w.Code == http.StatusUnauthorized && (problemOf(t, w).Code != "access.token-refused" || strings.Contains(w.Body.String(), "items")) {
			t.Errorf("%s: %s", c.path, w.Body)
		}
	}
}

// TestTheActorIsTheIdentity: what a request says of itself counts only for those who
// may speak for others.
func TestTheActorIsTheIdentity(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ bearer, claims, want string }{
		{"ann:operator", "", "ann"},
		{"ann:operator", "eve", "ann"},
		{"shop:application", "eve", "eve"},
		{"shop:application", "", "shop"},
	} {
		b := &node{}
		h := guarded(t, b, nil)
		call(h, "POST", "/v1/events", `{"specversion":"1.0","id":"1","source":"s","type":"t"}`,
			"Authorization", "Bearer "+c.bearer, actorHeader, c.claims, "Content-Type", "application/cloudevents+json")
		if got := b.headers[signal.HeaderActor]; got != c.want {
			t.Errorf("%s as %q: %q", c.bearer, c.claims, got)
		}
	}
}

// TestALongNameIsAnActor: of a certificate, or of who an identity provider knows, which have as
// many bytes as the actor of a signal.
func TestALongNameIsAnActor(t *testing.T) {
	t.Parallel()
	name := "spiffe//shop.example/" + strings.Repeat("n", 235)
	for path, body := range map[string]string{
		"/v1/instances": `{"definition":"t/x"}`, "/v1/lifecycles/shop/loan/L-1/events": `{"event":"x"}`, "/v1/instances/i/signals": `{"type":"a"}`,
		"/v1/instances/i/operations": `{"operation":"suspend"}`, "/v1/instances/i/activities": `{"id":"a","name":"a"}`,
	} {
		b := &node{snap: waiting}
		w := call(guarded(t, b, nil), "POST", path, body, "Authorization", "Bearer "+name+":operator")
		if w.Code == http.StatusUnprocessableEntity || b.headers != nil && b.headers[signal.HeaderActor] != name || b.start.Signal != nil && b.start.Signal.Actor != name {
			t.Errorf("%s: %d %s %v", path, w.Code, w.Body, b.headers)
		}
	}
}

// TestEventsHaveTypes: an event of a type that is not for who sends it reaches nobody, in
// either mode.
func TestEventsHaveTypes(t *testing.T) {
	t.Parallel()
	b := &node{}
	h := guardedBy(t, b, &access.Gate{Verifiers: []access.Verifier{bearers{}}, Events: access.EventTypes{"order.*": {access.Application}}})
	structured := func(typ string) (string, []string) {
		return `{"specversion":"1.0","id":"1","source":"s","type":"` + typ + `"}`, []string{"Content-Type", "application/cloudevents+json"}
	}
	binary := func(typ string) (string, []string) {
		return `1`, []string{"Content-Type", "application/json", "ce-id", "1", "ce-source", "s", "ce-specversion", "1.0", "ce-type", typ}
	}
	for _, mode := range []func(string) (string, []string){structured, binary} {
		for _, c := range []struct {
			role, typ string
			status    int
		}{{"application", "order.paid", 202}, {"application", "pay.done", 403}, {"operator", "order.paid", 403}} {
			b.headers = nil
			body, headers := mode(c.typ)
			w := call(h, "POST", "/v1/events", body, append(headers, "Authorization", "Bearer ann:"+c.role, actorHeader, "ann")...)
			if w.Code != c.status || (b.headers != nil) != (c.status == 202) {
				t.Errorf("%s of %s: %d %s", c.typ, c.role, w.Code, w.Body)
			}
			for path, body := range map[string]string{ // as an event, for one instance
				"/v1/instances/i/signals": `{"type":"` + c.typ + `"}`, "/v1/instances": `{"definition":"t/x","signal":{"type":"` + c.typ + `"}}`,
			} {
				w := call(h, "POST", path, body, "Authorization", "Bearer ann:"+c.role)
				if (w.Code == 403) != (c.status == 403) {
					t.Errorf("%s of %s at %s: %d %s", c.typ, c.role, path, w.Code, w.Body)
				}
			}
		}
	}
}

// TestATriggeredEventHasAType: of what is no lifecycle it is an event for one instance; of a
// lifecycle its own roles say who may trigger it.
func TestATriggeredEventHasAType(t *testing.T) {
	t.Parallel()
	lifecycle, workflow := definition.Record{Kind: "lifecycle"}, definition.Record{Kind: "openworkflow"}
	for _, c := range []struct {
		of     []definition.Record
		event  string
		status int
	}{
		{[]definition.Record{workflow}, "order.paid", 201}, {[]definition.Record{workflow}, "pay.done", 403}, {nil, "pay.done", 403},
		{[]definition.Record{lifecycle}, "pay.done", 201}, {[]definition.Record{lifecycle, workflow}, "pay.done", 403},
	} {
		b := &node{versions: c.of, snap: waiting}
		h := guardedBy(t, b, &access.Gate{Verifiers: []access.Verifier{bearers{}}, Events: access.EventTypes{"order.*": {access.Application}}})
		w := call(h, "POST", "/v1/lifecycles/shop/loan/L-1/events", `{"event":"`+c.event+`"}`, "Authorization", "Bearer app:application")
		if w.Code != c.status || (b.start.Signal == nil) != (c.status == 403) {
			t.Errorf("%s of %v: %d %s", c.event, c.of, w.Code, w.Body)
		}
	}
}

// groups gives who bears something groups of tasks.
type groups struct{ bearers }

func (g groups) Verify(ctx context.Context, bearer string) (principal.Principal, error) {
	p, err := g.bearers.Verify(ctx, bearer)
	p.Groups = []string{"clerks"}
	return p, err
}

// TestPeopleWorkAsThemselves: the user of a task is the identity, but of those who may
// speak for others; and who works on tasks alone sees those that they may do.
func TestPeopleWorkAsThemselves(t *testing.T) {
	t.Parallel()
	b := &node{tasks: map[string]projections.Task{
		"mine": {ID: "mine", Status: projections.TaskReserved, Assignee: "ann"}, "his": {ID: "his", Status: projections.TaskReserved, Assignee: "bob"},
		"ours": {ID: "ours", CandidateGroups: `["clerks"]`}, "theirs": {ID: "theirs", CandidateGroups: `["managers"]`},
	}}
	h := guardedBy(t, b, &access.Gate{Verifiers: []access.Verifier{groups{}}})
	for _, c := range []struct{ bearer, method, path, body, code string }{
		{"ann:task-user", "POST", "/v1/tasks/ours/claim", `{"user":"ann","groups":["clerks"]}`, ""},
		{"ann:task-user", "POST", "/v1/tasks/ours/claim", `{"user":"eve"}`, "access.not-you"},
		{"ann:task-user", "POST", "/v1/tasks/ours/claim", `{"user":"ann","groups":["managers"]}`, "access.not-you"},
		{"ann:task-user", "POST", "/v1/tasks/ours/release", `{"user":"eve"}`, "access.not-you"},
		{"ann:task-user", "POST", "/v1/tasks/ours/complete", `{"user":"eve","outcome":"ok"}`, "access.not-you"},
		{"ann:task-user", "POST", "/v1/tasks/ours/delegate", `{"user":"eve","to":"ann"}`, "access.not-you"},
		{"ann:task-user", "POST", "/v1/tasks/ours/comments", `{"user":"eve","text":"x"}`, "access.not-you"},
		{"ann:task-user", "POST", "/v1/tasks/claim-next", `{"user":"eve"}`, "access.not-you"},
		{"ann:operator", "POST", "/v1/tasks/x/reassign", `{"user":"eve","to":"ann"}`, "access.not-you"},
		{"shop:application", "POST", "/v1/tasks/x/claim", `{"user":"eve","groups":["managers"]}`, ""},
		{"ann:task-user", "GET", "/v1/tasks?user=eve", "", "access.not-you"},
		{"ann:task-user", "GET", "/v1/tasks/mine", "", ""},
		{"ann:task-user", "GET", "/v1/tasks/ours", "", ""},
		{"ann:task-user", "GET", "/v1/tasks/his", "", "task.taken"}, // which anybody could have claimed
		{"ann:task-user", "GET", "/v1/tasks/theirs", "", "task.unknown"},
		{"ann:task-user", "GET", "/v1/tasks/none", "", "task.unknown"},
		{"ann:task-user", "POST", "/v1/tasks/theirs/claim", `{"user":"ann"}`, "task.unknown"},
		{"ann:task-user", "POST", "/v1/tasks/theirs/release", `{"user":"ann"}`, "task.unknown"},
		{"ann:task-user", "POST", "/v1/tasks/theirs/delegate", `{"user":"ann","to":"bob"}`, "task.unknown"},
		{"ann:task-user", "POST", "/v1/tasks/theirs/complete", `{"user":"ann","outcome":"ok"}`, "task.unknown"},
		{"ann:task-user", "POST", "/v1/tasks/none/claim", `{"user":"ann"}`, "task.unknown"},
		{"shop:application", "POST", "/v1/tasks/theirs/claim", `{"user":"ann"}`, ""},
		{"ann:task-user,viewer", "GET", "/v1/tasks/his", "", ""},
	} {
		w := call(h, c.method, c.path, c.body, "Authorization", "Bearer "+c.bearer, "Content-Type", "application/json")
		code := ""
		if w.Code >= 400 {
			code = problemOf(t, w).Code
		}
		if code != c.code {
			t.Errorf("%s %s %s %s: %d %s, want %q", c.bearer, c.method, c.path, c.body, w.Code, code, c.code)
		}
	}
	for bearer, want := range map[string]backend.TaskQuery{
		"ann:task-user": {Status: backend.TaskOpen, User: "ann", Groups: []string{"clerks"}, Limit: 50},
		"ann:viewer":    {Status: backend.TaskOpen, Limit: 50},
	} {
		call(h, "GET", "/v1/tasks", "", "Authorization", "Bearer "+bearer)
		if !reflect.DeepEqual(b.asked, want) {
			t.Errorf("%s asked for %+v", bearer, b.asked)
		}
	}
}

// TestATaskIsSaidOfByOneRule: whatever somebody asks of a task, who may not read it hears the same.
func TestATaskIsSaidOfByOneRule(t *testing.T) {
	t.Parallel()
	of := func(k projections.Task) projections.Task {
		k.Definition, k.CandidateGroups = "shop/order", `["clerks"]`
		return k
	}
	b := &node{tasks: map[string]projections.Task{
		"mine": {ID: "mine", Definition: "shop/order", Status: projections.TaskReserved, Assignee: "ann"}, "did": {ID: "did", Definition: "shop/order", Status: projections.TaskCompleted, Assignee: "ann", EndedBy: "ann"},
		"ours": of(projections.Task{ID: "ours", Status: projections.TaskReady}), "past": of(projections.Task{ID: "past", Status: projections.TaskExpired}),
		"taken": of(projections.Task{ID: "taken", Status: projections.TaskReserved, Assignee: "bob"}), "done": of(projections.Task{ID: "done", Status: projections.TaskCompleted, Assignee: "bob", EndedBy: "bob"}),
		"over": of(projections.Task{ID: "over", Status: projections.TaskCancelled, Assignee: "bob"}), "theirs": {ID: "theirs", Definition: "shop/order", Status: projections.TaskReady, CandidateGroups: `["managers"]`},
		"not": {ID: "not", Definition: "shop/order", Status: projections.TaskReserved, Assignee: "bob", CandidateGroups: `["clerks"]`, ExcludedUsers: `["ann"]`},
	}}
	h := guardedBy(t, b, &access.Gate{Verifiers: []access.Verifier{groups{}}})
	bodies := map[string]string{
		"get-task": "", "claim-task": `{"user":"ann"}`, "comment-task": `{"user":"ann","text":"so"}`, "release-task": `{"user":"ann"}`, "delegate-task": `{"user":"ann","to":"eve"}`,
		"complete-task": `{"user":"ann","outcome":"ok"}`, "reassign-task": `{"user":"ann","to":"eve"}`,
	}
	alone := map[string]string{"mine": "", "did": "", "ours": "", "past": "", "taken": "task.taken", "done": "task.completed", "over": "task.closed", "theirs": "task.unknown", "not": "task.unknown", "none": "task.unknown"}
	all := map[string]string{"mine": "", "did": "", "ours": "", "past": "", "taken": "", "done": "", "over": "", "theirs": "", "not": ""}
	for roles, want := range map[string]map[string]string{
		"task-user": alone, "task-user@shop": alone, "task-user,viewer@bank": alone, "task-user@shop,operator@bank": alone,
		"task-user,viewer": all, "task-user,operator@shop": all, "task-user@shop,viewer@shop": all,
	} {
		for id, op := range described(t) {
			if !strings.HasPrefix(op[1], "/v1/tasks/{id}") || !access.May(id, strings.Split(roles, ",")) {
				continue
			}
			body, known := bodies[id]
			if !known {
				t.Errorf("%s is of a task, and nobody has looked what it says to whom", id)
			}
			for task, code := range want {
				if id == "reassign-task" && !strings.Contains(roles, "operator@shop") {
					continue // which they may not do in the shop
				}
				w := call(h, op[0], strings.Replace(op[1], "{id}", task, 1), body, "Authorization", "Bearer ann:"+roles, "Content-Type", "application/json")
				got := client.Problem{}
				if w.Code >= 400 {
					got = problemOf(t, w)
				}
				if got.Code != code || (code == "task.completed") != (got.CompletedBy == "bob") {
					t.Errorf("%s: %s of %s: %d %+v, not %q", roles, id, task, w.Code, got, code)
				}
			}
		}
	}
}

// TestRefusalsAreNoted: of those who are known, where they would have changed something.
func TestRefusalsAreNoted(t *testing.T) {
	t.Parallel()
	b := &node{err: problem.New(problem.Conflict, "instance.not-faulted", "it is not faulted"), tasks: map[string]projections.Task{"k": {ID: "k", InstanceID: "i"}}}
	h := guarded(t, b, nil)
	operate := `{"operation":"retry"}`
	for _, c := range []struct{ bearer, method, path, body, note string }{
		{"ann:viewer", "DELETE", "/v1/dead-letters/l", "", "ann discard l of-l access.denied why"},
		{"ann:viewer", "POST", "/v1/tokens", "{", "ann create-token /v1/tokens  access.denied why"},
		{"ann:operator", "POST", "/v1/instances/i/operations", operate, "ann retry i i instance.not-faulted why"},
		{"ann:viewer", "POST", "/v1/instances/i%2Fj/operations", operate, "ann retry i/j i/j access.denied why"},
		{"ann:viewer", "POST", "/v1/instances/i/operations", `{"operation":"<b>"}`, "ann operate-instance i i access.denied why"},
		{"ann:viewer", "POST", "/v1/tasks/k/claim", "", "ann claim-task k i access.denied why"},
		{"ann:viewer", "POST", "/v1/lifecycles/shop/loan/L%2F1/events", "", "ann trigger-event shop/loan/L/1 i access.denied why"},
		{"ann:viewer", "POST", "/v1/lifecycles/shop/loan/L2/events", "", "ann trigger-event shop/loan/L2  access.denied why"},
		{"ann:viewer", "POST", "/v1/instances/i/rewind", "", "ann rewind i i access.denied why"},
		{"ann:viewer", "POST", "/v1/instances/i/commands/3/retry", "", "ann retry-command i/3 i access.denied why"},
		{"ann:viewer", "POST", "/v1/instances/i/activities/a/freeze", "", "ann freeze-activity a i access.denied why"},
		{"ann:viewer", "POST", "/v1/definitions/ns/n/migrations", "", "ann migrate ns/n  access.denied why"},
		{"ann:task-user", "GET", "/v1/instances", "", ""},
		{"ann:operator", "POST", "/v1/instances/i/operations", "{", ""},
		{"nobody", "DELETE", "/v1/dead-letters/l", "", ""},
	} {
		b.noted = nil
		call(h, c.method, c.path, c.body, "Authorization", "Bearer "+c.bearer, reasonHeader, "why", "Content-Type", "application/json")
		if got := strings.Join(b.noted, ", "); got != c.note {
			t.Errorf("%s %s %s: %q, want %q", c.bearer, c.method, c.path, got, c.note)
		}
	}
	for _, reason := range []string{strings.Repeat("x", 1001), "a\xffb"} {
		if w := call(h, "DELETE", "/v1/dead-letters/l", "", "Authorization", "Bearer ann:operator", reasonHeader, reason); problemOf(t, w).Code != "request.invalid" {
			t.Errorf("%.10q: %d", reason, w.Code)
		}
	}
}

// Of two headers that say who asks, a proxy may have looked at the other one.
func TestTwoAuthorizationsAreRefused(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest("GET", "/v1/instances", nil)
	r.Host = "node.example"
	r.Header["Authorization"] = []string{"Bearer ann:viewer", "Bearer bob:admin"}
	w := httptest.NewRecorder()
	guarded(t, &node{}, nil).ServeHTTP(w, r)
	if w.Code != 400 || problemOf(t, w).Code != "request.invalid" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func (b *node) Members(context.Context) ([]backend.Node, error) { return nil, b.err }

func (b *node) CommentTask(context.Context, string, string, string) (projections.Task, error) {
	return projections.Task{}, b.err
}
