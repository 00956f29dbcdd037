package activity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
)

// TestFailureSaysWhetherItMayHaveHappened: what was never sent, or was answered,
// is known; what was sent and not answered is not.
func TestFailureSaysWhetherItMayHaveHappened(t *testing.T) {
	t.Parallel()
	held := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/hangs":
			_, _ = io.Copy(io.Discard, r.Body)
			select {
			case <-held:
			case <-r.Context().Done():
			}
		case "/drops":
			panic(http.ErrAbortHandler)
		case "/breaks":
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte("{"))
		case "/gateway":
			w.WriteHeader(http.StatusGatewayTimeout)
		default:
			w.WriteHeader(http.StatusInternalServerError)
		}
	}))
	defer server.Close()
	defer close(held)
	const closed = "127.0.0.1:1" // where nobody listens; a port that was free may be another's by now
	nobody := "http://" + closed
	p := performer(t, Config{Timeout: time.Minute})
	// What hangs must have been sent before it is given up: a busy machine takes longer.
	impatient := func(name string, f Func, c engine.Command) (failed *engine.Failure) {
		for _, timeout := range []time.Duration{200 * time.Millisecond, 2 * time.Second, 20 * time.Second} {
			by := performer(t, Config{Timeout: timeout})
			if f != nil {
				by.Register(name, f)
			}
			if _, failed = by.Perform(context.Background(), c, "k", 1); failed != nil && failed.Unknown {
				break
			}
		}
		return failed
	}
	for uri, want := range map[string]bool{
		nobody: false, server.URL + "/refuses": false, server.URL + "/gateway": true,
		server.URL + "/hangs": true, server.URL + "/drops": true, server.URL + "/breaks": true,
	} {
		input := fmt.Sprintf(`{"method":"POST","uri":%q,"body":{"n":1}}`, uri)
		c := engine.Command{Target: TargetHTTP, Input: json.RawMessage(input)}
		var f *engine.Failure
		if strings.HasSuffix(uri, "/hangs") {
			f = impatient("", nil, c)
		} else {
			_, f = p.Perform(context.Background(), c, "k", 1)
		}
		if f == nil || f.Unknown != want {
			t.Errorf("%s: %+v, want unknown %v", uri, f, want)
		}
	}
	for name, c := range map[string]struct {
		f    Func
		want bool
	}{
		"says no":     {func(context.Context, json.RawMessage) (any, error) { return nil, errors.New("declined") }, false},
		"raises":      {func(context.Context, json.RawMessage) (any, error) { return nil, &Error{Status: 422} }, false},
		"cannot tell": {func(context.Context, json.RawMessage) (any, error) { return nil, Unknown(errors.New("lost")) }, true},
		"lost the line": {func(context.Context, json.RawMessage) (any, error) {
			return nil, fmt.Errorf("read: %w", io.ErrUnexpectedEOF)
		}, true},
		"cannot dial": {func(context.Context, json.RawMessage) (any, error) {
			_, err := net.Dial("tcp", closed)
			return nil, err
		}, false},
		"panics": {func(context.Context, json.RawMessage) (any, error) { panic("no") }, true},
		"hangs":  {func(ctx context.Context, _ json.RawMessage) (any, error) { <-ctx.Done(); return nil, ctx.Err() }, true},
	} {
		p.Register(name, c.f)
		var f *engine.Failure
		if name == "hangs" {
			f = impatient(name, c.f, engine.Command{Target: name})
		} else {
			_, f = p.Perform(context.Background(), engine.Command{Target: name}, "k", 1)
		}
		if f == nil || f.Unknown != c.want {
			t.Errorf("a function that %s: %+v, want unknown %v", name, f, c.want)
		}
	}
}

// TestAnswerSaysWhetherItMayHaveHappened: only what says that nothing was done counts as
// a refusal, for those who would undo it.
func TestAnswerSaysWhetherItMayHaveHappened(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", MaxResultDepth+1) + strings.Repeat("]", MaxResultDepth+1)
	bodies := map[string]string{"short": "{", "binary": "\"\xff\xfe\"", "deep": deep, "large": `"` + strings.Repeat("x", 5_000) + `"`}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var status int
		if _, err := fmt.Sscanf(r.URL.Path, "/%d", &status); err == nil {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(status)
			return
		}
		_, _ = io.WriteString(w, bodies[r.URL.Path[1:]])
	}))
	defer server.Close()
	const closed = "127.0.0.1:1" // where nobody listens; a port that was free may be another's by now
	nobody := "http://" + closed
	p := performer(t, Config{Timeout: time.Minute, MaxResponseBytes: 4_000})
	for _, c := range []struct {
		method, uri   string
		open, unknown bool
	}{
		{"POST", nobody, false, false}, {"POST", "/400", false, false}, {"POST", "/404", false, false}, {"POST", "/409", false, false},
		{"POST", "/422", false, false}, {"POST", "/429", false, false}, {"POST", "/499", false, false},
		{"POST", "/408", true, false}, {"POST", "/500", true, false}, {"POST", "/501", true, false}, {"POST", "/503", true, false},
		{"POST", "/505", true, false}, {"POST", "/507", true, false}, {"POST", "/520", true, false}, {"POST", "/599", true, false},
		{"POST", "/502", false, true}, {"POST", "/504", false, true},
		{"POST", "/302", true, false}, {"POST", "/307", true, false}, {"GET", "/302", false, false},
		{"POST", "/short", true, false}, {"POST", "/binary", true, false}, {"POST", "/deep", true, false}, {"POST", "/large", true, false},
	} {
		uri := c.uri
		if uri[0] == '/' {
			uri = server.URL + uri
		}
		_, f := p.Perform(context.Background(), engine.Command{Target: TargetHTTP, Input: json.RawMessage(fmt.Sprintf(`{"method":%q,"uri":%q}`, c.method, uri))}, "k", 1)
		if f == nil || f.Open != c.open || f.Unknown != c.unknown {
			t.Errorf("%s %s: %+v, want open %t, unknown %t", c.method, c.uri, f, c.open, c.unknown)
		}
	}
}
