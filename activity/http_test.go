package activity

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
)

// serve starts a server that answers with h, on loopback.
func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// do performs one HTTP command whose input is written as JSON, with %s for url.
func do(t *testing.T, p *Performer, input, url string) (json.RawMessage, *engine.Failure) {
	t.Helper()
	if strings.Contains(input, "%s") {
		input = fmt.Sprintf(input, url)
	}
	return p.Perform(context.Background(), engine.Command{
		Target: TargetHTTP, Input: json.RawMessage(input),
		Headers: map[string]string{"traceparent": "00-aa-bb-01", "tracestate": "v=1", "correlationId": "c-9", "actor": "ann"},
	}, "i-1/7", 1)
}

func TestRequestCarriesWhatTheCallSays(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, input, want string }{
		{"json body", `{"method":"post","uri":"%s/a?x=1","query":{"n":2,"l":["p","q"]},"headers":{"X-N":5,"X-B":true},"body":{"k":[1]}}`,
			`POST /a?x=1&l=p&l=q&n=2 type=application/json n=5 b=true body={"k":[1]}`},
		{"a query that Go cannot read", `{"method":"get","uri":"%s/a?ids=1;2&p=100%%25","query":{"v":"1"}}`, `GET /a?ids=1;2&p=100%25&v=1 type= n= b= body=`},
		{"text body", `{"method":"PUT","uri":"%s/","body":"plain"}`, `PUT / type=text/plain; charset=utf-8 n= b= body=plain`},
		{"text as said", `{"method":"PUT","uri":"%s/","headers":{"content-type":"text/csv"},"body":"a,b"}`, `PUT / type=text/csv n= b= body=a,b`},
		{"string as json", `{"method":"PUT","uri":"%s/","headers":{"Content-Type":"application/vnd.x+json"},"body":"a"}`,
			`PUT / type=application/vnd.x+json n= b= body="a"`},
		{"no body", `{"uri":"%s/","body":null}`, `GET / type= n= b= body=`},
	}
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		h := r.Header
		if h.Get(headerKey) != "i-1/7" || h.Get("Traceparent") != "00-aa-bb-01" || h.Get("Tracestate") != "v=1" ||
			h.Get(headerCorrelation) != "c-9" || h.Get("Actor") != "" {
			t.Errorf("headers %v", h)
		}
		fmt.Fprintf(w, "%s %s type=%s n=%s b=%s body=%s", r.Method, r.URL, h.Get("Content-Type"), h.Get("X-N"), h.Get("X-B"), body)
	})
	p := performer(t, Config{})
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			result, f := do(t, p, c.input, url)
			var got string
			if err := json.Unmarshal(result, &got); err != nil || got != c.want {
				t.Errorf("got %q, %+v\nwant %q", got, f, c.want)
			}
		})
	}
}

func TestAuthorsHeadersYieldToTheKeyOnly(t *testing.T) {
	t.Parallel()
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Header.Get(headerKey), " ", r.Header.Get("Traceparent"), " ", r.Host)
	})
	result, f := do(t, performer(t, Config{}), `{"uri":"%s","headers":{"idempotency-key":"mine","traceparent":"t","host":"h.example"}}`, url)
	if string(result) != `"i-1/7 t h.example"` {
		t.Errorf("got %s, %+v", result, f)
	}
}

// An attempt is one request, also when the server does the work and drops a
// connection that was kept from earlier calls: net/http would send it again on
// each of those, for it has a key.
func TestAnAttemptIsOneRequest(t *testing.T) {
	t.Parallel()
	const kept = 5
	var calls atomic.Int64
	var together sync.WaitGroup
	together.Add(kept)
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/warm" {
			together.Done()
			together.Wait() // each has a connection of its own
			return
		}
		calls.Add(1)
		_, _ = io.Copy(io.Discard, r.Body) // what matters is that it came
		panic(http.ErrAbortHandler)
	})
	p := performer(t, Config{})
	var all sync.WaitGroup
	for range kept {
		all.Go(func() { do(t, p, `{"uri":"%s/warm"}`, url) })
	}
	all.Wait()
	if _, f := do(t, p, `{"method":"post","uri":"%s/pay","body":{"amount":7}}`, url); f == nil || calls.Load() != 1 {
		t.Errorf("%d requests, %+v", calls.Load(), f)
	}
}

// A result that nests deeper than a value may is a failure that says so: no
// database takes it, whatever is done next.
func TestADeepAnswerIsAFailure(t *testing.T) {
	t.Parallel()
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(r.URL.Path[1:])
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, strings.Repeat("[", n), strings.Repeat("]", n))
	})
	if _, f := do(t, performer(t, Config{}), fmt.Sprintf(`{"uri":"%%s/%d"}`, MaxResultDepth), url); f != nil {
		t.Errorf("at the limit: %+v", f)
	}
	_, f := do(t, performer(t, Config{}), fmt.Sprintf(`{"uri":"%%s/%d"}`, MaxResultDepth+1), url)
	if f == nil || f.Retry || !strings.Contains(f.Error.Detail, "limit.result-depth") {
		t.Errorf("%+v", f)
	}
}

// TestDeliveryNamesWhereItIsAcknowledged is of D5: beside the key, and only of a
// command that asks for it.
func TestDeliveryNamesWhereItIsAcknowledged(t *testing.T) {
	t.Parallel()
	got := ""
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		got = r.Header.Get(headerKey) + " " + r.Header.Get(headerAck)
	})
	p := performer(t, Config{})
	p.Register("see", func(ctx context.Context, _ json.RawMessage) (any, error) { got = Info(ctx).Ack; return nil, nil })
	input := json.RawMessage(`{"uri":"` + url + `","headers":{"aqueduct-ack":"mine"}}`)
	for _, c := range []struct {
		target string
		ack    time.Duration
		want   string
	}{
		{TargetHTTP, time.Minute, "i 1/7 /v1/instances/i%201/commands/7/ack"},
		{TargetHTTP, 0, "i 1/7 mine"},
		{TargetHTTP, -1, "i 1/7 mine"},
		{"see", time.Minute, "/v1/instances/i%201/commands/7/ack"},
		{"see", 0, ""},
	} {
		if _, f := p.Perform(context.Background(), engine.Command{Target: c.target, Input: input, Ack: c.ack, Instance: "i 1", Position: 7}, "i 1/7", 1); f != nil || got != c.want {
			t.Errorf("%s within %s: %s, %+v", c.target, c.ack, got, f)
		}
	}
}

func TestBadCallsAreNotSent(t *testing.T) {
	t.Parallel()
	cases := []struct{ input, detail string }{
		{`[]`, "input of the call"},
		{``, "input of the call"},
		{`{"uri":"http://h/","verb":"GET"}`, `unknown field "verb"`},
		{`{"uri":"http://h/","method":"G T"}`, "not an HTTP method"},
		{`{"uri":"http://h/","output":"xml"}`, "none of content, response, raw"},
		{`{"uri":"ftp://h/x"}`, "neither http nor https"},
		{`{"uri":"file:///etc/passwd"}`, "neither http nor https"},
		{`{"uri":"http:///x"}`, "names no host"},
		{`{"uri":"http://u:secret@h:bad port/"}`, "not a URI"},
		{`{"uri":"http://h/","query":{"q":{}}}`, `query parameter "q"`},
		{`{"uri":"http://h/","headers":{"h":[1]}}`, `header "h": neither`},
		{`{"uri":"http://h/","headers":{"h h":"x"}}`, "not a header that HTTP can carry"},
		{`{"uri":"http://h/","headers":{"h":"a\nb"}}`, "not a header that HTTP can carry"},
		{`{"uri":"http://h/","headers":{"Content-Type":"text/plain"},"body":{}}`, "only a string"},
	}
	for _, c := range cases {
		p := performer(t, Config{Transport: transport(func(*http.Request) (*http.Response, error) {
			t.Errorf("%s was sent", c.input)
			return nil, io.EOF
		})})
		_, f := do(t, p, c.input, "")
		if f == nil || f.Retry || f.Error.Type != TypeValidation || f.Error.Status != 400 || !strings.Contains(f.Error.Detail, c.detail) {
			t.Errorf("%s: got %+v, want %q", c.input, f, c.detail)
		} else if strings.Contains(f.Error.Detail, "secret") {
			t.Errorf("%s: the failure tells a secret: %s", c.input, f.Error.Detail)
		}
	}
}

func TestAnswersTakeTheFormAskedFor(t *testing.T) {
	t.Parallel()
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-A", "1")
		w.Header().Add("X-A", "2")
		w.Header()["Date"] = nil
		switch r.URL.Path {
		case "/json":
			w.Header().Set("Content-Type", "application/problem+json; charset=utf-8")
			fmt.Fprint(w, `{ "n": 12345678901234567890 }`)
		case "/broken":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{`)
		case "/no-text":
			w.Header().Set("Content-Type", "application/json")
			w.Write([]byte("\"\xff\""))
		case "/bytes":
			w.Write([]byte{0xff, 0xfe})
		case "/none":
			w.WriteHeader(http.StatusNoContent)
		default:
			w.Header().Set("Content-Type", "text/plain")
			fmt.Fprint(w, "text")
		}
	})
	host := strings.TrimPrefix(url, "http://")
	cases := []struct{ path, output, want, failure string }{
		{"/json", "", `{"n":12345678901234567890}`, ""},
		{"/text", "content", `"text"`, ""},
		{"/text", "raw", `"dGV4dA=="`, ""},
		{"/bytes", "raw", `"//4="`, ""},
		{"/none", "content", `null`, ""},
		{"/bytes", "content", `"//4="`, ""},
		{"/no-text", "content", ``, "ask for output: raw"},
		{"/broken", "content", ``, "declared JSON and is not"},
		{"/text", "response", `{"content":"text","headers":{"Content-Length":"4","Content-Type":"text/plain","X-A":"1, 2"},` +
			`"request":{"headers":{"Idempotency-Key":"i-1/7","Traceparent":"00-aa-bb-01","Tracestate":"v=1","X-Correlation-Id":"c-9"},` +
			`"method":"GET","uri":"http://` + host + `/text"},"statusCode":200}`, ""},
	}
	p := performer(t, Config{})
	for _, c := range cases {
		result, f := do(t, p, `{"uri":"%s`+c.path+`","output":"`+c.output+`"}`, url)
		if string(result) != c.want {
			t.Errorf("%s as %s:\n got %s, %+v\nwant %s", c.path, c.output, result, f, c.want)
		}
		if c.failure != "" && (f == nil || f.Retry || !strings.Contains(f.Error.Detail, c.failure)) {
			t.Errorf("%s as %s: got %+v, want %q", c.path, c.output, f, c.failure)
		}
	}
}

func TestStatusesBecomeFailures(t *testing.T) {
	t.Parallel()
	const date = "Sat, 01 Aug 2026 10:00:00 GMT"
	cases := []struct {
		status     int
		retryAfter string
		retry      bool
		after      time.Duration
	}{
		{400, "9", false, 0}, {409, "9", false, 9 * time.Second}, {401, "", false, 0}, {404, "", false, 0}, {422, "", false, 0}, {499, "", false, 0},
		{408, "", true, 0}, {425, "", true, 0}, {429, "7", true, 7 * time.Second}, {500, "", true, 0},
		{503, "Sat, 01 Aug 2026 10:02:00 GMT", true, 2 * time.Minute}, {503, "soon", true, 0}, {503, "-5", true, 0},
		{503, "999999", true, MaxRetryAfter}, {503, "9223372037", true, MaxRetryAfter}, {503, "99999999999999999999", true, MaxRetryAfter},
		{503, "Sat, 01 Aug 2026 09:00:00 GMT", true, 0},
	}
	for _, c := range cases {
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Date", date)
			if c.retryAfter != "" {
				w.Header().Set("Retry-After", c.retryAfter)
			}
			w.WriteHeader(c.status)
			fmt.Fprint(w, "because")
		})
		_, f := do(t, performer(t, Config{}), `{"uri":"%s/p?token=secret"}`, url)
		if f == nil {
			t.Fatalf("%d: no failure", c.status)
		}
		if f.Error.Type != TypeCommunication || f.Error.Status != c.status || f.Error.Title == "" || f.Retry != c.retry || f.After != c.after {
			t.Errorf("%d %s: got %+v", c.status, c.retryAfter, f)
		}
		if !strings.HasSuffix(f.Error.Detail, ": because") || strings.Contains(f.Error.Detail, "secret") {
			t.Errorf("%d: detail %q", c.status, f.Error.Detail)
		}
	}
	if d := retryAfter(http.Header{"Retry-After": {date}}); d != 0 {
		t.Errorf("a date without the server's own: %s", d)
	}
	if got := excerpt([]byte(strings.Repeat("x", 600))); len(got) != maxExcerptBytes+4 {
		t.Errorf("excerpt of %d bytes", len(got))
	}
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/once":
			http.Redirect(w, r, "/end", http.StatusFound)
		case "/end":
			fmt.Fprint(w, "end")
		case "/loop":
			http.Redirect(w, r, "/loop", http.StatusFound)
		case "/astray":
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		default:
			w.WriteHeader(http.StatusNotModified)
		}
	})
	cases := []struct {
		path     string
		redirect bool
		want     string
		status   int
	}{
		{"/once", true, `"end"`, 0}, {"/same", true, `null`, 0},
		{"/once", false, "", 302}, {"/same", false, "", 304},
		{"/loop", true, "", 502}, {"/astray", true, "", 502},
	}
	p := performer(t, Config{})
	for _, c := range cases {
		result, f := do(t, p, fmt.Sprintf(`{"uri":"%s%s","redirect":%t}`, url, c.path, c.redirect), "")
		if string(result) != c.want {
			t.Errorf("%s: got %s, %+v, want %s", c.path, result, f, c.want)
		}
		if c.status != 0 && (f == nil || f.Retry || f.Error.Status != c.status || f.Error.Type != TypeCommunication) {
			t.Errorf("%s: got %+v, want status %d", c.path, f, c.status)
		}
	}
}

func TestResponseIsBounded(t *testing.T) {
	t.Parallel()
	url := serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, strings.Repeat("x", 101)) })
	_, f := do(t, performer(t, Config{MaxResponseBytes: 100}), `{"uri":"%s"}`, url)
	if f == nil || f.Retry || !strings.Contains(f.Error.Detail, "[limit.response]") {
		t.Errorf("over: %+v", f)
	}
	if r, f := do(t, performer(t, Config{MaxResponseBytes: 101}), `{"uri":"%s"}`, url); f != nil || len(r) != 103 {
		t.Errorf("at the limit: %d bytes, %+v", len(r), f)
	}
}

// A redirect of what does something is an answer to it: what comes of the request that
// follows does not say that nothing was done, and the first is not made again for it.
func TestWhatFollowsARedirectSaysNothingOfTheFirst(t *testing.T) {
	t.Parallel()
	var asked, hops atomic.Int64
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/pay" && r.Method == http.MethodPost:
			asked.Add(1)
			http.Redirect(w, r, "/"+r.URL.Query().Get("to"), http.StatusSeeOther)
		case r.URL.Path == "/hop" && hops.Add(1) <= MaxRedirects:
			http.Redirect(w, r, "/hop", http.StatusFound)
		case r.URL.Path == "/hop":
			fmt.Fprint(w, "there")
		case r.URL.Path == "/401":
			w.Header().Set("WWW-Authenticate", `Digest realm="r", nonce="n", qop="auth"`)
			w.WriteHeader(http.StatusUnauthorized)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	})
	p := performer(t, Config{})
	digest := `,"authentication":{"digest":{"username":"ann","password":"x"}}`
	for to, auth := range map[string]string{"404": "", "401": digest} {
		asked.Store(0)
		_, f := do(t, p, fmt.Sprintf(`{"method":"post","uri":"%s/pay?to=%s","redirect":true%s}`, url, to, auth), "")
		if f == nil || !f.Open || f.Unknown || asked.Load() != 1 {
			t.Errorf("%s: asked %d times: %+v", to, asked.Load(), f)
		}
	}
	if got, f := do(t, p, fmt.Sprintf(`{"uri":"%s/hop","redirect":true}`, url), ""); string(got) != `"there"` || hops.Load() != MaxRedirects+1 {
		t.Errorf("%s after %d requests: %+v", got, hops.Load(), f)
	}
}

// TestHeadersThatDifferInCaseHaveAnOrder: HTTP knows one of them, and it is always the same.
func TestHeadersThatDifferInCaseHaveAnOrder(t *testing.T) {
	t.Parallel()
	got := map[string]int{}
	p := performer(t, Config{Transport: tripper(func(r *http.Request) (*http.Response, error) {
		got[r.Header.Get("X-Way")]++
		return &http.Response{StatusCode: 204, Body: http.NoBody, Request: r}, nil
	})})
	for range 32 {
		if _, f := do(t, p, `{"uri":"http://bank/","headers":{"x-way":"c","X-Way":"b","X-WAY":"a"}}`, ""); f != nil {
			t.Fatal(f)
		}
	}
	if got["c"] != 32 {
		t.Errorf("sent %v", got)
	}
}
