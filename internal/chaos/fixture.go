package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/aqueduct-engine/aqueduct/internal/chaos/judge"
	"github.com/aqueduct-engine/aqueduct/internal/nodes"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
)

// fixture is everything of one run: a database, nodes on it, clients, and the world
// outside.
type fixture struct {
	place   place
	program string
	logs    string
	http    *http.Client
	slots   []*slot
	seen    *calls
	a, b    *outside
	version int // of the definitions

	database sync.Mutex                   // held by what troubles it
	looked   func() (held int, err error) // ends the watch of the invariants

	mu         sync.Mutex
	works      []*work
	counts     map[string]int
	unfinished []string        // what nodes show of works that are not over
	problems   []string        // what is wrong beside the history: invariants, clients that were refused
	generation context.Context // ends when a backup is restored
	forget     context.CancelFunc
	saved      time.Time // when the backup was made
}

func newFixture(p place, program, dir string, o options) *fixture {
	b := &fixture{
		place: p, program: program, logs: dir, counts: map[string]int{},
		seen: &calls{applied: map[[2]string]int{}, came: map[[2]string]chan struct{}{}},
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}},
	}
	b.generation, b.forget = context.WithCancel(context.Background())
	b.a, b.b = newOutside(b.seen), newOutside(b.seen)
	for _, o := range []*outside{b.a, b.b} {
		o.server.Config.ErrorLog = log.New(io.Discard, "", 0) // of aborted handlers
	}
	for i := range o.nodes {
		s, err := newSlot(program, p.url(), fmt.Sprintf("n%d", i), dir, o.memory, p.inMemory())
		if err != nil {
			fmt.Printf("chaos: %s: THE KERNEL DOES NOT ENFORCE THE MEMORY of node %d, which is told its limit and sampled: %s\n", o.store, i, err)
		}
		b.slots = append(b.slots, s)
	}
	return b
}

func (b *fixture) count(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.counts[what]++
}

func (b *fixture) wrong(text string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.problems = append(b.problems, fmt.Sprintf(text, args...))
}

// someNode is the address of a node that runs, by a random number; "" for
// none.
func (b *fixture) someNode(n int) string {
	var up []string
	for _, s := range b.slots {
		if n := s.now(); n != nil {
			up = append(up, n.URL)
		}
	}
	if len(up) == 0 {
		return ""
	}
	return up[n%len(up)]
}

// begin notes that a client begins with a work.
func (b *fixture) begin(id, kind string) (*work, context.Context) {
	b.mu.Lock()
	defer b.mu.Unlock()
	w := &work{Work: judge.Work{ID: id, Kind: kind, Asked: time.Now(), Wants: wants(kind), Event: kind == listening}}
	b.works = append(b.works, w)
	return w, b.generation
}

// end notes that a client has done its part of a work, or has given it up.
func (b *fixture) end(w *work, err error) {
	w.mu.Lock()
	w.done = err == nil
	w.mu.Unlock()
	switch {
	case err == nil || errors.Is(err, errVoid):
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		b.count("given up")
	default:
		b.wrong("client of %s: %s", w.ID, err)
	}
}

// open is how many works their clients are at.
func (b *fixture) open() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, w := range b.works {
		w.mu.Lock()
		if !w.done && !w.Void {
			n++
		}
		w.mu.Unlock()
	}
	return n
}

// deploy publishes the next version of every definition, or the first.
func (b *fixture) deploy(ctx context.Context) error {
	list := kinds
	if b.version > 0 {
		list = kinds[1:] // a leaf is started by its version
	}
	for _, kind := range list {
		if err := b.publish(ctx, kind, b.version); err != nil {
			return err
		}
	}
	b.version++
	return nil
}

func (b *fixture) publish(ctx context.Context, kind string, version int) error {
	text := source(kind, version, b.a.server.URL, b.b.server.URL)
	var last error
	for try := 0; ctx.Err() == nil; try++ {
		if try > 0 {
			time.Sleep(100 * time.Millisecond)
		}
		base := b.someNode(try)
		if base == "" {
			continue
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/v1/definitions", strings.NewReader(text))
		if err != nil {
			return err
		}
		r.Header.Set("Content-Type", "application/yaml")
		resp, err := b.http.Do(r)
		if err != nil {
			last = err
			continue
		}
		raw, _ := io.ReadAll(resp.Body) // of an answer whose status counts
		resp.Body.Close()
		if resp.StatusCode < 300 {
			return nil
		}
		if resp.StatusCode < 500 {
			return fmt.Errorf("publish %s: %d: %s\n%s", kind, resp.StatusCode, raw, text)
		}
		last = fmt.Errorf("%d: %s", resp.StatusCode, raw)
	}
	return fmt.Errorf("publish %s: %w, %w", kind, context.Cause(ctx), last)
}

// verify looks at the invariants of the database, beside the nodes.
func (b *fixture) verify(ctx context.Context, after string) {
	var err error
	for range 5 { // the trouble of another may keep it from reading
		reading, cancel := context.WithTimeout(ctx, 20*time.Second)
		err = testdb.Verify(reading, b.place.name())
		cancel()
		if err == nil {
			b.count("invariants verified")
			return
		}
		if strings.HasPrefix(err.Error(), "invariant ") {
			break
		}
		pause(ctx, time.Second)
	}
	for _, line := range strings.Split(err.Error(), "\n") {
		if strings.HasPrefix(line, "invariant ") {
			b.wrong("after %s: %s", after, line)
		} else {
			b.count("invariants could not be read")
		}
	}
}

// remade makes every instance again from its stream: none is another.
func (b *fixture) remade(ctx context.Context) {
	begun := time.Now()
	err := testdb.Remade(ctx, b.place.name())
	if err == nil {
		b.count("times that all was made again")
		fmt.Fprintf(os.Stderr, "every instance was made again in %s\n", time.Since(begun).Round(time.Millisecond))
		return
	}
	for _, line := range strings.Split(err.Error(), "\n") {
		b.wrong("made again from their streams: %s", line)
	}
}

// rest stops every node in order.
func (b *fixture) rest() error {
	errs := make([]error, len(b.slots))
	var all sync.WaitGroup
	for i, s := range b.slots {
		all.Go(func() { errs[i] = s.rest() })
	}
	all.Wait()
	return errors.Join(errs...)
}

func (b *fixture) wake() {
	for _, s := range b.slots {
		s.wake()
	}
}

// save makes a backup while nothing runs.
func (b *fixture) save(ctx context.Context) error {
	defer b.wake()
	if err := b.rest(); err != nil {
		return err
	}
	b.mu.Lock()
	b.saved = time.Now()
	b.mu.Unlock()
	return b.place.backup(ctx)
}

// restore puts the backup in place. What was not done when it was made is void:
// the database has forgotten some of it, and clients do not ask again.
func (b *fixture) restore(ctx context.Context) error {
	defer b.wake()
	if err := b.rest(); err != nil {
		return err
	}
	ends := map[string]time.Time{}
	for _, c := range b.seen.all() {
		if at, ok := ends[c.Of]; c.Applied && c.Effect == "end" && (!ok || c.At.Before(at)) {
			ends[c.Of] = c.At
		}
	}
	b.mu.Lock()
	for _, w := range b.works {
		// The turn that makes an end known is committed a moment after it.
		if end, ok := ends[w.ID]; !ok || end.After(b.saved.Add(-settleTime)) {
			w.note(func(w *judge.Work) { w.Void = true })
		}
	}
	forget := b.forget
	b.generation, b.forget = context.WithCancel(context.Background())
	b.mu.Unlock()
	forget()
	if err := b.place.restore(ctx); err != nil {
		return err
	}
	return b.raise(ctx)
}

// raise is the last step of putting back a backup: the database begins another
// epoch. A node that was killed just before the backup counts for a while.
func (b *fixture) raise(ctx context.Context) error {
	for deadline := time.Now().Add(startMax); ; pause(ctx, time.Second) {
		cmd := exec.CommandContext(ctx, b.program, "restore", "--store", b.place.url())
		cmd.Env = nodes.Quiet()
		out, err := cmd.CombinedOutput()
		if err == nil {
			b.count("epoch raised")
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("engine-node restore: %w: %s", err, out)
		}
	}
}

// settleTime is how long before a backup a work must have had its last effect
// to be sure to be completed in it.
const settleTime = 10 * time.Second

// history is what is left at the end, read through a node.
func (b *fixture) history(ctx context.Context) (judge.History, error) {
	h := judge.History{Calls: b.seen.all(), Small: small, StarvedAfter: starvedAfter}
	c := &client{b: b, rand: random(0, "end")}
	for _, w := range b.works {
		if !w.Event && !w.Void && !w.Acked.IsZero() {
			f, err := c.show(ctx, w.ID)
			if err != nil {
				return h, err
			}
			var out struct{ Seen []int }
			if f.Status == "completed" {
				err = json.Unmarshal(f.Output, &out)
			}
			if err != nil {
				return h, fmt.Errorf("output of %s: %w: %s", w.ID, err, f.Output)
			}
			w.Status, w.Seen = f.Status, out.Seen
			if f.Status != "" && f.Status != "completed" {
				b.explain(ctx, c, w.ID)
			}
		}
		h.Works = append(h.Works, w.Work)
	}
	a, err := c.ask(ctx, http.MethodGet, "/v1/dead-letters?limit=100", nil)
	if err != nil {
		return h, err
	}
	var deadLetters struct {
		Items []struct{ Reason, InstanceID, Detail string }
	}
	if err := errors.Join(c.accepted(a, nil), json.Unmarshal(a.body, &deadLetters)); err != nil {
		return h, err
	}
	for _, l := range deadLetters.Items {
		h.DeadLetters = append(h.DeadLetters, l.Reason+" of "+l.InstanceID+": "+l.Detail)
	}
	return h, nil
}

// explain keeps what a node shows of a work that is not over, for whoever reads
// the report.
func (b *fixture) explain(ctx context.Context, c *client, id string) {
	for _, what := range []string{"", "/stream"} {
		a, err := c.ask(ctx, http.MethodGet, "/v1/instances/"+url.PathEscape(id)+what, nil)
		if err != nil {
			a.body = []byte(err.Error())
		}
		b.unfinished = append(b.unfinished, fmt.Sprintf("%s%s: %s", id, what, a.body))
	}
}

// build makes the program.
func build(ctx context.Context, dir string) (string, error) {
	program := filepath.Join(dir, "engine-node")
	cmd := exec.CommandContext(ctx, "go", "build", "-o", program, "github.com/aqueduct-engine/aqueduct/cmd/engine-node")
	cmd.Stderr = os.Stderr
	return program, cmd.Run()
}
