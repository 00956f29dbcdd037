package otlp

import (
	"compress/gzip"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/aqueduct-engine/aqueduct/internal/await"
	"github.com/aqueduct-engine/aqueduct/tracing"
)

// receiver is one of OTLP; answer says what it makes of the nth request, from 0.
type receiver struct {
	mu     sync.Mutex
	n      int
	spans  []map[string]any
	bodies []string
	header http.Header
	answer func(n int, w http.ResponseWriter, r *http.Request) (taken bool)
}

func (c *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	z, err := gzip.NewReader(r.Body)
	if err != nil || r.URL.Path != "/v1/traces" || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" {
		http.Error(w, "not OTLP in JSON", http.StatusBadRequest)
		return
	}
	body, err := io.ReadAll(z)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	n := c.n
	c.n++
	c.header = r.Header
	c.mu.Unlock()
	if c.answer != nil && !c.answer(n, w, r) {
		return
	}
	var sent struct {
		ResourceSpans []struct {
			Resource   map[string]any
			ScopeSpans []struct{ Spans []map[string]any }
		}
	}
	if err := json.Unmarshal(body, &sent); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.bodies = append(c.bodies, string(body))
	for _, rs := range sent.ResourceSpans {
		for _, ss := range rs.ScopeSpans {
			c.spans = append(c.spans, ss.Spans...)
		}
	}
}

func (c *receiver) count() (requests, spans int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n, len(c.spans)
}

// sending is an exporter to a receiver, which is fast to try again.
func sending(t *testing.T, c *receiver, change func(*Config)) *Exporter {
	t.Helper()
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	config := Config{
		Endpoint: u, Scope: "aqueduct", Version: "1", Log: slog.New(slog.DiscardHandler), Resource: []tracing.Attribute{{Key: "service.name", Text: "a", IsText: true}},
		every: time.Millisecond, timeout: time.Minute, patience: time.Minute, firstPause: time.Millisecond,
	}
	if change != nil {
		change(&config)
	}
	e := Start(config)
	t.Cleanup(func() { e.Close(gone()) })
	return e
}

// gone is a context that has ended.
func gone() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// some are n spans.
func some(n int) []tracing.Span {
	list := make([]tracing.Span, n)
	for i := range list {
		list[i] = tracing.Span{Trace: [16]byte{1}, ID: [8]byte{2, byte(i >> 8), byte(i)}, Name: "turn", Kind: tracing.Internal, Start: time.Unix(1, 2), End: time.Unix(3, 4)}
	}
	return list
}

// What is sent is OTLP in JSON: ids in hexadecimal, integers of 64 bits as texts.
func TestASpanInJSON(t *testing.T) {
	t.Parallel()
	c := &receiver{}
	e := sending(t, c, func(c *Config) { c.Headers = func() (http.Header, error) { return http.Header{"X-Key": {"k"}}, nil } })
	s := some(1)[0]
	s.Parent, s.Failed, s.Unlinked = [8]byte{9}, true, 2
	s.Links = []tracing.Link{{Trace: [16]byte{0xab}, ID: [8]byte{0xcd}}}
	s.Attributes = []tracing.Attribute{{Key: "a", Text: "quote \" line \n \xff", IsText: true}, {Key: "n", Number: 1 << 60}}
	back := some(1)[0]
	back.End = time.Unix(0, 5)
	e.Record(s, back)
	await.Until(t, "sent", func() (bool, any) { _, n := c.count(); return n == 2, n })
	want := map[string]any{
		"traceId": "01000000000000000000000000000000", "spanId": "0200000000000000", "parentSpanId": "0900000000000000", "name": "turn", "kind": 1.0,
		"startTimeUnixNano": "1000000002", "endTimeUnixNano": "3000000004", "droppedLinksCount": 2.0, "status": map[string]any{"code": 2.0}, "flags": 1.0,
		"links": []any{map[string]any{"traceId": "ab000000000000000000000000000000", "spanId": "cd00000000000000"}},
		"attributes": []any{
			map[string]any{"key": "a", "value": map[string]any{"stringValue": "quote \" line \n \ufffd"}},
			map[string]any{"key": "n", "value": map[string]any{"intValue": strconv.Itoa(1 << 60)}},
		},
	}
	got, _ := json.Marshal(c.spans[0])
	expected, _ := json.Marshal(want)
	if string(got) != string(expected) {
		t.Errorf("got  %s\nwant %s", got, expected)
	}
	if s := c.spans[1]; s["endTimeUnixNano"] != s["startTimeUnixNano"] || s["parentSpanId"] != nil || s["status"] != nil {
		t.Errorf("a clock was set back: %v", s)
	}
	if c.header.Get("X-Key") != "k" || !strings.Contains(c.bodies[0], `"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"a"}}]}`) {
		t.Errorf("%v %s", c.header, c.bodies[0])
	}
	await.Until(t, "counted", func() (bool, any) { return e.Sent() == 2, e.Sent() })
}

// A text is cut where a letter ends.
func TestATextIsCut(t *testing.T) {
	t.Parallel()
	for _, s := range []string{strings.Repeat("a", maxTextBytes+1), strings.Repeat("é", maxTextBytes), "a" + strings.Repeat("é", maxTextBytes), "ab" + strings.Repeat("\U0001F600", maxTextBytes), strings.Repeat("\xff", 3*maxTextBytes)} {
		var got string
		if err := json.Unmarshal(text(nil, s), &got); err != nil || !utf8.ValidString(got) || len(got) > maxTextBytes+3 {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		if utf8.ValidString(s) && (!strings.HasPrefix(s, got) || len(got) < maxTextBytes-3) {
			t.Errorf("%d bytes: %.20q", len(got), got)
		}
	}
}

// A receiver that cannot take spans now gets them again, once it can.
func TestABatchIsSentAgain(t *testing.T) {
	t.Parallel()
	statuses := []int{429, 502, 503, 504}
	c := &receiver{answer: func(n int, w http.ResponseWriter, _ *http.Request) bool {
		if n < len(statuses) {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(statuses[n])
			return false
		}
		if n == len(statuses) { // it is gone in the middle
			panic(http.ErrAbortHandler)
		}
		return true
	}}
	e := sending(t, c, nil)
	e.Record(some(3)...)
	await.Until(t, "sent", func() (bool, any) { return e.Sent() == 3, e.Sent() })
	if n, spans := c.count(); n != len(statuses)+2 || spans != 3 {
		t.Errorf("%d requests, %d spans", n, spans)
	}
}

// What a receiver refuses is not sent again: it is counted, and so is what it rejects of a batch.
func TestWhatIsRefusedIsCounted(t *testing.T) {
	t.Parallel()
	for status, answer := range map[int]string{400: "", 401: "", 500: "", 301: ""} {
		c := &receiver{answer: func(_ int, w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, answer)
			return false
		}}
		e := sending(t, c, nil)
		e.Record(some(2)...)
		await.Until(t, "refused", func() (bool, any) { return e.Dropped(Refused) == 2, e.Dropped(Refused) })
		if n, _ := c.count(); n != 1 || e.Sent() != 0 {
			t.Errorf("%d: %d requests, %d sent", status, n, e.Sent())
		}
	}
	for answer, rejected := range map[string]int64{
		`{"partialSuccess":{"rejectedSpans":"2"}}`: 2, `{"partialSuccess":{"rejectedSpans":1,"errorMessage":"x"}}`: 1, `{"partialSuccess":{"rejectedSpans":"99"}}`: 3,
		`{"partialSuccess":{"rejectedSpans":"-1"}}`: 0, `{}`: 0, ``: 0, `nonsense`: 0, `{"partialSuccess":{"rejectedSpans":{}}}`: 0,
	} {
		e := sending(t, &receiver{answer: func(_ int, w http.ResponseWriter, _ *http.Request) bool {
			_, _ = io.WriteString(w, answer)
			return true
		}}, nil)
		e.Record(some(3)...)
		await.Until(t, answer, func() (bool, any) {
			n := e.Sent() + e.Dropped(Refused)
			return n == 3, n
		})
		if e.Dropped(Refused) != rejected {
			t.Errorf("%s: %d rejected", answer, e.Dropped(Refused))
		}
	}
}

// A receiver that hangs keeps nobody waiting: who records goes on, what has no room is
// dropped and counted, and the exporter ends with the time that it has.
func TestAReceiverThatHangs(t *testing.T) {
	t.Parallel()
	hangs, left := make(chan struct{}), make(chan struct{})
	var once sync.Once
	c := &receiver{answer: func(_ int, _ http.ResponseWriter, r *http.Request) bool {
		once.Do(func() { close(hangs) })
		select {
		case <-r.Context().Done():
		case <-left:
		}
		return false
	}}
	e := sending(t, c, nil)
	defer close(left)
	e.Record(some(1)...)
	<-hangs
	for range 2 * MaxQueue / 64 {
		e.Record(some(64)...)
	}
	if e.Waiting() != MaxQueue || e.Dropped(Full) != MaxQueue {
		t.Errorf("%d wait, %d are dropped", e.Waiting(), e.Dropped(Full))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	e.Close(ctx)
	if n := e.Dropped(Stopped); n != MaxQueue+1 || e.Waiting() != 0 || e.Sent() != 0 {
		t.Errorf("%d are dropped, %d wait, %d are sent", n, e.Waiting(), e.Sent())
	}
	e.Record(some(2)...)
	if n := e.Dropped(Stopped); n != MaxQueue+3 {
		t.Errorf("%d are dropped after the end", n)
	}
	e.Close(ctx)
}

// One that is nowhere is given up after a while, and when the exporter ends.
func TestAReceiverThatIsNowhere(t *testing.T) {
	t.Parallel()
	e := sending(t, &receiver{}, func(c *Config) {
		c.Endpoint = &url.URL{Scheme: "http", Host: "127.0.0.1:1"}
		c.patience = 20 * time.Millisecond
	})
	e.Record(some(2)...)
	await.Until(t, "given up", func() (bool, any) { return e.Dropped(Failed) == 2, e.Dropped(Failed) })
	slow := sending(t, &receiver{}, func(c *Config) {
		c.Endpoint = &url.URL{Scheme: "http", Host: "127.0.0.1:1"}
		c.firstPause, c.patience = time.Hour, 2*time.Hour
	})
	slow.Record(some(MaxBatch + 1)...)
	await.Until(t, "a batch is under way", func() (bool, any) { return slow.Waiting() == 1, slow.Waiting() })
	slow.Close(context.Background()) // no pause is waited for
	if n := slow.Dropped(Stopped); n != MaxBatch+1 {
		t.Errorf("%d are dropped", n)
	}
}

// What waits when the exporter ends is sent.
func TestTheRestIsSent(t *testing.T) {
	t.Parallel()
	c := &receiver{}
	e := sending(t, c, func(c *Config) { c.every = time.Hour })
	e.Record(some(3*MaxBatch + 7)...)
	e.Close(t.Context())
	seen := map[any]bool{}
	for _, s := range c.spans {
		seen[s["spanId"]] = true
	}
	if n, _ := c.count(); e.Sent() != 3*MaxBatch+7 || len(seen) != 3*MaxBatch+7 || n != 4 {
		t.Errorf("%d sent, %d spans in %d requests", e.Sent(), len(seen), n)
	}
}

// Headers that cannot be read are an error like any other, and none is sent without them.
func TestHeadersThatCannotBeRead(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	broken := true
	c := &receiver{}
	e := sending(t, c, func(c *Config) {
		c.Headers = func() (http.Header, error) {
			mu.Lock()
			defer mu.Unlock()
			if broken = !broken; !broken {
				return nil, errors.New("no file")
			}
			return http.Header{"Authorization": {"Bearer x"}}, nil
		}
	})
	e.Record(some(1)...)
	await.Until(t, "sent", func() (bool, any) { return e.Sent() == 1, e.Sent() })
	if n, _ := c.count(); n != 1 || c.header.Get("Authorization") != "Bearer x" {
		t.Errorf("%d requests, %v", n, c.header)
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]time.Duration{
		"": 0, "2": 2 * time.Second, "-5": 0, "99999": MaxRetryAfter, "9223372036854775807": MaxRetryAfter, "soon": 0,
		time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat): 0, time.Now().Add(time.Hour).UTC().Format(http.TimeFormat): MaxRetryAfter,
	} {
		if got := retryAfter(value); got != want {
			t.Errorf("%q: %s, want %s", value, got, want)
		}
	}
}

// Ids are written whole.
func TestIDs(t *testing.T) {
	t.Parallel()
	raw := []byte{0, 1, 0xfe, 0xff}
	if got := string(id(nil, raw)); got != `"`+hex.EncodeToString(raw)+`"` {
		t.Error(got)
	}
}
