package main

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/access"
	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/config"
	"github.com/aqueduct-engine/aqueduct/console"
)

// person is somebody at a browser without script.
type person struct {
	t    *testing.T
	http *http.Client
	base string
}

func atConsole(t *testing.T, base string) *person {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &person{t, &http.Client{Jar: jar}, base}
}

// page gets a page, and checks what every page has and what this one says.
func (p *person) page(path string, says ...string) string {
	p.t.Helper()
	res, err := p.http.Get(p.base + "/console" + path)
	return p.read(path, res, err, http.StatusOK, says)
}

// press sends a form, and checks the page that comes of it.
func (p *person) press(status int, path string, form url.Values, says ...string) string {
	p.t.Helper()
	res, err := p.http.PostForm(p.base+"/console"+path, form)
	return p.read(path, res, err, status, says)
}

func (p *person) read(path string, res *http.Response, err error, status int, says []string) string {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	text := string(body)
	if res.StatusCode != status {
		p.t.Errorf("%s: %d, not %d:\n%s", path, res.StatusCode, status, text)
	}
	if !strings.HasPrefix(res.Header.Get("Content-Security-Policy"), "default-src 'none';") {
		p.t.Errorf("%s: no policy", path)
	}
	for _, bad := range []string{"<script>", " style=", " onclick=", "javascript:"} {
		if strings.Contains(text, bad) {
			p.t.Errorf("%s: the page has %q, which its policy does not allow", path, bad)
		}
	}
	for _, s := range says {
		if !strings.Contains(text, s) {
			p.t.Errorf("%s: the page does not say %q:\n%s", path, s, text)
		}
	}
	return text
}

const forms = `document: {dsl: '1.0.3', namespace: test, name: form, version: 1.0.0, title: "<b>Form</b>"}
do:
  - prepare: {set: '${ . }'}
  - ask:
      call: humanTask
      with:
        title: '${ "Approve <script>" + .who }'
        candidateGroups: [clerks]
        outcomes: [yes, no]
        form:
          schema:
            type: object
            required: [amount, owed]
            properties:
              amount: {type: integer, title: Amount, minimum: 1}
              when: {type: string, format: date}
              kind: {enum: [a, 7, ' y ', null]}
              lines: {type: string, default: "\none\n  two\n"}
              sure: {type: boolean}
              owed: {enum: [null, 1, '1', true]}
              rest: {type: object}
`

// A person does a task by forms alone: what they write arrives as it is, and what
// is wrong is said where it was written.
func TestATaskIsDoneAtTheConsole(t *testing.T) {
	t.Parallel()
	_, c, base := running(t)
	p := atConsole(t, base)
	p.page("/", "Nothing is published yet", "Nothing is faulted")
	p.press(http.StatusUnprocessableEntity, "/definitions", url.Values{"source": {"document: {dsl: '1.0.3'}\ndo: 7\n"}}, "line 2", "do: 7")
	p.press(http.StatusOK, "/definitions", url.Values{"source": {forms}}, "It is published.", "ask (humanTask")
	p.press(http.StatusUnprocessableEntity, "/definitions/test/form/1.0.0/start", url.Values{"data": {`{"who": ann}`}}, "the input is no JSON", "{&#34;who&#34;: ann}")
	p.press(http.StatusOK, "/definitions/test/form/1.0.0/start", url.Values{"data": {`{"who": "</title>", "n": 12345678901234567890}`}, "id": {"f-1"}},
		"It has begun.", "12345678901234567890", "nobody has claimed the task, which is for clerks", `<rect class="node call here"`)
	again := url.Values{"data": {`{"who": "ann", "n": 1}`}, "request": {"r-1"}}
	p.press(http.StatusOK, "/definitions/test/form/1.0.0/start", again, "It has begun.")
	p.press(http.StatusOK, "/definitions/test/form/1.0.0/start", again, "It was begun before.")
	p.page("/definitions/test/form/1.0.0", `name="id" value="" placeholder="one is made"`)
	asked, err := c.Tasks(t.Context(), client.TaskQuery{InstanceID: "f-1"})
	if err != nil || len(asked.Items) != 1 {
		t.Fatalf("%+v %v", asked, err)
	}
	id := asked.Items[0].ID
	p.page("/tasks", "Approve &lt;script&gt;&lt;/title&gt;")
	p.page("/tasks/"+id, "Say who you are")
	p.press(http.StatusOK, "/who", url.Values{"user": {"kim"}, "groups": {"other"}, "back": {"/console/tasks"}}, "Nothing for kim or other now")
	p.press(http.StatusForbidden, "/tasks/"+id+"/claim", nil, "task.denied")
	p.press(http.StatusOK, "/who", url.Values{"user": {"kim"}, "groups": {"clerks, other"}, "back": {"//evil.example/"}}, "Approve &lt;script&gt;")
	p.press(http.StatusOK, "/tasks/claim-next", nil, "It is yours.", "Amount *", `<option value="7">7</option><option value=" y "> y </option></select>`, `<option value="1">1</option><option value="&#34;1&#34;">&#34;1&#34;</option><option value="true">true</option>`, "<textarea name=\"field.lines\" rows=\"4\">\n\none\n  two\n</textarea>")
	if _, err := c.Reassign(t.Context(), id, client.ReassignRequest{User: "boss", To: "ann"}); err != nil {
		t.Fatal(err)
	}
	p.press(http.StatusForbidden, "/tasks/"+id+"/complete", url.Values{"field.lines": {"written\r\nfor an hour"}, "outcome": {"yes"}}, "task.not-yours", "What was sent", "<pre>written\r\nfor an hour</pre>")
	if _, err := c.Reassign(t.Context(), id, client.ReassignRequest{User: "boss", To: "kim"}); err != nil {
		t.Fatal(err)
	}
	answer := url.Values{"field.owed": {"null"}, "field.amount": {"many"}, "field.when": {"2026-11-23"}, "field.kind": {" y "}, "field.rest": {"{oops"}, "field.sure": {"maybe"}, "field.lines": {"\r\none\r\n  two\r\n"}, "outcome": {"yes"}}
	p.press(http.StatusUnprocessableEntity, "/tasks/"+id+"/complete", answer, "/amount", "is no number", "/rest", "is no JSON", "/sure", "is neither true nor false", `value="many"`, "{oops")
	answer.Set("field.rest", `{"x":1.50}`)
	answer.Set("field.sure", "false")
	answer.Set("field.amount", "0")
	p.press(http.StatusUnprocessableEntity, "/tasks/"+id+"/complete", answer, "amount", `value="2026-11-23"`)
	answer.Set("field.amount", "12345678901234567890")
	p.press(http.StatusOK, "/tasks/"+id+"/complete", answer, "It is done.", "12345678901234567890", "kim")
	d, err := c.Task(t.Context(), id)
	if err != nil || !strings.Contains(string(d.Output), `"data":{"amount":12345678901234567890,"kind":" y ","lines":"\none\n  two\n","owed":null,"rest":{"x":1.50},"sure":false,"when":"2026-11-23"}`) {
		t.Errorf("%s %v", d.Output, err)
	}
	p.page("/tasks/"+id, " by kim: yes")
	p.press(http.StatusConflict, "/tasks/"+id+"/complete", url.Values{"outcome": {"no"}}, "kim: yes", `name="back" value="/console/tasks/`+id+`"`)
	p.page("/instances?status=completed&definition=test/form", "f-1", "completed")
	p.page("/instances?definition=test/form&version=1.0.0", "f-1", "version 1.0.0")
	p.page("/instances?definition=test/form&version=2.0.0", "No such instance")
	const odd = "/instances?definition=test/form&where="
	res, err := p.http.Get(base + "/console" + odd + url.QueryEscape(`n >> 12`))
	p.read(odd, res, err, http.StatusUnprocessableEntity, []string{"filter.invalid", `value="n &gt;&gt; 12"`})
	res, err = p.http.Get(base + "/console" + odd + url.QueryEscape(`n > 12`))
	p.read(odd, res, err, http.StatusUnprocessableEntity, []string{"filter.attribute", `value="n &gt; 12"`})
	p.page("/instances/f-1", `<rect class="node call done"`, `<rect class="end-point done"`)
	p.press(http.StatusConflict, "/instances/f-1/operate", url.Values{"operation": {"cancel"}}, "instance.closed")
}

// What waits for a time has a button, where it is said what must happen next.
func TestATimerIsRunNowAtTheConsole(t *testing.T) {
	t.Parallel()
	_, c, base := running(t)
	p, ctx := atConsole(t, base), t.Context()
	const later = `document: {dsl: '1.0.3', namespace: test, name: later, version: 1.0.0}
do:
  - both: {fork: {branches: [{a: {wait: {days: 1}}}, {b: {wait: {days: 2}}}]}}
`
	if _, _, err := c.Publish(ctx, "l.yaml", []byte(later)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Start(ctx, client.StartRequest{Definition: "test/later", InstanceID: "l-1"}, 0); err != nil {
		t.Fatal(err)
	}
	const told = `document: {dsl: '1.0.3', namespace: test, name: told, version: 1.0.0}
do:
  - announce: {call: acknowledged, with: {call: http, with: {method: post, endpoint: 'http://127.0.0.1:1/x'}}}
`
	if _, _, err := c.Publish(ctx, "t.yaml", []byte(told)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Start(ctx, client.StartRequest{Definition: "test/told", InstanceID: "c-1"}, 0); err != nil {
		t.Fatal(err)
	}
	p.page("/instances/c-1", "Calls that are not done", "<code>/do/0/announce</code>")
	if strings.Contains(p.page("/instances/l-1"), "Calls that are not done") {
		t.Error("it has called nothing")
	}
	p.page("/instances/l-1", "Run now", `name="wait" value="/do/0/both/fork/branches/1/b"`)
	p.press(http.StatusConflict, "/instances/l-1/operate", url.Values{"operation": {"run-now"}}, "instance.several-to-run")
	p.press(http.StatusOK, "/instances/l-1/operate", url.Values{"operation": {"run-now"}, "wait": {"/do/0/both/fork/branches/1/b"}}, "run-now was done: the instance is waiting")
	p.press(http.StatusOK, "/instances/l-1/operate", url.Values{"operation": {"run-now"}, "wait": {"/do/0/both/fork/branches/0/a"}}, "run-now was done: the instance is completed")
}

// An operator mends an instance where its error is shown, and a message where it
// is listed.
func TestAnOperatorWorksAtTheConsole(t *testing.T) {
	t.Parallel()
	_, c, base := running(t)
	p, ctx := atConsole(t, base), t.Context()
	const failing = `document: {dsl: '1.0.3', namespace: test, name: fails, version: 1.0.0}
do:
  - first: {set: {a: 1}}
  - bang: {raise: {error: {type: 'https://x.example/odd', status: 500, title: Odd, detail: 'it <broke>'}}}
  - paid: {listen: {to: {one: {with: {type: paid}}}}}
`
	if _, _, err := c.Publish(ctx, "f.yaml", []byte(failing)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Start(ctx, client.StartRequest{Definition: "test/fails", InstanceID: "i-1"}, 0); err != nil {
		t.Fatal(err)
	}
	p.page("/", "i-1", "faulted")
	if page := p.page("/instances/i-1", "it &lt;broke&gt;", `<rect class="node raise fault"`, "Retry", `<rect class="node set done"`); strings.Contains(page, "It compensates") {
		t.Error("the page says of an instance that only failed that it compensates")
	}
	p.press(http.StatusOK, "/instances/i-1/operate", url.Values{"operation": {"retry"}}, "retry was done: the instance is faulted")
	p.press(http.StatusUnprocessableEntity, "/instances/i-1/operate", url.Values{"operation": {"skip"}, "output": {"{"}}, "the output is no JSON")
	p.press(http.StatusOK, "/instances/i-1/operate", url.Values{"operation": {"skip"}, "output": {`{"b": 2}`}}, "the instance is waiting", "no event paid has come")
	p.press(http.StatusOK, "/instances/i-1/operate", url.Values{"operation": {"suspend"}}, "suspended", "Resume")
	p.press(http.StatusOK, "/instances/i-1/operate", url.Values{"operation": {"resume"}}, "waiting")
	p.press(http.StatusOK, "/instances/i-1/signal", url.Values{"type": {"paid"}, "data": {"9007199254740993"}, "request": {"r-1"}}, "The signal was applied.", "9007199254740993")

	if _, err := c.Event(ctx, []byte(`{"specversion":"1.0","id":"1","source":"s","type":"nobody"}`)); err != nil {
		t.Fatal(err)
	}
	p.page("/dead-letters", "No dead letter")
	p.page("/queues", "signal", "schedule", "This node has called nothing lately", "It is drawn from now on", "Last sign of life", "<td>"+version()+"</td>")
	p.page("/schedules", "No schedule")
	p.press(http.StatusNotFound, "/dead-letters/none/replay", url.Values{"after": {"0"}}, "dead-letter.unknown")
	p.press(http.StatusNotFound, "/queues/reset", url.Values{"target": {"nobody"}}, "target.unknown")
	res, err := p.http.Get(base + "/console/nowhere")
	p.read("/nowhere", res, err, http.StatusNotFound, []string{"there is no such page"})
	res, err = p.http.Get(base + "/console/instances/none")
	p.read("/instances/none", res, err, http.StatusNotFound, []string{"instance.unknown"})
}

// A lifecycle is drawn by its states, and takes events from a form.
func TestALifecycleAtTheConsole(t *testing.T) {
	t.Parallel()
	_, c, base := running(t)
	p := atConsole(t, base)
	const loan = `lifecycle: '1.0'
environment: shop
definition: loan
version: '1.0.0'
states: {Draft: {category: initial}, Review: {}, Done: {category: final}}
events: {submit: {}, approve: {}}
transitions: [{from: Draft, event: submit, to: Review}, {from: Review, event: approve, to: Done}]
`
	if _, _, err := c.Publish(t.Context(), "l.yaml", []byte(loan)); err != nil {
		t.Fatal(err)
	}
	p.page("/definitions/shop/loan/1.0.0", "Draft (initial)", "submit → Review", "Trigger an event")
	if strings.Contains(p.page("/definitions"), "Policies") {
		t.Error("there is no policy")
	}
	const slow = "policy: '1.0'\nenvironment: shop\ndefinition: loan\nversion: '2.0.0'\nstates: {Review: {timeout: PT2H, timeoutEvent: approve}}\n"
	p.press(http.StatusOK, "/definitions", url.Values{"source": {slow}}, "It is published.", "A policy: the instances of its lifecycle go by the newest version")
	p.page("/definitions", "Policies of lifecycles", `<a href="/console/definitions/policy:shop/loan/2.0.0">shop/loan</a>`)
	p.page("/definitions/policy:shop/loan/2.0.0", "PT2H")
	p.page("/lifecycles/shop/loan?reference=L-1", "nothing with the reference L-1 yet")
	p.press(http.StatusOK, "/lifecycles/shop/loan/trigger", url.Values{"reference": {"L-1"}, "event": {"submit"}, "request": {"1"}}, "the state is Review", `<rect class="node state here"`)
	p.press(http.StatusConflict, "/lifecycles/shop/loan/trigger", url.Values{"reference": {"L-1"}, "event": {"submit"}, "request": {"2"}}, "lifecycle.refused", `value="L-1"`, "approve")
}

// Nobody acts for a person from another site's page, or by another site's name,
// and a console that only shows does nothing.
func TestTheConsoleIsGuarded(t *testing.T) {
	t.Parallel()
	n, c, base := running(t)
	if _, _, err := c.Publish(t.Context(), "a.yaml", []byte(asking)); err != nil {
		t.Fatal(err)
	}
	ask := func(h http.Handler, method, path string, headers ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, base+path, strings.NewReader("input=1"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for i := 0; i < len(headers); i += 2 {
			if headers[i] == "Host" {
				r.Host = headers[i+1]
			}
			r.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	const begin = "/console/definitions/test/ask/1.0.0/start"
	if w := ask(n.handler, "POST", begin, "Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"); w.Code != http.StatusForbidden {
		t.Errorf("another site's page began an instance: %d", w.Code)
	}
	if w := ask(n.handler, "GET", "/console/instances", "Host", "evil.example"); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "request.host") {
		t.Errorf("another name of this machine reads: %d", w.Code)
	}
	shows, err := console.Handler(console.Options{API: n.handler, Prefix: "/look/", ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if w := ask(shows, "POST", "/look/definitions/test/ask/1.0.0/start"); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "console.read-only") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := ask(shows, "GET", "/look/definitions/test/ask/1.0.0"); w.Code != http.StatusOK || strings.Contains(w.Body.String(), "<button>Start") || !strings.Contains(w.Body.String(), `href="/look/instances`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if p, err := c.Instances(t.Context(), client.InstanceQuery{}); err != nil || len(p.Items) != 0 {
		t.Errorf("%+v %v", p, err)
	}
	if w := ask(n.handler, "GET", "/", "Accept", "text/html"); w.Header().Get("Location") != "/console/" {
		t.Errorf("a browser is not led to the pages: %d", w.Code)
	}
	long := ask(n.handler, "POST", begin)
	if long.Code != http.StatusSeeOther {
		t.Errorf("%d %s", long.Code, long.Body)
	}
}

// What a first page weighs is bounded: everything that it loads, as it travels
// without compression.
func TestTheFirstPageIsLight(t *testing.T) {
	t.Parallel()
	_, _, base := running(t)
	p, total := atConsole(t, base), 0
	total += len(p.page("/"))
	for _, file := range []string{"console.css", "htmx.min.js", "icon.svg"} {
		res, err := p.http.Get(base + "/console/static/" + file)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatal(file, err, res)
		}
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		total += len(b)
	}
	if total > 100<<10 {
		t.Errorf("%d bytes", total)
	}
}

// Where the API asks who somebody is, so does the console: by a token, which stands
// in a cookie that no script reads. Each sees what their roles let them.
func TestTheConsoleAsksForAToken(t *testing.T) {
	t.Parallel()
	c := config.Default()
	c.Store.URL = "sqlite://" + filepath.Join(t.TempDir(), "a.db")
	c.Access.Tokens = true
	n, err := wire(t.Context(), c, "n1", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.close)
	if _, _, err := n.catalogue.Publish(t.Context(), "a.yaml", []byte(asking)); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(n.handler)
	t.Cleanup(server.Close)
	tokens := access.NewTokens(n.store.Parts().Tokens, time.Now, n.log)
	token := func(w access.Wanted) string {
		_, secret, err := tokens.Create(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		return secret
	}
	p := atConsole(t, server.URL)
	for _, path := range []string{"/", "/instances", "/definitions/test/ask/1.0.0"} {
		res, err := p.http.Get(server.URL + "/console" + path)
		if body := p.read(path, res, err, http.StatusUnauthorized, []string{"Sign in", "access.token-missing"}); strings.Contains(body, "test/ask</a>") {
			t.Errorf("%s tells a stranger what is there", path)
		}
	}
	p.press(http.StatusUnauthorized, "/sign-in", url.Values{"token": {"aq_none"}}, "access.token-refused", "Sign in")
	p.press(http.StatusBadRequest, "/sign-in", url.Values{"token": {strings.Repeat("a", 4000)}}, "no token that a browser keeps")
	p.press(http.StatusBadRequest, "/sign-in", url.Values{"token": {"a;b"}}, "no token that a browser keeps")
	p.press(http.StatusOK, "/sign-in", url.Values{"token": {token(access.Wanted{Name: "kim", Roles: []access.Role{access.TaskUser}, Groups: []string{"clerks"}})}}, "Overview", "Sign out")
	p.press(http.StatusForbidden, "/definitions/test/ask/1.0.0/start", url.Values{"id": {"i-1"}}, "access.denied")
	p.press(http.StatusUnauthorized, "/sign-in", url.Values{"token": {""}}, "access.token-missing")
	p.press(http.StatusOK, "/sign-in", url.Values{"token": {token(access.Wanted{Name: "olga", Roles: []access.Role{access.Operator}})}}, "Overview", "signal")
	p.press(http.StatusOK, "/definitions/test/ask/1.0.0/start", url.Values{"id": {"i-1"}}, "It has begun.")
	if i, err := n.store.Parts().Instances.Instance(t.Context(), "i-1"); err != nil || i.ID != "i-1" {
		t.Errorf("%+v %v", i, err)
	}
}
