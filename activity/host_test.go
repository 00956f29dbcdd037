package activity

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/aqueduct-engine/aqueduct/engine"
)

// transport is an outside world without sockets, for tests in virtual time.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func status(code int) *http.Response {
	return &http.Response{StatusCode: code, Status: fmt.Sprint(code), Header: http.Header{}, Body: io.NopCloser(strings.NewReader(""))}
}

func TestBreakerOpensAndCloses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sent, code := 0, 503
		r := prometheus.NewRegistry()
		p := performer(t, Config{BreakAfter: 3, BreakFor: time.Minute, Metrics: r, Transport: transport(func(*http.Request) (*http.Response, error) {
			sent++
			return status(code), nil
		})})
		for range 3 {
			do(t, p, `{"uri":"http://h:1/"}`, "")
		}
		time.Sleep(20 * time.Second)
		_, f := do(t, p, `{"uri":"http://h:1/"}`, "")
		if f == nil || !f.Retry || f.After != 40*time.Second || f.Error.Title != "circuit breaker open" || sent != 3 {
			t.Fatalf("open: got %+v after %d requests", f, sent)
		}
		if got := gather(t, r, "aqueduct_activity_breakers"); got["host=h:1,state=open"] != 1 || len(got) != 1 {
			t.Errorf("metrics of an open breaker: %v", got)
		}
		code = 200
		if _, f := do(t, p, `{"uri":"http://other/"}`, ""); f != nil {
			t.Errorf("another host: %+v", f)
		}
		time.Sleep(40 * time.Second)
		if _, f := do(t, p, `{"uri":"http://h:1/"}`, ""); f != nil {
			t.Errorf("after the delay: %+v", f)
		}
		if got := gather(t, r, "aqueduct_activity_breakers"); got["host=h:1,state=closed"] != 1 || len(got) != 2 {
			t.Errorf("metrics of closed breakers: %v", got)
		}
		if got := gather(t, r, "aqueduct_activity_breaker_opened_total"); got["host=h:1"] != 1 {
			t.Errorf("opened: %v", got)
		}
	})
}

func TestOnlyTheHostsFailuresOpenItsBreaker(t *testing.T) {
	t.Parallel()
	p := performer(t, Config{BreakAfter: 2, Transport: transport(func(*http.Request) (*http.Response, error) { return status(404), nil })})
	for range 5 {
		if _, f := do(t, p, `{"uri":"http://h/"}`, ""); f == nil || f.Error.Status != 404 {
			t.Fatalf("got %+v", f)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for range 5 {
		_, f := p.Perform(ctx, engine.Command{Target: "http", Input: []byte(`{"uri":"http://h/"}`)}, "k/1", 1)
		if f == nil || !f.Retry && f.Error.Status != 404 {
			t.Fatalf("interrupted: got %+v", f)
		}
	}
	if _, f := do(t, p, `{"uri":"http://h/"}`, ""); f == nil || f.Error.Status != 404 {
		t.Fatalf("after interruptions: got %+v", f)
	}
}

func TestTransportErrorsAndTimeoutsAreRetried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := performer(t, Config{Timeout: time.Second, BreakAfter: 2, Transport: transport(func(r *http.Request) (*http.Response, error) {
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
		if f == nil || !f.Retry || f.Error.Type != TypeTimeout || strings.Contains(f.Error.Detail, "secret") {
			t.Errorf("slow: %+v", f)
		}
		_, f = do(t, p, `{"uri":"http://a/refused?token=secret"}`, "")
		if f == nil || !f.Retry || f.Error.Status != 503 || f.Error.Detail != "GET http://a/refused: refused" {
			t.Errorf("refused: %+v", f)
		}
		if _, f = do(t, p, `{"uri":"http://a/"}`, ""); f.Error.Title != "circuit breaker open" {
			t.Errorf("a timeout and a refusal did not open the breaker: %+v", f)
		}
		if _, f = do(t, p, `{"uri":"http://b/cut"}`, ""); f == nil || !f.Retry || f.Error.Detail != "GET http://b/cut: unexpected EOF" {
			t.Errorf("cut: %+v", f)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, f = p.Perform(ctx, engine.Command{Target: "http", Input: []byte(`{"uri":"http://c/slow"}`)}, "k/1", 1)
		if f == nil || !f.Retry || f.Error.Title != "interrupted" {
			t.Errorf("interrupted: %+v", f)
		}
	})
}

type cut struct{}

func (cut) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestAHostHasAPlaceForSoMany(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan bool)
		p := performer(t, Config{MaxPerHost: 1, HostWait: time.Second, Transport: transport(func(r *http.Request) (*http.Response, error) {
			if r.URL.Host == "a" {
				<-release
			}
			return status(204), nil
		})})
		done := make(chan *engine.Failure)
		go func() {
			_, f := do(t, p, `{"uri":"http://a/"}`, "")
			done <- f
		}()
		synctest.Wait()
		if _, f := do(t, p, `{"uri":"http://a/"}`, ""); f == nil || !f.Retry || f.Error.Title != "too many requests at once" {
			t.Errorf("second: %+v", f)
		}
		if _, f := do(t, p, `{"uri":"http://b/"}`, ""); f != nil {
			t.Errorf("another host: %+v", f)
		}
		close(release)
		if f := <-done; f != nil {
			t.Errorf("first: %+v", f)
		}
	})
}

func TestHostsAreBounded(t *testing.T) {
	t.Parallel()
	r := prometheus.NewRegistry()
	p := performer(t, Config{Metrics: r})
	first := p.hosts.get("host-0")
	for i := range MaxHosts {
		p.hosts.get(fmt.Sprint("host-", i))
	}
	if p.hosts.get("host-0") != first {
		t.Error("a host was forgotten before the limit")
	}
	p.hosts.get("one too many")
	if len(p.hosts.byName) != MaxHosts || p.hosts.byName["host-1"] != nil {
		t.Errorf("%d hosts are remembered", len(p.hosts.byName))
	}
	got := gather(t, r, "aqueduct_activity_breakers")
	if len(got) != MaxHostLabels || got["host=other,state=closed"] != MaxHosts-MaxHostLabels+1 {
		t.Errorf("%d series, %v others", len(got), got["host=other,state=closed"])
	}
}

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
