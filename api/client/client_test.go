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
