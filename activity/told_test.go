package activity

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
)

// odd are answers of success whose bodies are of no use to anybody.
var odd = map[string]string{
	"large":     "Content-Type: text/plain\r\nContent-Length: 3000000\r\n\r\n" + strings.Repeat("x", 3_000_000),
	"deep":      "Content-Type: application/json\r\nContent-Length: 2000\r\n\r\n" + strings.Repeat("[", 1000) + strings.Repeat("]", 1000),
	"no JSON":   "Content-Type: application/json\r\nContent-Length: 3\r\n\r\n{\"a",
	"no text":   "Content-Type: application/json\r\nContent-Length: 3\r\n\r\n\xe4\x00\xfc",
	"half":      "Content-Length: 100\r\n\r\nabc",
	"no gzip":   "Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
	"none":      "Content-Length: 0\r\n\r\n",
	"never end": "Content-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
}

// answering is a server that answers with these bytes after its status; one that never
// ends stays until the test does.
func answering(t *testing.T, status int, rest string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		out := bufio.NewWriter(conn)
		fmt.Fprintf(out, "HTTP/1.1 %d Well\r\nConnection: close\r\n%s", status, rest)
		if out.Flush() == nil && strings.Contains(rest, "chunked") {
			_, _ = conn.Read(make([]byte, 1)) // until the client goes
		} else if c, ok := conn.(*net.TCPConn); ok {
			_ = c.CloseWrite()
			_, _ = conn.Read(make([]byte, 1))
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// What is acknowledged later, or is told only, is delivered when the status says so:
// its answer's body is nobody's. One whose answer is the result fails by it.
func TestADeliveryIsDoneWhateverTheBodyOfItsAnswer(t *testing.T) {
	t.Parallel()
	for name, rest := range odd {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			place := answering(t, 200, rest)
			input := json.RawMessage(`{"method":"post","uri":"` + place + `"}`)
			u, err := url.Parse(place)
			if err != nil {
				t.Fatal(err)
			}
			patience := time.Minute
			if name == "never end" { // which is waited for
				patience = 5 * time.Second
			}
			p, impatient := New(Config{Sink: u, Timeout: patience}), New(Config{Timeout: 2 * time.Second})
			defer p.Close()
			defer impatient.Close()
			for what, c := range map[string]engine.Command{
				"acknowledged": {Target: TargetHTTP, Token: "w", Input: input, Ack: time.Minute},
				"told":         {Target: TargetHTTP, Token: "w", Input: input, Ack: -1},
				"event":        event(),
			} {
				if result, f := p.Perform(t.Context(), c, "k", 1); f != nil || len(result) > 0 {
					t.Errorf("%s: %.40q, %+v", what, result, f)
				}
			}
			if name == "none" {
				impatient = p // there is nothing to be waited for
			}
			if _, f := impatient.Perform(t.Context(), engine.Command{Target: TargetHTTP, Token: "w", Input: input}, "k", 1); (f == nil) != (name == "none") {
				t.Errorf("the result of a call: %+v", f)
			}
		})
	}
	for name, rest := range odd {
		place := answering(t, 503, rest)
		p := New(Config{Timeout: 200 * time.Millisecond})
		c := engine.Command{Target: TargetHTTP, Input: json.RawMessage(`{"uri":"` + place + `"}`), Ack: time.Minute}
		if _, f := p.Perform(t.Context(), c, "k", 1); f == nil || !f.Retry {
			t.Errorf("503 with %s: %+v", name, f)
		}
		p.Close()
	}
}

// So it is with a function.
func TestADeliveryIsDoneWhateverAFunctionReturns(t *testing.T) {
	t.Parallel()
	p := New(Config{})
	defer p.Close()
	returns := map[string]any{"chan": make(chan int), "large": strings.Repeat("x", DefaultMaxResultBytes)}
	for name, v := range returns {
		p.Register(name, func(context.Context, json.RawMessage) (any, error) { return v, nil })
		for _, ack := range []time.Duration{time.Minute, -1} {
			if result, f := p.Perform(t.Context(), engine.Command{Target: name, Ack: ack}, "k", 1); f != nil || len(result) > 0 {
				t.Errorf("%s: %.40q, %+v", name, result, f)
			}
		}
		if _, f := p.Perform(t.Context(), engine.Command{Target: name}, "k", 1); f == nil {
			t.Errorf("%s: no failure", name)
		}
	}
}
