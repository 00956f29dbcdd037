package activity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/engine"
)

const placed = `{"specversion":"1.0","id":"e-1","source":"aqueduct:shop/order","type":"order.placed",` +
	`"subject":"Äpfel, 5 %","urgent":true,"data":{"order":7}}`

// sink is an HTTP server that takes events.
func sink(t *testing.T, status int) (*url.URL, *http.Request, *[]byte) {
	t.Helper()
	got, body := &http.Request{}, &[]byte{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*got = *r
		*body, _ = io.ReadAll(r.Body)
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL + "/events")
	if err != nil {
		t.Fatal(err)
	}
	return u, got, body
}

func event() engine.Command {
	return engine.Command{Target: engine.TargetEvent, Input: json.RawMessage(placed)}
}

func TestSinkGetsTheEventWhole(t *testing.T) {
	t.Parallel()
	u, got, body := sink(t, http.StatusAccepted)
	p := New(Config{Sink: u})
	defer p.Close()
	if !p.Can(engine.TargetEvent) {
		t.Fatal("a performer with a sink publishes no events")
	}
	if _, f := p.Perform(t.Context(), event(), "i/3", 1); f != nil {
		t.Fatal(f.Error)
	}
	if string(*body) != placed || got.Method != http.MethodPost || got.URL.Path != "/events" ||
		got.Header.Get("Content-Type") != "application/cloudevents+json" || got.Header.Get(headerKey) != "i/3" {
		t.Errorf("%s %s %v: %s", got.Method, got.URL, got.Header, *body)
	}
}

func TestSinkGetsTheEventInParts(t *testing.T) {
	t.Parallel()
	u, got, body := sink(t, http.StatusNoContent)
	p := New(Config{Sink: u, SinkMode: SinkBinary})
	defer p.Close()
	if _, f := p.Perform(t.Context(), event(), "i/3", 1); f != nil {
		t.Fatal(f.Error)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/json", "Ce-Specversion": "1.0", "Ce-Id": "e-1", "Ce-Type": "order.placed",
		"Ce-Source": "aqueduct:shop/order", "Ce-Subject": "%C3%84pfel,%205%20%25", "Ce-Urgent": "true",
	} {
		if got.Header.Get(name) != want {
			t.Errorf("%s is %q, not %q", name, got.Header.Get(name), want)
		}
	}
	if string(*body) != `{"order":7}` {
		t.Errorf("body %s", *body)
	}
}

// Data that are no text go to the sink as they came, also where it takes events in parts: a
// header would be no place for them.
func TestSinkGetsBytes(t *testing.T) {
	t.Parallel()
	u, got, body := sink(t, http.StatusNoContent)
	p := New(Config{Sink: u, SinkMode: SinkBinary})
	defer p.Close()
	const bytes = `{"specversion":"1.0","id":"e-1","source":"s","type":"t","data_base64":"/wA="}`
	if _, f := p.Perform(t.Context(), engine.Command{Target: engine.TargetEvent, Input: json.RawMessage(bytes)}, "i/3", 1); f != nil {
		t.Fatal(f.Error)
	}
	if string(*body) != bytes || got.Header.Get("Content-Type") != "application/cloudevents+json" || got.Header.Get("Ce-Data_base64") != "" {
		t.Errorf("%v: %s", got.Header, *body)
	}
}

// TestTheSinkIsShownItsSecret: as it is at each request, and in no failure.
func TestTheSinkIsShownItsSecret(t *testing.T) {
	t.Parallel()
	u, got, _ := sink(t, http.StatusNoContent)
	secret, failed := "Bearer first-of-all-secrets", error(nil)
	p := New(Config{Sink: u, SinkAuthorization: func() (string, error) { return secret, failed }})
	defer p.Close()
	for _, text := range []string{"Bearer first-of-all-secrets", "Bearer second-of-all-secrets"} {
		secret = text
		if _, f := p.Perform(t.Context(), event(), "i/3", 1); f != nil || got.Header.Get("Authorization") != text {
			t.Fatal(f, got.Header)
		}
	}
	got.Header = http.Header{}
	for secret, failed = range map[string]error{"": nil, "x": errors.New("no file")} {
		if _, f := p.Perform(t.Context(), event(), "i/3", 1); f == nil || !f.Retry || len(got.Header) != 0 {
			t.Errorf("an event is sent without: %+v", f)
		}
	}
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, r.Header.Get("Authorization"))
	}))
	defer echo.Close()
	u, _ = url.Parse(echo.URL)
	q := New(Config{Sink: u, SinkAuthorization: func() (string, error) { return "Bearer third-of-all-secrets", nil }})
	defer q.Close()
	if _, f := q.Perform(t.Context(), event(), "i/3", 1); f == nil || strings.Contains(fmt.Sprintf("%+v", f), "third-of") {
		t.Errorf("%+v", f)
	}
}

func TestSinkThatRefusesFailsTheAttempt(t *testing.T) {
	t.Parallel()
	for status, again := range map[int]bool{http.StatusServiceUnavailable: true, http.StatusBadRequest: false, http.StatusFound: false} {
		u, _, _ := sink(t, status)
		p := New(Config{Sink: u})
		_, f := p.Perform(t.Context(), event(), "i/3", 1)
		if f == nil || f.Retry != again || f.Error.Status != status {
			t.Errorf("%d: %+v", status, f)
		}
		p.Close()
	}
}

func TestRegisteredFunctionTakesEventsInPlaceOfTheSink(t *testing.T) {
	t.Parallel()
	u, got, _ := sink(t, http.StatusOK)
	p := New(Config{Sink: u})
	defer p.Close()
	var received string
	p.Register(engine.TargetEvent, func(_ context.Context, event json.RawMessage) (any, error) {
		received = string(event)
		return nil, nil
	})
	if _, f := p.Perform(t.Context(), event(), "i/3", 1); f != nil || received != placed || got.Method != "" {
		t.Errorf("%v, function heard %q, sink %q", f, received, got.Method)
	}
}

func TestWithoutASinkEventsStayInside(t *testing.T) {
	t.Parallel()
	p := New(Config{})
	defer p.Close()
	if p.Can(engine.TargetEvent) {
		t.Error("a performer without a sink would publish events")
	}
}
