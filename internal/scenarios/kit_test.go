package scenarios_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/aqueducttest"
	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/definition/openworkflow"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/await"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/sql/embedded"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
	"github.com/aqueduct-engine/aqueduct/sql/steps"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// reply is how the outside answers one attempt.
type reply struct {
	body   string // JSON
	status int    // of an HTTP answer; 0 = 200
	err    error  // of a function
	never  bool
}

// kitCase is a program, what the outside answers, and what is done to it.
type kitCase struct {
	do      string             // the rest of the document
	replies map[string][]reply // by function, by go/ and that of a step, or by the path of a POST; the last one stays
	acts    []func(player)     // each when the instance rests
	apart   bool               // branches side by side: their lines are compared without order
}

// player is who plays a program: the kit, or a node.
type player interface {
	event(eventType, data string)
	complete(task, user, outcome, data string)
	operate(op engine.Operation)
	rest() // until only somebody else can go on
	seen() played
}

// played is what came of a program.
type played struct {
	status, output, failure string
	version, position       int64
	lines                   []string // of the stream
	calls                   []string // attempts, as the outside has seen them
}

const kitInput = `{"base": %q, "n": 1}`

// outsideWorld answers by a script, and notes what it is asked.
type outsideWorld struct {
	mu      sync.Mutex
	replies map[string][]reply
	used    map[string]int
}

func (o *outsideWorld) next(name string) reply {
	o.mu.Lock()
	defer o.mu.Unlock()
	list := o.replies[name]
	if len(list) == 0 {
		return reply{err: fmt.Errorf("nobody answers %s", name)}
	}
	r := list[min(o.used[name], len(list)-1)]
	o.used[name]++
	return r
}

// TestKitAndNodeAgree plays the same programs with the same answers in the kit
// for authors and on a node, and compares what came of them: the stream, the
// keys, the attempts, the output.
func TestKitAndNodeAgree(t *testing.T) {
	t.Parallel()
	for name, c := range kitCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNodePlayer(t, c)
			k := newKitPlayer(t, c, n.server.URL)
			var got [2]played
			for i, p := range []player{k, n} {
				p.rest()
				for _, act := range c.acts {
					act(p)
					p.rest()
				}
				got[i] = p.seen()
				if c.apart {
					slices.Sort(got[i].lines)
					slices.Sort(got[i].calls)
				}
			}
			if kit, node := got[0].text(), got[1].text(); kit != node {
				t.Errorf("the kit:\n%s\nthe node:\n%s", kit, node)
			}
		})
	}
}

func (p played) text() string {
	return fmt.Sprintf("%s version %d position %d\noutput %s\nfailure %s\n%s\ncalls\n%s",
		p.status, p.version, p.position, p.output, p.failure, strings.Join(p.lines, "\n"), strings.Join(p.calls, "\n"))
}

// What differs by nature: times, tokens and ids.
var kitNoise = []struct {
	of *regexp.Regexp
	to string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`), "TIME"},
	{regexp.MustCompile(`within \d+(\.\d+)?m?s`), "within TIMEOUT"},
	{regexp.MustCompile(`"(id|source|specversion|taskId|child|signalId)":"[^"]*",?`), ""},
	{regexp.MustCompile(`instance [A-Za-z0-9_.-]+( at [a-z0-9/]+)?`), "instance ID"}, // a stub has no place in a sub-workflow
	{regexp.MustCompile(`snapshot of \d+ bytes`), "snapshot of SIZE"},
	{regexp.MustCompile(`"instanceId":"[^"]*"`), "ID"},
	{regexp.MustCompile(`^[A-Za-z0-9_-]{16}/`), "INCARNATION/"},
	{regexp.MustCompile(`the key [A-Za-z0-9_-]{16}/`), "the key INCARNATION/"},
}

func quiet(s string) string {
	for _, n := range kitNoise {
		s = n.of.ReplaceAllString(s, n.to)
	}
	if strings.Contains(s, "errors/communication") { // in whose words is not said
		s = words.ReplaceAllString(s, "")
	}
	return s
}

var words = regexp.MustCompile(`"(title|detail)":"[^"]*",?`)

// line is an entry as a timeline of the kit has it.
func line(row projections.Entry, m engine.Meta) string {
	l, data := "<- "+row.Type, json.RawMessage(row.Data)
	if row.Direction == string(engine.Out) {
		l = "->" + l[2:]
	}
	if row.Kind == string(engine.KindCommand) {
		var c engine.Command
		if err := json.Unmarshal(row.Data, &c); err != nil {
			return err.Error()
		}
		l, data = l+" "+c.Target, c.Input
	}
	if m.Disposition != "" {
		l += " (" + string(m.Disposition) + ")"
	}
	if m.Pointer != "" {
		l += " at " + m.Pointer
	}
	if m.Actor != "" {
		l += " by " + m.Actor
	}
	if len(data) > 0 && string(data) != "null" {
		l += " " + canonical(data)
	}
	return quiet(l)
}

// canonical is JSON with its keys in order.
func canonical(raw json.RawMessage) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return string(raw)
	}
	b, _ := json.Marshal(v)
	return string(b)
}

func attempted(name string, input json.RawMessage, key string, attempt int) string {
	return fmt.Sprintf("%s %s attempt %d key %s", name, canonical(input), attempt, quiet(key))
}

// kitPlayer is the kit.
type kitPlayer struct {
	t *testing.T
	w *aqueducttest.Workflow
}

func kitDocument(c kitCase) string {
	return "document: {dsl: '1.0.3', namespace: t, name: play, version: '1.0.0'}\n" + c.do
}

func newKitPlayer(t *testing.T, c kitCase, base string) *kitPlayer {
	w := aqueducttest.Text(t, kitDocument(c))
	for name, list := range c.replies {
		on := name
		if strings.HasPrefix(name, "/") {
			on = "POST " + base + name
		}
		s := w.OnCall(on)
		for _, r := range list {
			switch {
			case r.never:
				s.Never()
			case r.status >= 300:
				s.Fail("communication", r.status, "")
			default:
				s.Do(func(aqueducttest.Call) (any, error) { return json.RawMessage(r.body), r.err })
			}
		}
	}
	w.Start(fmt.Sprintf(kitInput, base))
	return &kitPlayer{t, w}
}

func (k *kitPlayer) rest()                       { k.w.Advance(time.Hour) }
func (k *kitPlayer) event(typ, data string)      { k.w.Event(typ, data) }
func (k *kitPlayer) operate(op engine.Operation) { k.w.Operate(op, nil) }
func (k *kitPlayer) complete(task, user, outcome, data string) {
	k.w.Task(task).Claim(user, "staff").Complete(outcome, data)
}

func (k *kitPlayer) seen() played {
	s := k.w.Snapshot()
	p := played{status: string(s.Status), output: quiet(canonical(s.State.Output)), version: s.Version, position: s.Position, failure: failureText(s)}
	for l := range strings.Lines(k.w.Timeline()) {
		_, l, _ = strings.Cut(strings.TrimSpace(l), " ")
		if i := strings.IndexAny(l, "{["); i > 0 {
			l = l[:i] + canonical(json.RawMessage(l[i:]))
		}
		p.lines = append(p.lines, quiet(strings.TrimSpace(l)))
	}
	for _, c := range k.w.Calls("") {
		if strings.HasPrefix(c.Name, "go/") {
			c.Input, c.Key = nil, ""
		}
		if !strings.HasPrefix(c.Name, "run ") && c.Name != engine.TargetEvent {
			_, path, ok := strings.Cut(c.Name, "//")
			if ok {
				_, path, _ = strings.Cut(path, "/")
				c.Name, c.Input, c.Attempt = "/"+path, c.Body(), 0 // the outside does not see which it is
			}
			p.calls = append(p.calls, attempted(c.Name, c.Input, c.Key, c.Attempt))
		}
	}
	return p
}

func failureText(s snapshot.Snapshot) string {
	if s.Error == nil {
		return ""
	}
	b, _ := json.Marshal(s.Error) // plain data cannot fail
	return quiet(canonical(b))
}

// nodePlayer is a node on a file.
type nodePlayer struct {
	t      *testing.T
	db     *embedded.Store
	rt     *runtime.Runtime
	world  *outsideWorld
	server *httptest.Server

	mu    sync.Mutex
	calls []string
}

func newNodePlayer(t *testing.T, c kitCase) *nodePlayer {
	t.Helper()
	n := &nodePlayer{t: t, world: &outsideWorld{replies: c.replies, used: map[string]int{}}}
	stopped := make(chan struct{})
	n.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		n.note(attempted(r.URL.Path, body, r.Header.Get("Idempotency-Key"), 0))
		a := n.world.next(r.URL.Path)
		if a.never {
			select {
			case <-r.Context().Done():
			case <-stopped:
			}
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if a.status != 0 {
			w.WriteHeader(a.status)
		}
		if a.status < 300 {
			_, _ = io.WriteString(w, a.body)
		}
	}))
	t.Cleanup(n.server.Close)
	t.Cleanup(func() { close(stopped) })
	var err error
	file := t.TempDir() + "/a.db"
	if n.db, err = embedded.Open(t.Context(), sqlite.Options{Path: file, Perform: embedded.Steps(n.steps(c))}); err != nil {
		t.Fatal(err)
	}
	cat := definition.New(n.db, openworkflow.Parsers(), time.Now)
	for _, doc := range []string{kitDocument(c), kitChild, kitBadChild} {
		if _, _, err := cat.Publish(t.Context(), "d.yaml", []byte(doc)); err != nil {
			t.Fatal(err)
		}
	}
	timeout := time.Minute
	for _, list := range c.replies {
		if slices.ContainsFunc(list, func(r reply) bool { return r.never }) {
			timeout = time.Second
		}
	}
	performer := activity.New(activity.Config{
		Timeout: timeout, Policy: activity.Policy{Initial: time.Millisecond, Max: 2 * time.Millisecond},
		Egress: activity.Egress{Allow: []string{"127.0.0.1"}},
	})
	for name := range c.replies {
		if !strings.Contains(name, "/") {
			performer.Register(name, n.function(name))
		}
	}
	performer.Register(engine.TargetEvent, func(context.Context, json.RawMessage) (any, error) { return nil, nil })
	if n.rt, err = runtime.New(t.Context(), runtime.Config{Store: n.db.Parts(), Definitions: cat, Performer: performer, BreakAfter: 1000}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- n.rt.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-done, n.db.Close(), testdb.Remade(context.Background(), file)); err != nil {
			t.Error(err)
		}
	})
	start := signal.Start{Definition: "t/play", Input: json.RawMessage(fmt.Sprintf(kitInput, n.server.URL))}
	if _, _, err := n.rt.Start(t.Context(), aqueducttest.InstanceID, start, nil); err != nil {
		t.Fatal(err)
	}
	return n
}

func (n *nodePlayer) note(call string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls = append(n.calls, call)
}

func (n *nodePlayer) function(name string) activity.Func {
	return func(ctx context.Context, input json.RawMessage) (any, error) {
		info := activity.Info(ctx)
		n.note(attempted(name, input, info.Key, info.Number))
		a := n.world.next(name)
		if a.never {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return json.RawMessage(a.body), a.err
	}
}

// steps are those in Go, in the transaction of the turn, which are not told their keys.
func (n *nodePlayer) steps(c kitCase) *steps.Set {
	set := &steps.Set{}
	for name := range c.replies {
		if function, ok := strings.CutPrefix(name, "go/"); ok {
			set.Register(function, func(context.Context, steps.Tx, json.RawMessage) (any, error) {
				n.note(attempted(name, nil, "", 1))
				a := n.world.next(name)
				return json.RawMessage(a.body), a.err
			})
		}
	}
	return set
}

// rest waits until the instance has ended or faulted, or waits for others only.
func (n *nodePlayer) rest() {
	n.t.Helper()
	var w await.Wait
	for {
		s, err := n.db.Load(n.t.Context(), aqueducttest.InstanceID)
		if err != nil {
			n.t.Fatal(err)
		}
		if s.Status.Closed() || s.Status == snapshot.Faulted || !slices.ContainsFunc(s.Waits, func(w snapshot.Wait) bool {
			return w.Kind != snapshot.WaitEvent && w.Kind != snapshot.WaitTask
		}) {
			return
		}
		if !w.Again(2*time.Millisecond, s.Version) {
			n.t.Fatalf("no rest: %s %+v", s.Status, s.Waits)
		}
	}
}

func (n *nodePlayer) event(typ, data string) {
	n.t.Helper()
	body := fmt.Sprintf(`{"specversion":"1.0","id":"e","source":"s","type":%q,"time":"2026-01-01T00:00:00Z","data":%s}`, typ, data)
	before, err := n.db.Load(n.t.Context(), aqueducttest.InstanceID)
	if err != nil {
		n.t.Fatal(err)
	}
	if fits, err := n.rt.PublishEvent(n.t.Context(), json.RawMessage(body), nil); err != nil || fits != 1 {
		n.t.Fatalf("event %s fits %d waits, %v", typ, fits, err)
	}
	await.Until(n.t, "event "+typ, func() (bool, any) {
		s, err := n.db.Load(n.t.Context(), aqueducttest.InstanceID)
		return err == nil && s.Version > before.Version, err
	})
}

func (n *nodePlayer) operate(op engine.Operation) {
	n.t.Helper()
	if _, err := n.rt.Operate(n.t.Context(), aqueducttest.InstanceID, op, nil, ""); err != nil {
		n.t.Fatal(err)
	}
}

func (n *nodePlayer) complete(task, user, outcome, data string) {
	n.t.Helper()
	page, err := n.db.Parts().Tasks.Tasks(n.t.Context(), backend.TaskQuery{})
	if err != nil || len(page.Items) != 1 {
		n.t.Fatalf("tasks %+v, %v; want one, %s", page, err, task)
	}
	id := page.Items[0].ID
	if _, err := n.rt.ClaimTask(n.t.Context(), id, user, []string{"staff"}); err != nil {
		n.t.Fatal(err)
	}
	if _, err := n.rt.CompleteTask(n.t.Context(), id, user, []string{"staff"}, outcome, json.RawMessage(data)); err != nil {
		n.t.Fatal(err)
	}
}

func (n *nodePlayer) seen() played {
	n.t.Helper()
	s, err := n.db.Load(n.t.Context(), aqueducttest.InstanceID)
	if err != nil {
		n.t.Fatal(err)
	}
	rows, err := n.db.Parts().Streams.Stream(n.t.Context(), aqueducttest.InstanceID, -1, 1000)
	if err != nil {
		n.t.Fatal(err)
	}
	p := played{status: string(s.Status), output: quiet(canonical(s.State.Output)), version: s.Version, position: s.Position, failure: failureText(s)}
	for _, row := range rows {
		var m engine.Meta
		if len(row.Metadata) > 0 {
			if err := json.Unmarshal(row.Metadata, &m); err != nil {
				n.t.Fatal(err)
			}
		}
		p.lines = append(p.lines, line(row, m))
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	p.calls = slices.Clone(n.calls)
	return p
}
