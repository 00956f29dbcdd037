package client

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aqueduct-engine/aqueduct/problem"
)

func TestWhatIsNoNodesAnswer(t *testing.T) {
	t.Parallel()
	status, body := http.StatusOK, ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}))
	t.Cleanup(server.Close)
	c, err := New(server.URL+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []struct {
		status int
		body   string
		code   string
		kind   problem.Kind
	}{
		{200, "<html>", "api.answer", problem.Internal},
		{404, "<html>", "api.answer", problem.NotFound},
		{502, "", "api.answer", problem.Unavailable},
		{500, `{"code":"x.y","detail":"d"}`, "x.y", problem.Internal},
		{409, `{"code":"task.completed","detail":"d"}`, "task.completed", problem.Conflict},
		{403, `{"code":"task.denied"}`, "task.denied", problem.Denied},
		{413, `{"code":"request.too-large"}`, "request.too-large", problem.TooLarge},
		{422, `{"code":"request.invalid","hint":"h","where":[{"line":3}]}`, "request.invalid", problem.Invalid},
	} {
		status, body = k.status, k.body
		if _, err := c.Instance(t.Context(), "x"); problem.CodeOf(err) != k.code || problem.KindOf(err) != k.kind {
			t.Errorf("%d %s: got %v", k.status, k.body, err)
		}
	}
	server.Close()
	if _, err := c.Instance(t.Context(), "x"); problem.CodeOf(err) != "api.unreachable" || problem.KindOf(err) != problem.Unavailable {
		t.Errorf("got %v", err)
	}
	for _, bad := range []string{"", "localhost:8080", "ftp://x", "http://"} {
		if _, err := New(bad, nil); problem.CodeOf(err) != "api.address" {
			t.Errorf("%q: got %v", bad, err)
		}
	}
}

// What has a letter of addresses in its name is asked for by its name.
func TestNamesInPathsAreEscaped(t *testing.T) {
	t.Parallel()
	var asked string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.RequestURI
		fmt.Fprint(w, `{}`)
	}))
	t.Cleanup(server.Close)
	c, err := New(server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, name := t.Context(), "a?b/c#d%/e"
	for want, ask := range map[string]func() error{
		"/v1/definitions/a%3Fb/c%23d%25%2Fe":              func() error { _, err := c.Versions(ctx, name); return err },
		"/v1/definitions/a%3Fb/c%23d%25%2Fe/1%2F2/source": func() error { _, err := c.Source(ctx, name, "1/2"); return err },
		"/v1/definitions/a%3Fb/c%23d%25%2Fe/1/diff/2":     func() error { _, err := c.CompareVersions(ctx, name, "1", "2"); return err },
		"/v1/definitions/a%3Fb/c%23d%25%2Fe/migrations":   func() error { _, err := c.Migrate(ctx, name, MigrationRequest{}); return err },
		"/v1/policies/a%3Fb/c%23d%25%2Fe":                 func() error { _, err := c.Policies(ctx, name, List{}); return err },
		"/v1/policies/a%3Fb/c%23d%25%2Fe/1":               func() error { _, err := c.Policy(ctx, name, "1"); return err },
		"/v1/policies/a%3Fb/c%23d%25%2Fe/1/diff/2":        func() error { _, err := c.ComparePolicies(ctx, name, "1", "2"); return err },
		"/v1/lifecycles/a%3Fb/c%23d%25%2Fe/r%3F":          func() error { _, err := c.Lifecycle(ctx, name, "r?"); return err },
		"/v1/lifecycles/a%3Fb/c%23d%25%2Fe/r%3F/events":   func() error { _, err := c.Trigger(ctx, name, "r?", TriggerRequest{}); return err },
		"/v1/definitions/alone":                           func() error { _, err := c.Versions(ctx, "alone"); return err },
	} {
		if err := ask(); asked != want {
			t.Errorf("asks %s, not %s: %v", asked, want, err)
		}
	}
}
