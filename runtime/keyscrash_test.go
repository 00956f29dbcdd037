package runtime_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

var (
	keyPrograms = flag.Int("key-programs", 3, "how many random programs TestKeysSurviveCrashes crashes")
	keySeed     = flag.Uint64("key-seed", 0, "seed of its first program; 0 = from the clock")
	keyPoints   = flag.Int("key-points", 8, "how many of a program's durable operations it stops at; 0 = all")
)

// payer writes random programs. The body of each call says which effect it is:
// where in the program it stands, and in which rounds of the loops around it.
type payer struct {
	*rand.Rand
	bytes.Buffer
	n     int
	fails int  // answers that an undisturbed run does not get, about
	saga  bool // it has compensations, and calls that fail for good; else calls that an operator has to retry
	child bool
}

// programOf is the program of a seed, and the sub-workflow of it, and about how many
// calls of an undisturbed run fail.
func programOf(seed uint64) (documents []string, fails int) {
	p := &payer{Rand: rand.New(rand.NewPCG(seed, 7)), saga: seed%2 == 0}
	p.WriteString("document: {dsl: '1.0.3', namespace: t, name: crash, version: '1.0.0'}\ndo:\n")
	p.list(1, 2, false, nil)
	if p.saga && p.IntN(2) == 0 { // what is compensated is not done again
		p.line(1, "- doomed: {call: effect, with: {at: doomed, is: doomed}}")
	}
	c := &payer{Rand: p.Rand, child: true}
	c.WriteString("document: {dsl: '1.0.3', namespace: t, name: crash-child, version: '1.0.0'}\ndo:\n")
	c.list(1, 1, false, nil)
	return []string{p.String(), c.String()}, p.fails + c.fails
}

func (p *payer) line(indent int, format string, args ...any) {
	fmt.Fprintf(p, strings.Repeat("  ", indent)+format+"\n", args...)
}

// list writes tasks; retried says that a retry may run them again, vars are of
// the loops around them.
func (p *payer) list(indent, depth int, retried bool, vars []string) {
	for range 2 + p.IntN(2) {
		p.task(indent, depth, retried, vars)
	}
}

func (p *payer) task(indent, depth int, retried bool, vars []string) {
	p.n++
	name := fmt.Sprintf("t%d", p.n)
	if p.child {
		name = fmt.Sprintf("c%d", p.n)
	}
	p.line(indent, "- %s:", name)
	kinds := 6
	if depth == 0 {
		kinds = 1
	}
	switch kind := p.IntN(kinds); {
	case kind == 1:
		p.line(indent+2, "fork:")
		p.line(indent+3, "branches:")
		p.task(indent+4, depth-1, retried, vars)
		p.task(indent+4, depth-1, retried, vars)
		p.line(indent+2, "output: {as: '$input'}")
	case kind == 2:
		v := fmt.Sprintf("x%d", p.n)
		p.line(indent+2, "for: {each: %s, in: '[1, 2]'}", v)
		p.line(indent+2, "do:")
		p.list(indent+3, depth-1, retried, append(slices.Clone(vars), v))
	case kind == 3 || kind == 4:
		p.line(indent+2, "try:")
		p.list(indent+3, depth-1, true, vars)
		p.line(indent+2, "catch:")
		p.line(indent+3, "errors: {with: {status: 500}}")
		p.line(indent+3, "retry: {delay: PT0.01S, limit: {attempt: {count: 200}}}")
	case kind == 5 && !retried && !p.child && (p.saga || indent == 1): // a sub-workflow that is retried is another instance
		p.line(indent+2, "run: {workflow: {namespace: t, name: crash-child, input: {of: %s}}}", at(name, vars))
		p.line(indent+2, "output: {as: '$input'}")
	default:
		p.call(indent, name, retried, vars)
	}
}

// at says, in an expression, which task it is, and in which rounds of loops.
func at(name string, vars []string) string {
	for _, v := range vars {
		name += `-\($` + v + `)`
	}
	return `'${ "` + name + `" }'`
}

func (p *payer) call(indent int, name string, retried bool, vars []string) {
	is := []string{"well", "well", "flaky", "lost", "tired"}[p.IntN(5)]
	if is == "tired" && (p.saga || p.child || retried) {
		is = "flaky"
	}
	p.fails += map[string]int{"flaky": 2, "lost": 1, "tired": 8}[is] << len(vars)
	of := ""
	if p.child {
		of = ", of: '${ $workflow.input.of }'"
	}
	p.line(indent+2, "call: effect")
	p.line(indent+2, "with: {at: %s, is: %s%s}", at(name, vars), is, of)
	p.line(indent+2, "output: {as: '$input'}")
	if p.saga && p.IntN(2) == 0 {
		p.line(indent+2, "metadata: {compensate: {call: effect, with: {undo: %s, is: %s}}}", at(name, vars), []string{"well", "flaky", "lost"}[p.IntN(3)])
	}
}

// till is an outside that pays: it remembers every effect with its key, and is
// not always well afterwards.
type till struct {
	mu    sync.Mutex
	body  map[string]string // by key
	key   map[string]string // by body: which effect it is
	asked map[string]int    // by body
	wrong []string
}

func (l *till) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return // its sender was killed
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	key, body := r.Header.Get("Idempotency-Key"), string(raw)
	if before, ok := l.body[key]; ok && before != body || key == "" {
		l.wrong = append(l.wrong, fmt.Sprintf("key %q has two bodies: %s and %s", key, before, body))
	}
	if before, ok := l.key[body]; ok && before != key {
		l.wrong = append(l.wrong, fmt.Sprintf("effect %s has two keys: %s and %s", body, before, key))
	}
	l.body[key], l.key[body] = body, key
	l.asked[body]++
	var is struct{ Is string }
	_ = json.Unmarshal(raw, &is) // what is no JSON is well
	switch times := l.asked[body]; {
	case is.Is == "doomed":
		w.WriteHeader(http.StatusGone)
	case is.Is == "flaky" && times <= 2, is.Is == "tired" && times <= 8:
		w.WriteHeader(http.StatusServiceUnavailable)
	case is.Is == "lost" && times == 1:
		panic(http.ErrAbortHandler) // it was done, and nobody hears of it
	default:
		fmt.Fprint(w, "{}")
	}
}

// effects are what was done, each once.
func (l *till) effects() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(slices.Sorted(func(yield func(string) bool) {
		for body := range l.key {
			if !yield(body) {
				return
			}
		}
	}), "\n")
}

// paying is the function "effect" of a node: it fails as the outside says.
func paying(url string) activity.Func {
	return func(ctx context.Context, input json.RawMessage) (any, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(input))
		if err != nil {
			return nil, err
		}
		req.Header.Set("Idempotency-Key", activity.Info(ctx).Key)
		req.GetBody = nil // the client would send it again by itself
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		switch resp.StatusCode {
		case http.StatusOK:
			return nil, nil
		case http.StatusGone:
			return nil, &activity.Error{Status: http.StatusGone}
		}
		return nil, errors.New(resp.Status)
	}
}

// payChild is a node that brings the program of AQUEDUCT_TEST_SEED to its end.
func payChild() int {
	seed, err := strconv.ParseUint(os.Getenv("AQUEDUCT_TEST_SEED"), 10, 64)
	if err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		return 1
	}
	documents, _ := programOf(seed)
	return crashChildWith(drivePays, paying(os.Getenv("AQUEDUCT_TEST_URL")), documents...)
}

// drivePays plays the operator, who retries what has faulted, unless it was
// compensated.
func drivePays(ctx context.Context, n *testNode) error {
	if _, _, err := n.rt.Start(ctx, "i", signal.Start{Definition: "t/crash", Input: json.RawMessage(`{}`)}, nil); err != nil {
		return err
	}
	for ctx.Err() == nil {
		s, err := n.store.Writer.Load(ctx, "i")
		switch {
		case err != nil:
			return err
		case s.Status == snapshot.Completed, s.Status == snapshot.Compensated:
			return nil
		case s.Status == snapshot.Faulted && s.Error.Status == http.StatusGone:
			return nil // nothing to compensate
		case s.Status == snapshot.Faulted:
			if _, err := n.rt.Operate(ctx, "i", engine.Retry, nil, "ann"); err != nil {
				return err
			}
		}
		time.Sleep(time.Millisecond) // between two looks at the database
	}
	return ctx.Err()
}

// pays runs nodes on one file, each killed at its operation, and one to the end.
func pays(t *testing.T, place string, seed uint64, kills ...string) (told string, operations int64) {
	t.Helper()
	l := &till{body: map[string]string{}, key: map[string]string{}, asked: map[string]int{}}
	srv := httptest.NewServer(l)
	defer srv.Close()
	of := fmt.Sprintf("AQUEDUCT_TEST_SEED=%d", seed)
	for _, kill := range kills {
		at, after, _ := strings.Cut(kill, " ")
		cmd := child(t, "pays", place, srv.URL, of, "AQUEDUCT_TEST_AT="+at, "AQUEDUCT_TEST_AFTER="+after)
		_ = cmd.Run() // killed, or done before
	}
	out, err := child(t, "pays", place, srv.URL, of).Output()
	if err != nil {
		t.Errorf("the last node: %v", err)
	}
	operations, _ = strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	for _, w := range l.wrong {
		t.Error(w)
	}
	if err := testdb.Verify(t.Context(), place); err != nil {
		t.Error(err)
	}
	st, err := testdb.Open(t.Context(), place)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	s := must(st.Writer.Load(t.Context(), "i"))
	return fmt.Sprintf("%s with %s\n%s", s.Status, s.State.Output, l.effects()), operations
}

// TestKeysSurviveCrashes runs random programs with forks, loops, retries,
// compensations and sub-workflows, whose calls fail or lose their answers after
// they were done, and kills their nodes twice, before and after durable
// operations: no effect has two keys, no key two bodies, and what was done is
// what an undisturbed run does.
func TestKeysSurviveCrashes(t *testing.T) {
	t.Parallel()
	first := *keySeed
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		programs, points, seed := uint64(*keyPrograms), *keyPoints, first
		if strings.HasSuffix(t.Name(), "oracle") || testing.Short() {
			programs, points = 1, 3
			for *keySeed == 0 { // each repeat waits for a second there
				if _, fails := programOf(seed); fails <= 16 {
					break
				}
				seed++
			}
		}
		for last := seed + programs; seed < last; seed++ {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				paysThroughCrashes(t, fresh, seed, points)
			})
		}
	})
}

func paysThroughCrashes(t *testing.T, fresh func() string, seed uint64, points int) {
	rnd := rand.New(rand.NewPCG(seed, 9))
	documents, _ := programOf(seed)
	program := strings.Join(documents, "---\n")
	want, operations := pays(t, fresh(), seed)
	if operations < 4 || t.Failed() {
		t.Fatalf("seed %d: the undisturbed run of %d operations gives %s\n%s", seed, operations, want, program)
	}
	all := make([]int, operations)
	for i := range all {
		all[i] = i + 1
	}
	rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	if points > 0 {
		all = all[:min(points, len(all))]
	}
	for _, k := range all {
		first := fmt.Sprintf("%d %s", k, []string{"", "1"}[rnd.IntN(2)])
		second := fmt.Sprintf("%d %s", 1+rnd.IntN(int(operations)), []string{"", "1"}[rnd.IntN(2)])
		if got, _ := pays(t, fresh(), seed, first, second); got != want {
			t.Errorf("killed at %q, then %q:\n got %s\nwant %s", first, second, got, want)
		}
		if t.Failed() {
			t.Fatalf("seed %d, killed at %q, then %q\n%s", seed, first, second, program)
		}
	}
	t.Logf("%d effects, %d operations, stopped twice at %d of them", strings.Count(want, "\n"), operations, len(all))
}
