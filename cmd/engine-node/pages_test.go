package main

import (
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/access"
	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/config"
	"github.com/aqueduct-engine/aqueduct/console"
	"github.com/aqueduct-engine/aqueduct/internal/idp"
	"github.com/aqueduct-engine/aqueduct/runtime/service"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// askingNode is a node that asks who somebody is, with a page for one who bears a token of
// each of the roles.
func askingNode(t *testing.T) (n *node, bearer func(name string, roles ...access.Role) *person) {
	t.Helper()
	c := config.Default()
	c.Store.URL = "sqlite://" + filepath.Join(t.TempDir(), "a.db")
	c.Access.Tokens = true
	n, err := wire(t.Context(), c, "n1", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.close)
	server := httptest.NewServer(n.handler)
	t.Cleanup(server.Close)
	tokens := access.NewTokens(n.store.Parts().Tokens, time.Now, n.log)
	return n, func(name string, roles ...access.Role) *person {
		_, secret, err := tokens.Create(t.Context(), access.Wanted{Name: name, Roles: roles})
		if err != nil {
			t.Fatal(err)
		}
		p := atConsole(t, server.URL)
		p.press(http.StatusOK, "/sign-in", url.Values{"token": {secret}}, "Overview")
		return p
	}
}

// refused gets a page that is refused.
func (p *person) refused(status int, path string, says ...string) string {
	p.t.Helper()
	res, err := p.http.Get(p.base + "/console" + path)
	return p.read(path, res, err, status, says)
}

// Who has done what is read, narrowed and followed to what it was done to, by those
// who may.
func TestTheAuditAtTheConsole(t *testing.T) {
	t.Parallel()
	n, bearer := askingNode(t)
	if _, _, err := n.catalogue.Publish(t.Context(), "a.yaml", []byte(asking)); err != nil {
		t.Fatal(err)
	}
	olga, ada := bearer("olga", access.Operator), bearer("ada", access.Admin)
	olga.press(http.StatusOK, "/definitions/test/ask/1.0.0/start", url.Values{"id": {"i-1"}}, "It has begun.")
	olga.press(http.StatusOK, "/instances/i-1/operate", url.Values{"operation": {"suspend"}}, "suspended")
	olga.press(http.StatusForbidden, "/definitions", url.Values{"source": {asking}}, "access.denied")
	if page := olga.refused(http.StatusForbidden, "/audit", "access.denied"); strings.Contains(page, "<table") || strings.Contains(page, "Find") {
		t.Error("who may not read the audit sees some of it")
	}
	ada.page("/audit", `<a href="/console/instances/i-1">i-1</a>`, "suspend", "version 1 → 2", "access.denied", "create-token")
	if page := ada.page("/audit?user=olga&action=suspend", "olga", "by <code>", "any user"); strings.Contains(page, "create-token</a>") {
		t.Error("another action is shown")
	}
	ada.page("/audit?result=access.denied", "publish", "refused with")
	ada.page("/audit?instance=i-1&from=2020-01-01&to="+url.QueryEscape(time.Now().UTC().Add(time.Hour).Format("2006-01-02 15:04")), "suspend")
	ada.page("/audit?to=2020-01-01", "Nobody has done anything of the kind")
	ada.refused(http.StatusUnprocessableEntity, "/audit?from=yesterday", "console.time", `aria-describedby="wrong-from"`, `value="yesterday"`)
	ada.refused(http.StatusUnprocessableEntity, "/audit?action="+strings.Repeat("a", 40), `aria-describedby="wrong-action"`)
}

// Instances are found by what is in them, in an order of it, page after page; what is
// wrong with a filter stands where it was written.
func TestInstancesAreFoundAtTheConsole(t *testing.T) {
	t.Parallel()
	_, c, base := running(t)
	const searched = `document: {dsl: '1.0.3', namespace: test, name: searched, version: 1.0.0, metadata: {searchAttributes: {amount: {path: $context.amount, type: decimal}}}}
do:
  - take: {set: '${ . }', export: {as: '${ $context + {amount: .amount} }'}}
  - ask: {call: humanTask, with: {title: 'Ask', candidateGroups: [clerks]}}
`
	if _, _, err := c.Publish(t.Context(), "s.yaml", []byte(searched)); err != nil {
		t.Fatal(err)
	}
	for i := range 60 {
		r := client.StartRequest{Definition: "test/searched", InstanceID: fmt.Sprintf("s-%02d", i), BusinessKey: fmt.Sprintf("K-%d", i), Input: fmt.Appendf(nil, `{"amount": %d}`, i*10)}
		if _, _, err := c.Start(t.Context(), r, 0); err != nil {
			t.Fatal(err)
		}
	}
	p := atConsole(t, base)
	instances := func(page string) (ids []string) {
		for _, m := range regexp.MustCompile(`href="/console/instances/(s-\d\d)"`).FindAllStringSubmatch(page, -1) {
			ids = append(ids, m[1])
		}
		return ids
	}
	first := p.page("/instances?definition=test/searched&status=waiting&order=-amount&where="+url.QueryEscape("amount >= 50"), "in the order", `<input type="hidden" name="status" value="waiting">`)
	ids := instances(first)
	next := regexp.MustCompile(`href="/console(/instances\?[^"]*after=[^"]*)">Next page`).FindStringSubmatch(first)
	if len(ids) != 50 || ids[0] != "s-59" || ids[49] != "s-10" || next == nil {
		t.Fatalf("%d instances from %v, and %v", len(ids), ids[:1], next)
	}
	second := p.page(strings.ReplaceAll(next[1], "&amp;", "&"), "amount &gt;= 50", "-amount")
	if ids := instances(second); len(ids) != 5 || ids[0] != "s-09" || ids[4] != "s-05" || strings.Contains(second, "Next page") {
		t.Errorf("the second page has %v", ids)
	}
	if ids := instances(p.page("/instances?key=K-7", "key K-7")); len(ids) != 1 || ids[0] != "s-07" {
		t.Errorf("by its key: %v", ids)
	}
	for path, field := range map[string]string{
		"where=" + url.QueryEscape("amount >> 1"):                           "where",
		"where=" + url.QueryEscape("amont > 1"):                             "where",
		"definition=test/searched&where=" + url.QueryEscape(`amount = "x"`): "where",
		"definition=test/searched&order=amont":                              "order",
		"order=" + url.QueryEscape("a b"):                                   "order",
		"definition=test/nothing&order=amount":                              "definition",
		"key=" + strings.Repeat("k", 300):                                   "key",
	} {
		status := http.StatusUnprocessableEntity
		if field == "definition" {
			status = http.StatusNotFound
		}
		page := p.refused(status, "/instances?"+path, `aria-describedby="wrong-`+field+`"`, `id="wrong-`+field+`"`)
		if strings.Contains(page, "No such instance") || strings.Count(page, `aria-invalid`) != 1 {
			t.Errorf("%s: a list that is not known is empty, or another field is wrong", path)
		}
	}
}

// A lifecycle shows its states with who is in them, and those in which nothing
// happens; each number leads to those that it counts.
func TestTheStatesOfALifecycleAtTheConsole(t *testing.T) {
	t.Parallel()
	n, c, base := running(t)
	p := atConsole(t, base)
	p.page("/lifecycles", "No lifecycle is published")
	p.refused(http.StatusNotFound, "/lifecycles/shop/loan", "definition.unknown")
	const loan = `lifecycle: '1.0'
environment: shop
definition: loan
version: '%d.0.0'
states: {Draft: {category: initial}, "In review": {}, Done: {category: final}}
events: {submit: {}, approve: {}}
transitions: [{from: Draft, event: submit, to: "In review"}, {from: "In review", event: approve, to: Done}]
`
	for version := range 2 {
		if _, _, err := c.Publish(t.Context(), "l.yaml", fmt.Appendf(nil, loan, 9+version)); err != nil {
			t.Fatal(err)
		}
	}
	p.page("/lifecycles", `<a href="/console/lifecycles/shop/loan">shop/loan</a>`)
	p.page("/lifecycles/shop/loan", "10.0.0", "No entity is open", "Draft (initial)", "None that waits", "<option>approve</option>")
	for _, reference := range []string{"L-1", "L-2", "L-3"} {
		p.press(http.StatusOK, "/lifecycles/shop/loan/trigger", url.Values{"reference": {reference}, "event": {"submit"}}, "the state is In")
	}
	p.press(http.StatusOK, "/lifecycles/shop/loan/trigger", url.Values{"reference": {"L-3"}, "event": {"approve"}}, "the state is Done")
	page := p.page("/lifecycles/shop/loan", "2 here", "None that waits")
	to := regexp.MustCompile(`href="/console(/instances\?[^"]*)">2</a>`).FindStringSubmatch(page)
	if to == nil || strings.Contains(page, "there are more") {
		t.Fatalf("no entity is counted, or not all are:\n%s", page)
	}
	if page := p.page(strings.ReplaceAll(to[1], "&amp;", "&"), "L-1", "L-2"); strings.Contains(page, "L-3") {
		t.Error("who is in another state is among them")
	}
	later, err := console.Handler(console.Options{API: n.handler, Now: func() time.Time { return time.Now().AddDate(0, 0, 10) }})
	if err != nil {
		t.Fatal(err)
	}
	for path, stale := range map[string]bool{"": true, "?idle=2": true, "?idle=30": false} {
		w := httptest.NewRecorder()
		later.ServeHTTP(w, httptest.NewRequest("GET", base+"/console/lifecycles/shop/loan"+path, nil))
		if strings.Contains(w.Body.String(), "L-1") != stale || strings.Contains(w.Body.String(), "None that waits") == stale {
			t.Errorf("%q: stale, or not:\n%s", path, w.Body)
		}
	}
}

// What a node does is drawn from what its pages have seen, whoever looked, and not for who
// may not read its metrics.
func TestThroughputAtTheConsole(t *testing.T) {
	t.Parallel()
	n, c, _ := running(t)
	if _, _, err := c.Publish(t.Context(), "a.yaml", []byte(asking)); err != nil {
		t.Fatal(err)
	}
	var later atomic.Int64
	pages, err := console.Handler(console.Options{API: n.handler, Now: func() time.Time { return time.Now().Add(time.Duration(later.Load())) }})
	if err != nil {
		t.Fatal(err)
	}
	shown := httptest.NewServer(pages)
	t.Cleanup(shown.Close)
	p := atConsole(t, shown.URL)
	p.page("/queues", "It is drawn from now on")
	for i := range 3 {
		if _, _, err := c.Start(t.Context(), client.StartRequest{Definition: "test/ask", InstanceID: fmt.Sprint("m-", i)}, 0); err != nil {
			t.Fatal(err)
		}
		later.Add(int64(2 * time.Second))
		p.page("/queues")
	}
	page := p.page("/queues", `aria-label="instances begun per second"`, `<path d="M`)
	if line := regexp.MustCompile(`instances begun per second"><path d="(M[0-9.]+ [0-9.]+(L[0-9.]+ [0-9.]+)+)">`).FindStringSubmatch(page); line == nil || strings.Count(line[1], "L") < 2 {
		t.Errorf("no line is drawn: %s", line)
	}
	if row := regexp.MustCompile(`instances begun per second"><path[^>]*></path></svg></td><td>(0\.[0-9])</td>`).FindStringSubmatch(page); row == nil {
		t.Errorf("nobody says how many begin in a second:\n%s", page)
	}
}

// Each of the three people of `make demo-login` logs in by saying who they are, and sees
// what is theirs.
func TestThreePeopleLogIn(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	roles := regexp.MustCompile(`--access-oidc-roles '([^']+)'`).FindSubmatch(makefile)
	if roles == nil {
		t.Fatal("the Makefile gives nobody a role")
	}
	provider, nodes := loggingIn(t, func(c *config.Config) { c.Access.Roles = string(roles[1]) })
	provider.Meet(idp.People, time.Hour)
	base := served(t, nodes[0])
	const loan = `document: {dsl: '1.0.3', namespace: test, name: loan, version: 1.0.0}
do:
  - ask: {call: humanTask, with: {title: 'Decide', candidateGroups: [loan-officers]}}
`
	if _, _, err := nodes[0].catalogue.Publish(t.Context(), "workflow.yaml", []byte(loan)); err != nil {
		t.Fatal(err)
	}
	as := func(name string) *person {
		p := atConsole(t, base)
		res, err := p.http.Get(base + "/console/login?next=/console/")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		page, err := io.ReadAll(res.Body)
		if err != nil || !strings.HasPrefix(res.Request.URL.String(), provider.URL) || !strings.Contains(string(page), "FOR TRYING OUT ONLY") {
			t.Fatalf("%v, at %s:\n%s", err, res.Request.URL, page)
		}
		to := regexp.MustCompile(`href="([^"]+)"><strong>` + name + `<`).FindSubmatch(page)
		if to == nil {
			t.Fatalf("the page does not offer %s:\n%s", name, page)
		}
		in, err := p.http.Get(provider.URL + html.UnescapeString(string(to[1])))
		p.read("/login", in, err, http.StatusOK, []string{"Log out", "You have logged in as <strong>" + name})
		return p
	}
	operator := as("operator")
	operator.press(http.StatusOK, "/definitions/test/loan/1.0.0/start", url.Values{"id": {"loan-1"}}, "It has begun.")
	operator.page("/audit", "log-in")
	operator.press(http.StatusForbidden, "/definitions", url.Values{"source": {asking}}, "access.denied")

	clerk := as("clerk")
	clerk.page("/tasks", "loan-1")
	clerk.refused(http.StatusForbidden, "/instances", "access.denied")
	clerk.refused(http.StatusForbidden, "/audit", "access.denied")
	clerk.press(http.StatusOK, "/tasks/claim-next", nil, "It is yours.")

	author := as("author")
	author.press(http.StatusOK, "/definitions", url.Values{"source": {asking}}, "It is published.")
	author.page("/instances", "loan-1")
	if page := author.refused(http.StatusForbidden, "/tasks", "access.denied"); strings.Contains(page, "Nothing for") {
		t.Error("who may not see tasks is told that there are none")
	}
	author.press(http.StatusForbidden, "/instances/loan-1/operate", url.Values{"operation": {"cancel"}}, "access.denied")

	res, err := http.Get(provider.URL + "/authorize?response_type=code&code_challenge_method=S256&code_challenge=x&nonce=y&person=clerk&redirect_uri=https://evil.example/")
	if err != nil || res.StatusCode != http.StatusBadRequest {
		t.Errorf("a browser is sent elsewhere: %v %v", res, err)
	}
	res.Body.Close()
}

// What people say of a task stands in its history, as they wrote it, up to a number; who
// has the task keeps it, and who does not see it says nothing.
func TestPeopleCommentOnATask(t *testing.T) {
	t.Parallel()
	n, bearer := askingNode(t)
	const ask = `document: {dsl: '1.0.3', namespace: test, name: talk, version: 1.0.0}
do:
  - ask: {call: humanTask, with: {title: 'Decide', candidateUsers: [kim]}}
`
	if _, _, err := n.catalogue.Publish(t.Context(), "a.yaml", []byte(ask)); err != nil {
		t.Fatal(err)
	}
	olga, kim, eve := bearer("olga", access.Operator), bearer("kim", access.TaskUser), bearer("eve", access.TaskUser)
	for _, p := range []*person{olga, kim, eve} { // who says who they are for tasks, which counts as their own name only
		name := map[*person]string{olga: "olga", kim: "kim", eve: "eve"}[p]
		p.press(http.StatusOK, "/who", url.Values{"user": {name}, "back": {"/console/"}}, name)
	}
	olga.press(http.StatusOK, "/definitions/test/talk/1.0.0/start", url.Values{"id": {"t-1"}}, "It has begun.")
	list, err := n.store.Parts().Tasks.Tasks(t.Context(), backend.TaskQuery{InstanceID: "t-1"})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("%+v %v", list, err)
	}
	page := "/tasks/" + list.Items[0].ID
	kim.press(http.StatusOK, page+"/claim", nil, "It is yours.")
	olga.press(http.StatusOK, page+"/comment", url.Values{"comment": {"is the <b>income</b> proved?\nask them"}}, "It stands in the history.", "is the &lt;b&gt;income&lt;/b&gt; proved?\nask them", "commented by olga")
	kim.press(http.StatusOK, page+"/comment", url.Values{"comment": {"  it is:\r\n  paid "}}, "reserved</span> by kim", "<p class=\"comment\">  it is:\n  paid </p>")
	eve.press(http.StatusNotFound, page+"/comment", url.Values{"comment": {"let me"}}, "task.unknown")
	kim.press(http.StatusUnprocessableEntity, page+"/comment", url.Values{"comment": {" \n"}}, "task.comment")
	kim.press(http.StatusUnprocessableEntity, page+"/comment", url.Values{"comment": {strings.Repeat("ü", service.MaxComment+1)}}, "/text", "üüü</textarea>")
	for i := range service.MaxComments - 2 {
		for range 2 { // a second press says nothing new
			if _, err := n.runtime.CommentTask(t.Context(), list.Items[0].ID, "kim", fmt.Sprint("more ", i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	kim.press(http.StatusConflict, page+"/comment", url.Values{"comment": {"too much"}}, "task.comments", "too much</textarea>")
	kim.press(http.StatusOK, page+"/complete", url.Values{"outcome": {"completed"}}, "It is done.", "ask them")
	if page := kim.page(page); strings.Contains(page, ">Comment<") {
		t.Error("a task that has ended takes comments")
	}
}
