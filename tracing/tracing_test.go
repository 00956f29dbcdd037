package tracing_test

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/definition/openworkflow"
	"github.com/aqueduct-engine/aqueduct/internal/await"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
	"github.com/aqueduct-engine/aqueduct/tracing"
)

const planted = "s3cret-4711"

// node is a node that is traced, and the spans that it has made.
type node struct {
	*runtime.Runtime
	catalogue *definition.Catalogue

	mu    sync.Mutex
	spans []tracing.Span
}

func (n *node) record(spans ...tracing.Span) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.spans = append(n.spans, spans...)
}

// named are the spans whose names begin so, in the order in which they were made.
func (n *node) named(prefix string) (list []tracing.Span) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range n.spans {
		if strings.HasPrefix(s.Name, prefix) {
			list = append(list, s)
		}
	}
	return list
}

// begin has a node work on a store of its own; change may change the node before.
func begin(t *testing.T, ratio float64, change func(*backend.Parts)) *node {
	return beginAt(t, filepath.Join(t.TempDir(), "a.db"), ratio, change)
}

func beginAt(t *testing.T, at string, ratio float64, change func(*backend.Parts)) *node {
	t.Helper()
	db, err := testdb.Open(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	parts := db.Parts
	if change != nil {
		change(&parts)
	}
	key, err := parts.Identity.Key(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n := &node{catalogue: definition.New(db, openworkflow.Parsers(), time.Now)}
	performer := activity.New(activity.Config{Policy: activity.Policy{Initial: time.Millisecond}})
	tracer := tracing.New(tracing.Config{Key: key, Ratio: ratio, System: "aqueduct", Sink: n.record, Now: time.Now})
	n.Runtime, err = runtime.New(t.Context(), runtime.Config{
		Store: parts, Definitions: n.catalogue, Performer: tracer.Performer(performer), Traces: tracer,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		performer.Close()
		db.Close()
	})
	return n
}

func (n *node) publish(t *testing.T, document string) {
	t.Helper()
	if _, _, err := n.catalogue.Publish(t.Context(), "a.yaml", []byte(document)); err != nil {
		t.Fatal(err)
	}
}

func (n *node) start(t *testing.T, name string, input any, headers map[string]string) string {
	t.Helper()
	raw, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	id, _, err := n.Start(t.Context(), "", signal.Start{Definition: "test/" + name, Input: raw}, headers)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// reaches waits until an instance has a status.
func (n *node) reaches(t *testing.T, id string, status snapshot.Status) {
	t.Helper()
	await.Until(t, id, func() (bool, any) {
		s, err := n.Store.Writer.Load(t.Context(), id)
		return err == nil && s.Status == status, s.Status
	})
}

// What a node performs is known to the others, also where its attempts are traced.
func TestOthersKnowWhatATracedNodePerforms(t *testing.T) {
	t.Parallel()
	n := begin(t, 1, nil)
	await.Until(t, "its targets", func() (bool, any) {
		all, err := n.Store.Functions.Declared(t.Context())
		return err == nil && slices.Contains(all, activity.TargetHTTP), fmt.Sprint(all, err)
	})
}

// bank answers 503 first, then 200, and keeps the headers that it gets.
type bank struct {
	mu      sync.Mutex
	headers []http.Header
}

func (b *bank) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	b.headers = append(b.headers, r.Header)
	n := len(b.headers)
	b.mu.Unlock()
	_, _ = io.Copy(io.Discard, r.Body)
	if n == 1 {
		http.Error(w, "not yet: "+planted, http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"token":%q}`, planted)
}

func (b *bank) traceparents() (list []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, h := range b.headers {
		list = append(list, h.Get("Traceparent"))
	}
	return list
}

const paying = `document: {dsl: '1.0.3', namespace: test, name: pay, version: 1.0.0}
do:
  - charge:
      call: http
      with: {method: post, endpoint: '${ .to }', body: '${ . }', headers: {X-Key: '${ .key }'}}
  - paid:
      listen: {to: {one: {with: {type: paid}}}}
`

func text(s tracing.Span, key string) string {
	for _, a := range s.Attributes {
		if a.Key == key && a.IsText {
			return a.Text
		}
	}
	return ""
}

func number(s tracing.Span, key string) int64 {
	for _, a := range s.Attributes {
		if a.Key == key && !a.IsText {
			return a.Number
		}
	}
	return -1
}

func traceparent(s tracing.Span, flags string) string {
	return "00-" + hex.EncodeToString(s.Trace[:]) + "-" + hex.EncodeToString(s.ID[:]) + "-" + flags
}

// An instance is one trace: its start and its end without length, each turn that was
// committed once, each attempt with an id of its own, which the outside gets.
func TestAnInstanceIsOneTrace(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) { isOneTrace(t, fresh()) })
}

func isOneTrace(t *testing.T, at string) {
	t.Helper()
	n, outside := beginAt(t, at, 1, nil), &bank{}
	server := httptest.NewServer(outside)
	t.Cleanup(server.Close)
	n.publish(t, paying)
	id := n.start(t, "pay", map[string]string{"to": server.URL + "/" + planted, "key": planted}, map[string]string{signal.HeaderActor: planted})
	await.Until(t, "charged", func() (bool, any) { got := len(n.named("POST")); return got == 2, got })
	sender := "00-" + strings.Repeat("cd", 16) + "-" + strings.Repeat("1", 16) + "-01"
	if _, err := n.Signal(t.Context(), signal.Envelope{
		SignalID: "paid-1", InstanceID: id, RuntimeProvider: signal.Provider, Type: signal.ExternalSignal, OccurredAt: time.Now(),
		Headers: map[string]string{signal.HeaderTraceparent: sender}, Payload: json.RawMessage(`{"type":"paid","data":"` + planted + `"}`),
	}); err != nil {
		t.Fatal(err)
	}
	n.reaches(t, id, snapshot.Completed)
	await.Until(t, "its end", func() (bool, any) { got := len(n.named("end ")); return got == 1, got })

	starts, ends, attempts := n.named("start "), n.named("end "), n.named("POST")
	turns := slices.Concat(n.named("turn"), n.named("process "))
	slices.SortFunc(turns, func(a, b tracing.Span) int {
		return int(number(a, "aqueduct.turn.seq") - number(b, "aqueduct.turn.seq"))
	})
	if len(starts) != 1 || len(ends) != 1 || len(attempts) != 2 {
		t.Fatalf("%d starts, %d ends, %d attempts", len(starts), len(ends), len(attempts))
	}
	start := starts[0]
	if start.Parent != [8]byte{} || !start.Start.Equal(start.End) || !ends[0].Start.Equal(ends[0].End) || ends[0].Parent != start.ID {
		t.Errorf("anchors: %+v %+v", start, ends[0])
	}
	snap, err := n.Store.Writer.Load(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if want := traceparent(start, "01"); snap.Headers[signal.HeaderTraceparent] != want {
		t.Errorf("the instance has the traceparent %q, want %q", snap.Headers[signal.HeaderTraceparent], want)
	}
	if int64(len(turns)) != snap.Version {
		t.Errorf("%d spans of %d turns", len(turns), snap.Version)
	}
	for i, s := range turns {
		if number(s, "aqueduct.turn.seq") != int64(i+1) || s.Failed || s.End.Before(s.Start) {
			t.Errorf("turn %d: %+v", i+1, s)
		}
	}
	ids := map[[8]byte]bool{}
	for _, s := range slices.Concat(starts, ends, attempts, turns) {
		if s.Trace != start.Trace || ids[s.ID] || s.Name != start.Name && s.Parent != start.ID {
			t.Errorf("not of the trace, not its own id, or another parent: %+v", s)
		}
		if ids[s.ID] = true; text(s, "aqueduct.instance.id") != id {
			t.Errorf("of no instance: %+v", s)
		}
		if strings.Contains(fmt.Sprintf("%+v", s), planted) {
			t.Errorf("has what it must not have: %+v", s)
		}
	}
	if got, want := outside.traceparents(), []string{traceparent(attempts[0], "01"), traceparent(attempts[1], "01")}; !slices.Equal(got, want) {
		t.Errorf("the outside got %q, want %q", got, want)
	}
	if a := attempts[0]; !a.Failed || text(a, "error.type") != "503" || number(a, "http.response.status_code") != 503 || number(a, "aqueduct.attempt") != 1 || a.Kind != tracing.Client {
		t.Errorf("the attempt that failed: %+v", a)
	}
	if a := attempts[1]; a.Failed || number(a, "http.response.status_code") != 200 || text(a, "server.address") != "127.0.0.1" || text(a, "aqueduct.task") != "/do/0/charge" {
		t.Errorf("the attempt that did not: %+v", a)
	}
	answered := func(s tracing.Span) bool {
		return slices.Contains(s.Links, tracing.Link{Trace: start.Trace, ID: attempts[1].ID})
	}
	sent := func(s tracing.Span) bool {
		return slices.ContainsFunc(s.Links, func(l tracing.Link) bool { return hex.EncodeToString(l.Trace[:]) == strings.Repeat("cd", 16) })
	}
	if !slices.ContainsFunc(turns, answered) || !slices.ContainsFunc(turns, sent) {
		t.Errorf("no turn is linked to the attempt that it has the result of, or to who has sent its signal: %+v", turns)
	}
}

// Who starts an instance and is traced says in which trace it is, and whether it is
// sampled; an author who sets the header has it.
func TestACallerSaysWhichTrace(t *testing.T) {
	t.Parallel()
	trace, span := strings.Repeat("ab", 16), strings.Repeat("2", 16)
	for flags, sampled := range map[string]bool{"01": true, "00": false, "03": true} {
		n, outside := begin(t, 0, nil), &bank{headers: make([]http.Header, 1)}
		server := httptest.NewServer(outside)
		t.Cleanup(server.Close)
		n.publish(t, paying)
		id := n.start(t, "pay", map[string]string{"to": server.URL, "key": "k"}, map[string]string{signal.HeaderTraceparent: "00-" + trace + "-" + span + "-" + flags})
		await.Until(t, "charged", func() (bool, any) { got := len(outside.traceparents()); return got == 2, got })
		got := outside.traceparents()[1]
		want := "00"
		if sampled {
			want = "01"
		}
		if !strings.HasPrefix(got, "00-"+trace+"-") || strings.Contains(got, span) || !strings.HasSuffix(got, "-"+want) {
			t.Errorf("flags %s: the outside got %q", flags, got)
		}
		s, err := n.Store.Writer.Load(t.Context(), id)
		if err != nil || s.Headers[signal.HeaderTraceparent] != "00-"+trace+"-"+span+"-"+flags {
			t.Errorf("the instance has %v, %v", s.Headers, err)
		}
		starts := n.named("start ")
		if !sampled && len(n.named("")) > 0 {
			t.Errorf("spans of what is not sampled: %+v", n.named(""))
		}
		if sampled && (len(starts) != 1 || hex.EncodeToString(starts[0].Parent[:]) != span || hex.EncodeToString(starts[0].Trace[:]) != trace) {
			t.Errorf("the start: %+v", starts)
		}
	}
	n, outside := begin(t, 1, nil), &bank{headers: make([]http.Header, 1)}
	server := httptest.NewServer(outside)
	t.Cleanup(server.Close)
	n.publish(t, strings.ReplaceAll(strings.Replace(paying, "X-Key", "Traceparent", 1), "name: pay", "name: own"))
	n.start(t, "own", map[string]string{"to": server.URL, "key": "00-1"}, nil)
	await.Until(t, "charged", func() (bool, any) { got := len(outside.traceparents()); return got == 2, got })
	if got := outside.traceparents()[1]; got != "00-1" {
		t.Errorf("the author's header is %q", got)
	}
}

// faulty is a store whose commits fail as they are told to.
type faulty struct {
	store.Writer
	mu   sync.Mutex
	errs []error
}

func (f *faulty) Commit(ctx context.Context, c store.Change) error {
	f.mu.Lock()
	var err error
	if c.Snapshot != nil && len(f.errs) > 0 {
		err, f.errs = f.errs[0], f.errs[1:]
	}
	f.mu.Unlock()
	if err != nil {
		return err
	}
	return f.Writer.Commit(ctx, c)
}

// A turn that was not committed is a span of an error, and none of a success.
func TestATurnThatIsNotCommittedIsAnError(t *testing.T) {
	t.Parallel()
	f := &faulty{errs: []error{store.ErrStale, nil, store.ErrStale, store.ErrStale}}
	n := begin(t, 1, func(p *backend.Parts) { f.Writer, p.Writer = p.Writer, f })
	n.publish(t, "document: {dsl: '1.0.3', namespace: test, name: hear, version: 1.0.0}\ndo:\n  - paid: {listen: {to: {one: {with: {type: paid}}}}}\n")
	id := n.start(t, "hear", nil, nil)
	say := func(kind string) error {
		_, err := n.Signal(t.Context(), signal.Envelope{
			SignalID: kind, InstanceID: id, RuntimeProvider: signal.Provider, Type: signal.ExternalSignal, OccurredAt: time.Now(), Payload: json.RawMessage(`{"type":"` + kind + `"}`),
		})
		return err
	}
	if err := say("paid"); err != nil {
		t.Fatal(err)
	}
	n.reaches(t, id, snapshot.Completed)
	var kinds []string
	for _, s := range slices.Concat(n.named("turn"), n.named("process ")) {
		kinds = append(kinds, fmt.Sprintf("%d %s", number(s, "aqueduct.turn.seq"), text(s, "error.type")))
	}
	if want := []string{"-1 stale", "1 ", "-1 stale", "-1 stale", "2 "}; !slices.Equal(kinds, want) {
		t.Errorf("turns: %q, want %q", kinds, want)
	}
	if got := len(n.named("start ")) + len(n.named("end ")); got != 2 {
		t.Errorf("%d anchors", got)
	}
}
