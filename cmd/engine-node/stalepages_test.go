package main

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/access"
	"github.com/aqueduct-engine/aqueduct/api/client"
)

// TestAStalePageDoesNothing: what somebody has seen is what is skipped, retried, ended now or
// cancelled, once. What was refused keeps what was written, and leads back to its page.
func TestAStalePageDoesNothing(t *testing.T) {
	t.Parallel()
	_, c, base := running(t)
	const twice = `document: {dsl: '1.0.3', namespace: test, name: twice, version: 1.0.0}
do:
  - first: {raise: {error: {type: urn:no, status: 400, title: 'No'}}}
  - second: {raise: {error: {type: urn:no, status: 400, title: 'No'}}}
  - third: {wait: {days: 1}}
  - fourth: {wait: {days: 1}}
`
	if _, _, err := c.Publish(t.Context(), "t.yaml", []byte(twice)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Start(t.Context(), client.StartRequest{Definition: "test/twice", InstanceID: "i"}, 0); err != nil {
		t.Fatal(err)
	}
	p := atConsole(t, base)
	seen := func(status string) string {
		t.Helper()
		page := p.page("/instances/i", status)
		m := regexp.MustCompile(`action="/console/instances/i/operate"><input type="hidden" name="version" value="([0-9]+)">`).FindStringSubmatch(page)
		if m == nil {
			t.Fatalf("the form does not say what it is of:\n%s", page)
		}
		return m[1]
	}
	version := seen("/do/0/first")
	if strings.Contains(p.page("/instances/i"), `value="suspend"`) {
		t.Error("what is faulted is offered to be suspended")
	}
	p.press(http.StatusUnprocessableEntity, "/instances/i/operate", url.Values{"operation": {"skip"}, "version": {version}, "output": {"{oops"}}, "{oops", `name="back" value="/console/instances/i"`)
	p.press(http.StatusOK, "/instances/i/operate", url.Values{"operation": {"skip"}, "version": {version}}, "skip was done", "/do/1/second")
	for _, operation := range []string{"skip", "retry", "cancel", "compensate"} {
		p.press(http.StatusConflict, "/instances/i/operate", url.Values{"operation": {operation}, "version": {version}}, "instance.changed", "/do/1/second")
	}
	p.press(http.StatusOK, "/instances/i/operate", url.Values{"operation": {"skip"}, "version": {seen("/do/1/second")}}, "waiting", "/do/2/third")
	page := p.page("/instances/i")
	now := regexp.MustCompile(`name="wait" value="([^"]+)"><input type="hidden" name="version" value="([0-9]+)">`).FindStringSubmatch(page)
	if now == nil {
		t.Fatalf("nothing can run now:\n%s", page)
	}
	form := url.Values{"operation": {"run-now"}, "wait": {now[1]}, "version": {now[2]}}
	p.press(http.StatusOK, "/instances/i/operate", form, "/do/3/fourth")
	form.Del("wait")
	p.press(http.StatusConflict, "/instances/i/operate", form, "instance.changed", "/do/3/fourth")
	p.press(http.StatusUnprocessableEntity, "/instances/i/signal", url.Values{"type": {"paid"}, "data": {"{oops"}, "request": {"r"}}, `value="paid"`, "{oops")
}

// TestWhoBearsATokenIsWhoItSays: at the top right, and of tasks; the overview says nothing of
// what they may not see.
func TestWhoBearsATokenIsWhoItSays(t *testing.T) {
	t.Parallel()
	n, bearer := askingNode(t)
	if _, _, err := n.catalogue.Publish(t.Context(), "a.yaml", []byte(asking)); err != nil {
		t.Fatal(err)
	}
	kim := bearer("kim", access.TaskUser)
	page := kim.page("/", "You have signed in as <strong>kim</strong>", "<h2>Tasks for kim</h2>")
	for _, other := range []string{"Faulted", "Dead letters", "Begun last", "No instance yet", "Nothing is published"} {
		if strings.Contains(page, other) {
			t.Errorf("who works on tasks is told: %s", other)
		}
	}
	author := bearer("aldo", access.Author)
	if page := author.page("/", "Begun last"); strings.Contains(page, "<h2>Tasks") || strings.Contains(page, "<h2>Dead letters") {
		t.Errorf("an author is told of what they may not see:\n%s", page)
	}
	nobody := atConsole(t, kim.base)
	nobody.refused(http.StatusUnauthorized, "/definitions?x=1", `name="back" value="/console/definitions?x=1"`)
}
