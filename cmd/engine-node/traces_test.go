package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/config"
	"github.com/aqueduct-engine/aqueduct/internal/await"
	nodeproc "github.com/aqueduct-engine/aqueduct/internal/nodes"
	"github.com/aqueduct-engine/aqueduct/problem"
)

// sentSpan is a span as a receiver gets it.
type sentSpan struct {
	TraceID    string `json:"traceId"`
	SpanID     string `json:"spanId"`
	Parent     string `json:"parentSpanId"`
	Name       string `json:"name"`
	Kind       int    `json:"kind"`
	Status     struct{ Code int }
	Links      []struct{ TraceID, SpanID string }
	Attributes []struct {
		Key   string
		Value struct{ StringValue, IntValue string }
	}
}

func (s sentSpan) says(key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.StringValue + a.Value.IntValue
		}
	}
	return ""
}

// collector is a receiver of OTLP over HTTP.
type collector struct {
	mu     sync.Mutex
	spans  []sentSpan
	bodies bytes.Buffer
	tokens map[string]bool // of the requests
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	z, err := gzip.NewReader(r.Body)
	if err != nil || r.URL.Path != "/v1/traces" {
		http.Error(w, "not what was asked for", http.StatusBadRequest)
		return
	}
	body, err := io.ReadAll(z)
	var sent struct {
		ResourceSpans []struct{ ScopeSpans []struct{ Spans []sentSpan } }
	}
	if err != nil || json.Unmarshal(body, &sent) != nil {
		http.Error(w, "not OTLP", http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tokens == nil {
		c.tokens = map[string]bool{}
	}
	c.tokens[r.Header.Get("Authorization")] = true
	c.bodies.Write(body)
	for _, rs := range sent.ResourceSpans {
		for _, ss := range rs.ScopeSpans {
			c.spans = append(c.spans, ss.Spans...)
		}
	}
}

func (c *collector) named(prefix string) (list []sentSpan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.spans {
		if strings.HasPrefix(s.Name, prefix) {
			list = append(list, s)
		}
	}
	return list
}

// blocking keeps its first request waiting, and answers the others. It keeps what they
// say of a trace.
type blocking struct {
	mu     sync.Mutex
	traces []string
}

func (b *blocking) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	b.mu.Lock()
	b.traces = append(b.traces, r.Header.Get("Traceparent"))
	first := len(b.traces) == 1
	b.mu.Unlock()
	if first {
		<-r.Context().Done()
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprint(w, `{"token":"s3cret-4711"}`)
}

func (b *blocking) got() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.traces)
}

// serving is a node in a process of its own.
type serving struct {
	cmd    *exec.Cmd
	client *client.Client
	url    string
	log    string
	done   chan error
}

func serveApart(t *testing.T, name, database string, flags ...string) *serving {
	t.Helper()
	s := &serving{log: filepath.Join(t.TempDir(), name+".log"), done: make(chan error, 1)}
	log, err := os.Create(s.log)
	if err != nil {
		t.Fatal(err)
	}
	s.cmd = exec.Command("engine-node", append([]string{"serve", "--listen", "127.0.0.1:0", "--json", "--node", name, "--store", "sqlite://" + database}, flags...)...)
	s.cmd.Env, s.cmd.Stderr = nodeproc.Quiet(), log
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(out).ReadString('\n')
		line <- text
		s.done <- s.cmd.Wait()
		log.Close()
	}()
	t.Cleanup(func() { _ = s.cmd.Process.Kill(); <-s.done })
	text, ok := await.Receive(line, func() any { return s.said(t) })
	var ready struct{ URL string }
	if !ok || json.Unmarshal([]byte(text), &ready) != nil {
		t.Fatalf("%s says %q\n%s", name, text, s.said(t))
	}
	s.url = ready.URL
	if s.client, err = client.New(ready.URL, http.DefaultClient); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *serving) said(t *testing.T) string {
	raw, err := os.ReadFile(s.log)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// ends sends a signal and waits for the end of the process.
func (s *serving) ends(t *testing.T, sig os.Signal) error {
	t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	err, ok := await.Receive(s.done, func() any { return s.said(t) })
	if !ok {
		t.Fatalf("the node does not end:\n%s", s.said(t))
	}
	s.done <- err
	return err
}

const traced = `document: {dsl: '1.0.3', namespace: test, name: traced, version: 1.0.0}
do:
  - charge:
      call: http
      with: {method: post, endpoint: '${ .to }', body: '${ . }'}
  - paid:
      listen: {to: {one: {with: {type: paid}}}}
`

// The spans of an instance are one trace although its node is killed in the middle of a
// call: a span for each turn that was committed, none for one twice, and each attempt
// has an id of its own, which the called one gets.
func TestATraceGoesOnAfterACrash(t *testing.T) {
	t.Parallel()
	spans, outside := &collector{}, &blocking{}
	receiver, called := httptest.NewServer(spans), httptest.NewServer(outside)
	t.Cleanup(receiver.Close)
	t.Cleanup(called.Close)
	dir := t.TempDir()
	headers := filepath.Join(dir, "headers")
	if err := os.WriteFile(headers, []byte("# of the receiver\nAuthorization: Bearer first\n\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := []string{"--tracing-endpoint", receiver.URL, "--tracing-headers-file", headers, "--activity-timeout", "1h"}
	database := filepath.Join(dir, "a.db")

	first := serveApart(t, "first", database, flags...)
	if _, _, err := first.client.Publish(t.Context(), "a.yaml", []byte(traced)); err != nil {
		t.Fatal(err)
	}
	input, _ := json.Marshal(map[string]string{"to": called.URL, "card": "s3cret-4711"})
	i, _, err := first.client.Start(t.Context(), client.StartRequest{Definition: "test/traced", Input: input}, 0)
	if err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the first attempt, and what was sent of the start", func() (bool, any) {
		got, sent := len(outside.got()), len(spans.named("start "))
		return got == 1 && sent == 1, []int{got, sent}
	})
	_ = first.ends(t, os.Kill)

	if err := os.WriteFile(headers, []byte("Authorization: Bearer second\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	second := serveApart(t, "second", database, flags...)
	await.Until(t, "the second attempt", func() (bool, any) { got := len(outside.got()); return got == 2, got })
	await.Until(t, "it listens", func() (bool, any) {
		p, err := second.client.Instances(t.Context(), client.InstanceQuery{Definition: "test/traced", Status: "waiting"})
		return err == nil && len(p.Items) == 1 && p.Items[0].State == "paid", p
	})
	if _, err := second.client.Signal(t.Context(), i.ID, client.SignalRequest{Type: "paid", SignalID: "s-1"}); err != nil {
		t.Fatal(err)
	}
	metrics := openMetrics(t, second.url)
	if err := second.ends(t, syscall.SIGTERM); err != nil {
		t.Fatalf("%v\n%s", err, second.said(t))
	}

	starts, ends, attempts := spans.named("start "), spans.named("end "), spans.named("POST")
	turns := slices.Concat(spans.named("turn"), spans.named("process "))
	if len(starts) != 1 || len(ends) != 1 || len(attempts) != 1 || len(turns) != 3 {
		t.Fatalf("%d starts, %d ends, %d attempts, %d turns", len(starts), len(ends), len(attempts), len(turns))
	}
	trace, turned := starts[0].TraceID, map[string]bool{}
	for _, s := range spans.named("") {
		if s.TraceID != trace || s.says("aqueduct.instance.id") != i.ID || s.SpanID != starts[0].SpanID && s.Parent != starts[0].SpanID {
			t.Errorf("a span of another trace: %+v", s)
		}
	}
	for _, s := range turns {
		if turned[s.says("aqueduct.turn.seq")] = true; s.Status.Code != 0 {
			t.Errorf("a turn that failed: %+v", s)
		}
	}
	if !turned["1"] || !turned["2"] || !turned["3"] {
		t.Errorf("turns %v", turned)
	}
	got := outside.got()
	if !strings.HasPrefix(got[0], "00-"+trace+"-") || got[0] == got[1] || got[1] != "00-"+trace+"-"+attempts[0].SpanID+"-01" || attempts[0].says("aqueduct.attempt") != "2" {
		t.Errorf("the called one got %q; the attempt is %+v", got, attempts[0])
	}
	if strings.Contains(spans.bodies.String(), "s3cret-4711") {
		t.Error("what the instance works on was sent")
	}
	if !spans.tokens["Bearer first"] || !spans.tokens["Bearer second"] {
		t.Errorf("headers: %v", spans.tokens)
	}
	if !regexp.MustCompile(`aqueduct_turn_seconds_bucket\{le="[^"]+"\} \d+ # \{trace_id="` + trace + `"\}`).MatchString(metrics) {
		t.Errorf("no exemplar: %s", metrics)
	}
	if strings.Contains(second.said(t), "spans were dropped") {
		t.Errorf("%s", second.said(t))
	}
}

// openMetrics are the metrics of a node in the form that has exemplars.
func openMetrics(t *testing.T, url string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// A receiver that hangs holds nobody up: instances go on, and the node stops in time.
func TestAReceiverThatHangsHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	came, once := make(chan bool, 1), sync.Once{}
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		once.Do(func() { came <- true })
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	t.Cleanup(receiver.Close)
	n := serveApart(t, "n", filepath.Join(t.TempDir(), "a.db"), "--tracing-endpoint", receiver.URL, "--drain-timeout", "1s")
	if _, _, err := n.client.Publish(t.Context(), "a.yaml", []byte("document: {dsl: '1.0.3', namespace: test, name: two, version: 1.0.0}\ndo:\n  - a: {set: {x: 1}}\n  - b: {wait: {milliseconds: 1}}\n")); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if i, _, err := n.client.Start(t.Context(), client.StartRequest{Definition: "test/two"}, time.Minute); err != nil || i.Status != "completed" {
			t.Fatalf("%+v %v", i, err)
		}
	}
	if _, ok := await.Receive(came, func() any { return n.said(t) }); !ok {
		t.Fatal("nothing was sent")
	}
	began := time.Now()
	if err := n.ends(t, syscall.SIGTERM); err != nil {
		t.Fatalf("%v\n%s", err, n.said(t))
	}
	if took := time.Since(began); took < time.Second || took > 2*time.Minute {
		t.Errorf("the node stopped after %s", took)
	}
	if !strings.Contains(n.said(t), "spans were dropped") || !strings.Contains(n.said(t), "reason=stopped") {
		t.Errorf("%s", n.said(t))
	}
}

// A file of headers has a line for each; what is wrong in it is told without its words.
func TestHeadersFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "headers")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	read := headersFile(file)
	_, err := read()
	refused(t, err, "config.unreadable", problem.Invalid)
	write("\ufeff") // nothing but a mark of the order of bytes
	_, err = read()
	refused(t, err, "config.type", problem.Invalid)
	for text, ok := range map[string]bool{"": true, "# A: b\n\n": true, "X-Key: a:b\r\nY: \r\n": true, "Bearer s3cret": false, ": s3cret": false, "X Key: s3cret": false, "X: a\x00s3cret": false} {
		write(text)
		h, err := read()
		if (err == nil) != ok || err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: %v", text, err)
		}
		if strings.HasPrefix(text, "X-Key") && (h.Get("X-Key") != "a:b" || h.Get("Y") != "") {
			t.Errorf("%q: %v", text, h)
		}
	}
	for _, f := range [][]string{
		{"--tracing-headers-file", file}, {"--tracing-endpoint", "collector:4318"}, {"--tracing-endpoint", "http://a:s3cret@h:1"}, {"--tracing-endpoint", "http://h?key=s3cret"},
		{"--tracing-ratio", "1.5"}, {"--tracing-ratio", "-0.1"}, {"--tracing-ratio", "NaN"}, {"--tracing-ratio", "half"},
	} {
		var env []string
		for i := 0; i < len(f); i += 2 {
			env = append(env, "AQUEDUCT_"+strings.ToUpper(strings.ReplaceAll(strings.TrimPrefix(f[i], "--"), "-", "_"))+"="+f[i+1])
		}
		if _, err := config.Load(config.Source{Env: env}); problem.KindOf(err) != problem.Invalid || strings.Contains(fmt.Sprint(err), "s3cret") {
			t.Errorf("%v: %v", f, err)
		}
	}
	if l, err := config.Load(config.Source{Env: []string{"AQUEDUCT_TRACING_ENDPOINT=https://h/base", "AQUEDUCT_TRACING_RATIO=0.001"}}); err != nil || l.Tracing.Ratio != 0.001 {
		t.Errorf("%v", err)
	}
}
