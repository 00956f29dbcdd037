package activity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
)

// transport is an outside world without sockets, for tests in virtual time.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func status(code int) *http.Response {
	return &http.Response{StatusCode: code, Status: fmt.Sprint(code), Header: http.Header{}, Body: io.NopCloser(strings.NewReader(""))}
}

func TestTransportErrorsAndTimeoutsAreRetried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := performer(t, Config{Timeout: time.Second, Transport: transport(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path == "/slow" {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			if r.URL.Path == "/cut" {
				resp := status(200)
				resp.Body = io.NopCloser(io.MultiReader(strings.NewReader("x"), cut{}))
				return resp, nil
			}
			return nil, errors.New("refused")
		})})
		_, f := do(t, p, `{"uri":"http://a/slow?token=secret"}`, "")
		if f == nil || !f.Retry || !f.Ill || f.Error.Type != TypeTimeout || strings.Contains(f.Error.Detail, "secret") {
			t.Errorf("slow: %+v", f)
		}
		_, f = do(t, p, `{"uri":"http://a/refused?token=secret"}`, "")
		if f == nil || !f.Retry || !f.Ill || f.Error.Status != 503 || f.Error.Detail != "GET http://a/refused: refused" {
			t.Errorf("refused: %+v", f)
		}
		if _, f = do(t, p, `{"uri":"http://b/cut"}`, ""); f == nil || !f.Retry || !f.Ill || f.Error.Detail != "GET http://b/cut: unexpected EOF" {
			t.Errorf("cut: %+v", f)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, f = p.Perform(ctx, engine.Command{Target: "http", Input: []byte(`{"uri":"http://c/slow"}`)}, "k/1", 1)
		if f == nil || !f.Retry || f.Ill || f.Error.Title != "interrupted" {
			t.Errorf("interrupted: %+v", f)
		}
	})
}

type cut struct{}

func (cut) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestAnInterruptedRequestThatFinishedCounts(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	p := performer(t, Config{Transport: transport(func(*http.Request) (*http.Response, error) {
		cancel()
		return status(204), nil
	})})
	result, f := p.Perform(ctx, engine.Command{Target: "http", Input: []byte(`{"uri":"http://h/"}`)}, "k/1", 1)
	if f != nil && !f.Retry || f == nil && string(result) != "null" {
		t.Errorf("got %s, %+v", result, f)
	}
}

// What is the destination's own trouble counts for its breaker, and nothing
// else does.
func TestOnlyItsOwnFailuresMakeADestinationIll(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]bool{200: false, 404: false, 401: false, 408: true, 429: true, 500: true, 503: true} {
		p := performer(t, Config{Transport: transport(func(*http.Request) (*http.Response, error) { return status(code), nil })})
		if _, f := do(t, p, `{"uri":"http://h/"}`, ""); (f != nil && f.Ill) != want {
			t.Errorf("%d: %+v", code, f)
		}
	}
	p := performer(t, Config{})
	for name, c := range map[string]struct {
		err error
		ill bool
	}{"down": {errors.New("down"), true}, "wrong": {Permanent(errors.New("wrong")), false}, "raised": {&Error{Status: 409}, false}, "later": {RetryAfter(&Error{}, 0), true}} {
		p.Register(name, func(context.Context, json.RawMessage) (any, error) { return nil, c.err })
		if _, f := p.Perform(t.Context(), engine.Command{Target: name}, "k/1", 1); f == nil || f.Ill != c.ill {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

func TestDestinations(t *testing.T) {
	t.Parallel()
	sink, err := url.Parse("https://Sink.example/events?token=x")
	if err != nil {
		t.Fatal(err)
	}
	p := performer(t, Config{Sink: sink})
	p.Register("charge", func(context.Context, json.RawMessage) (any, error) { return nil, nil })
	long := "http://h/" + strings.Repeat("é", 300) + "/x"
	for _, c := range []struct{ target, input, want, host string }{
		{"charge", `{"uri":"http://h/"}`, "charge", ""},
		{"http", `{"uri":"http://H:1/a"}`, "GET h:1/a", "h:1"},
		{"http", `{"method":"post","uri":"http://u:p@h/a?q=secret#f"}`, "POST h/a", "h"},
		{"http", `{"uri":"http://h/items/4711/lines/1","path":"/items/{id}/lines/{line}"}`, "GET h/items/{id}/lines/{line}", "h"},
		{"http", `{"uri":"http://h/v2/items/4711/lines/1"}`, "GET h/v2/items/{}/lines/{}", "h"},
		{"http", `{"uri":"http://h/o/0193f5ab-54b4-7c11-8a2e-2f9b1d000001"}`, "GET h/o/{}", "h"},
		{"http", `{"uri":"` + long + `"}`, "GET h/{}/x", "h"},
		{"http", `{"uri":"http://h/x","path":"/` + strings.Repeat("é", 300) + `"}`, "GET h/" + strings.Repeat("é", 125), "h"},
		{"http", `{"uri":"::"}`, "http", ""},
		{"http", `[]`, "http", ""},
		{engine.TargetEvent, `{}`, "POST sink.example/events", "sink.example"},
		{engine.TargetLifecycle, `{}`, "POST sink.example/events", "sink.example"},
	} {
		got := p.Destination(engine.Command{Target: c.target, Input: json.RawMessage(c.input)})
		if got.Target != c.want || got.Host != c.host {
			t.Errorf("%s %s: %+v", c.target, c.input, got)
		}
	}
}
