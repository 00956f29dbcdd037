package main

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/access"
)

// pagesOf are the pages of the console, and the operation of the API that who opens one
// needs; "" = none.
var pagesOf = map[string]string{
	"/": "", "/tasks": "list-tasks", "/tasks?all=1": "list-tasks", "/tasks/i-1.1.1": "get-task", "/instances": "list-instances", "/instances/i-1": "get-instance",
	"/instances/i-1/rewind?to=1": "rewind-instance", "/dead-letters": "list-dead-letters", "/dead-letters/l-1": "get-dead-letter", "/bulk": "list-bulk", "/bulk/none": "get-bulk",
	"/definitions": "list-definitions", "/definitions/test/ask/1.0.0": "get-source", "/definitions/test/ask/1.0.0/compare/2.0.0": "compare-versions",
	"/lifecycles": "list-definitions", "/lifecycles/test/none": "get-lifecycle", "/schedules": "list-schedules", "/queues": "list-queues", "/audit": "list-audit",
}

// action is what a form asks for.
type action struct {
	operation, path string
	form            url.Values
}

// actionsOf are its actions, in an order in which what they are done to is there.
var actionsOf = []action{
	{"claim-next-tasks", "/tasks/claim-next", nil}, {"claim-task", "/tasks/none/claim", nil}, {"release-task", "/tasks/none/release", nil},
	{"delegate-task", "/tasks/none/delegate", url.Values{"to": {"bob"}}}, {"reassign-task", "/tasks/none/reassign", url.Values{"to": {"bob"}}},
	{"comment-task", "/tasks/none/comment", url.Values{"comment": {"why?"}}}, {"complete-task", "/tasks/i-1.1.1/complete", url.Values{"outcome": {"yes"}}},
	{"plan-bulk", "/instances/plan", url.Values{"operation": {"suspend"}}}, {"plan-bulk", "/dead-letters/plan", url.Values{"operation": {"replay"}}},
	{"run-bulk", "/bulk/none/run", nil}, {"stop-bulk", "/bulk/none/stop", nil},
	{"operate-instance", "/instances/none/operate", url.Values{"operation": {"suspend"}}}, {"signal-instance", "/instances/none/signal", url.Values{"type": {"x"}, "request": {"r"}}},
	{"rewind-instance", "/instances/none/rewind?to=1", url.Values{"version": {"1"}}},
	{"edit-dead-letter", "/dead-letters/none/edit", url.Values{"after": {"0"}, "body": {"{}"}}}, {"replay-dead-letter", "/dead-letters/none/replay", url.Values{"after": {"0"}}},
	{"discard-dead-letter", "/dead-letters/none/discard", url.Values{"after": {"0"}, "sure": {"yes"}}},
	{"publish-definition", "/definitions", url.Values{"source": {asking}}}, {"start-instance", "/definitions/test/ask/1.0.0/start", url.Values{"id": {"i-1"}}},
	{"migrate-instances", "/definitions/test/ask/1.0.0/compare/none", nil}, {"trigger-event", "/lifecycles/test/none/trigger", url.Values{"event": {"x"}, "reference": {"r"}, "request": {"r"}}},
	{"reset-target", "/queues/reset", url.Values{"target": {"none"}}},
}

// Each page and each action, as each role: what the role may is there, what it may not is
// refused with a page that says so and shows nothing of it.
func TestEachPageAsEachRole(t *testing.T) {
	t.Parallel()
	n, bearer := askingNode(t)
	ctx := t.Context()
	if _, _, err := n.catalogue.Publish(ctx, "a.yaml", []byte(asking)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := n.catalogue.Publish(ctx, "a.yaml", []byte(strings.ReplaceAll(asking, "version: 1.0.0", "version: 2.0.0"))); err != nil {
		t.Fatal(err)
	}
	olga := bearer("olga", access.Operator)
	olga.press(http.StatusOK, "/definitions/test/ask/1.0.0/start", url.Values{"id": {"i-1"}}, "It has begun.")
	missing := func(path string) bool { return strings.Contains(path, "none") || strings.Contains(path, "l-1") }
	for _, role := range access.Roles {
		p := bearer("somebody-"+role, role)
		for path, operation := range pagesOf {
			want := http.StatusOK
			switch {
			case operation != "" && !access.May(operation, []access.Role{role}):
				want = http.StatusForbidden
			case strings.Contains(path, "rewind"):
				want = http.StatusConflict // there is no earlier turn
			case missing(path), role == access.TaskUser && path == "/tasks/i-1.1.1": // of somebody else
				want = http.StatusNotFound
			}
			page := p.refused(want, path)
			seesOffered(t, role, path, page)
			if want == http.StatusForbidden && (!strings.Contains(page, "access.denied") || strings.Contains(page, "<table")) {
				t.Errorf("%s at %s: neither is it said, or more than that:\n%s", role, path, page)
			}
		}
		for _, a := range actionsOf {
			may := access.May(a.operation, []access.Role{role})
			res, err := p.http.PostForm(p.base+"/console"+a.path, a.form)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if denied := res.StatusCode == http.StatusForbidden; denied == may || res.StatusCode == http.StatusUnauthorized || res.StatusCode >= 500 {
				t.Errorf("%s, %s (%s): %d, and they may: %v", role, a.path, a.operation, res.StatusCode, may)
			}
		}
	}
	nobody := atConsole(t, olga.base)
	for path := range pagesOf {
		if page := nobody.refused(http.StatusUnauthorized, path, "Sign in"); strings.Contains(page, "<table") {
			t.Errorf("%s shows something to nobody", path)
		}
	}
	for _, a := range actionsOf {
		if page := nobody.press(http.StatusUnauthorized, a.path, a.form, "Sign in"); strings.Contains(page, "<table") {
			t.Errorf("%s does something for nobody", a.path)
		}
	}
}

// Who has given a task away, and does not see it any more, is led to the others.
func TestWhoDelegatesIsLedToTheOtherTasks(t *testing.T) {
	t.Parallel()
	n, bearer := askingNode(t)
	if _, _, err := n.catalogue.Publish(t.Context(), "a.yaml", []byte(strings.Replace(asking, "candidateUsers: [ann]", "assignee: ann, candidateGroups: [sales]", 1))); err != nil {
		t.Fatal(err)
	}
	bearer("olga", access.Operator).press(http.StatusOK, "/definitions/test/ask/1.0.0/start", url.Values{"id": {"i-1"}}, "It has begun.")
	bearer("ann", access.TaskUser).press(http.StatusOK, "/tasks/i-1.1.1/delegate", url.Values{"to": {"bob"}}, "bob has it now.")
	bearer("bob", access.TaskUser).press(http.StatusOK, "/tasks/i-1.1.1/release", nil, "It was given back.")
}

// Who has roles in several namespaces is offered, at what is in one, what they may do in that one.
func TestAPageOffersWhatHoldsInItsNamespace(t *testing.T) {
	t.Parallel()
	n, tasks, _ := twoNamespaces(t, filepath.Join(t.TempDir(), "a.db"))
	server := httptest.NewServer(n.handler)
	t.Cleanup(server.Close)
	tokens := access.NewTokens(n.store.Parts().Tokens, time.Now, n.log)
	offered := map[string]int{}
	for _, roles := range [][]access.Role{
		{"viewer@shop", "operator@bank"}, {"viewer", "operator@bank"}, {"viewer@bank", "task-user@shop"}, {"viewer@bank", "task-user@shop", "application@shop"}, {"viewer@bank", "viewer@shop", "application@bank"},
	} {
		_, secret, err := tokens.Create(t.Context(), access.Wanted{Name: "ann", Roles: roles})
		if err != nil {
			t.Fatal(err)
		}
		p := atConsole(t, server.URL)
		p.press(http.StatusOK, "/sign-in", url.Values{"token": {secret}}, "Overview")
		for _, namespace := range []string{"shop", "bank"} {
			held := []access.Role{}
			for _, role := range roles {
				if role, in, limited := strings.Cut(role, "@"); in == namespace || !limited {
					held = append(held, role)
				}
			}
			work := "/definitions/" + namespace + "/work"
			for path, operation := range map[string]string{
				"/instances/" + namespace + "-i": "get-instance", "/tasks/" + tasks[namespace]: "get-task", "/dead-letters/" + namespace + "-l": "get-dead-letter",
				work + "/1.0.0": "get-source", "/lifecycles/" + namespace + "/case": "list-versions",
				work + "/1.0.0/compare/1.1.0": "compare-versions",
			} {
				if !access.May(operation, held) {
					continue
				}
				page := p.refused(http.StatusOK, path)
				for _, form := range posted.FindAllStringSubmatch(page, -1) {
					last := form[1][strings.LastIndex("/"+form[1], "/"):]
					if last == "1.1.0" {
						last = "none"
					}
					offered[last]++
					for _, a := range actionsOf {
						if strings.HasSuffix(a.path, "/"+last) && strings.HasPrefix("/"+form[1], a.path[:strings.Index(a.path[1:], "/")+1]) && !access.May(a.operation, held) {
							t.Errorf("%s at %s: the page offers %s, which they may not do there", roles, path, form[1])
						}
					}
				}
				if strings.Contains(page, `name="id"`) {
					t.Errorf("%s at %s: the page asks for the id of an instance, which only who starts them everywhere may choose", roles, path)
				}
				if strings.Contains(page, `href="/console/instances/`+namespace+`-i"`) && !access.May("get-instance", held) {
					t.Errorf("%s at %s: the page leads to the instance, which they may not read", roles, path)
				}
			}
		}
	}
	for _, form := range []string{"operate", "signal", "claim", "comment", "reassign", "replay", "discard", "start", "trigger", "none"} {
		if offered[form] == 0 {
			t.Errorf("%s is offered nowhere, and to nobody", form)
		}
	}
}

// seesOffered holds what a page offers, in the menu and by forms, to what a role may do.
func seesOffered(t *testing.T, role access.Role, path, page string) {
	t.Helper()
	for _, section := range []string{"tasks", "instances", "dead-letters", "bulk", "definitions", "lifecycles", "schedules", "queues", "audit"} {
		may := access.May(pagesOf["/"+section], []access.Role{role})
		if menu, _, _ := strings.Cut(page, "</nav>"); strings.Contains(menu, `href="/console/`+section+`"`) != may {
			t.Errorf("%s at %s: the menu has %s or has it not, and they may: %v", role, path, section, may)
		}
	}
	for _, link := range linked.FindAllStringSubmatch(page, -1) {
		if reads := map[string]string{"tasks": "get-task", "instances": "get-instance", "dead-letters": "get-dead-letter", "definitions": "get-definition"}[link[1]]; !access.May(reads, []access.Role{role}) {
			t.Errorf("%s at %s: the page leads to one of the %s, which they may not read", role, path, link[1])
		}
	}
	for _, form := range posted.FindAllStringSubmatch(page, -1) {
		last := form[1][strings.LastIndex("/"+form[1], "/"):]
		if last == "2.0.0" { // compared with
			last = "none"
		}
		may := slices.ContainsFunc(actionsOf, func(a action) bool {
			return strings.HasSuffix(strings.TrimSuffix(a.path, "?to=1"), "/"+last) && access.May(a.operation, []access.Role{role})
		})
		if !may && last != "who" && last != "sign-in" {
			t.Errorf("%s at %s: the page offers %s, which they may not do", role, path, form[1])
		}
	}
}

// linked are what a page leads to, one by one.
var linked = regexp.MustCompile(`<a href="/console/(tasks|instances|dead-letters|definitions)/[^"]`)

// posted are the forms of a page that change something.
var posted = regexp.MustCompile(`<form method="post" action="/console/([^"?]*)`)
