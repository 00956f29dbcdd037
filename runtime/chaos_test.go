package runtime_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/sql/embedded"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

var (
	chaosFor  = flag.Duration("chaos", 20*time.Second, "how long nodes are killed at random")
	chaosSeed = flag.Uint64("chaos-seed", 0, "seed of the kills; 0 = from the clock")
)

const chaosDocument = `
document: {dsl: '1.0.3', namespace: t, name: chaos, version: '1.0.0'}
do:
  - first:
      call: effect
      with: {do: first}
      output: {as: '${ $input + {first: .n} }'}
  - go:
      listen: {to: {one: {with: {type: go}}}}
      output: {as: '${ $input + {go: .[0]} }'}
  - pause:
      wait: PT0.01S
  - second:
      call: effect
      with: {do: second}
      output: {as: '${ $input + {second: .n} }'}
`

// TestChaos kills two nodes on one file at random while they work, for -chaos
// (5 s with -short), then lets one finish: nothing is lost, nothing is doubled,
// and the file is whole.
func TestChaos(t *testing.T) {
	t.Parallel()
	length := *chaosFor
	if testing.Short() {
		length = min(length, 5*time.Second)
	}
	s := *chaosSeed
	if s == 0 {
		s = uint64(time.Now().UnixNano())
	}
	t.Logf("seed %d, %s", s, length)
	c := &chaos{t: t, rand: rand.New(rand.NewPCG(s, 2)), file: filepath.Join(t.TempDir(), "a.db"), world: &world{effects: map[string]string{}}, acked: map[string]bool{}}
	srv := httptest.NewServer(c.world)
	defer srv.Close()
	c.url = srv.URL

	var wg sync.WaitGroup
	looked := testdb.Watch(c.file, 50*time.Millisecond)
	end := time.Now().Add(length)
	for node := range 2 {
		seed := c.rand.Uint64()
		wg.Add(1)
		go func() { defer wg.Done(); c.lives(node, seed, end) }()
	}
	wg.Wait()
	held, err := looked()
	if t.Logf("the invariants held %d times", held); err != nil || held == 0 {
		t.Errorf("the invariants held %d times, then: %v", held, err)
	}
	c.finish()
	c.check()
}

type chaos struct {
	t     *testing.T
	rand  *rand.Rand
	file  string
	url   string
	world *world
	mu    sync.Mutex
	acked map[string]bool // instances whose start was acknowledged
	kills int
}

// lives runs one node after the other, each killed at a random moment: every third as
// it begins, the others once they have started an instance, however slow the machine.
func (c *chaos) lives(node int, seed uint64, end time.Time) {
	r := rand.New(rand.NewPCG(seed, 3))
	for life := 0; time.Now().Before(end) || !c.proves(); life++ {
		cmd := child(c.t, "chaos", c.file, c.url, fmt.Sprintf("AQUEDUCT_TEST_PREFIX=n%d-%d", node, life))
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			c.t.Error(err)
			return
		}
		lived := time.Duration(300+r.IntN(1500)) * time.Millisecond
		timer := time.AfterFunc(lived, func() { _ = cmd.Process.Kill() })
		if life%3 != 2 {
			timer.Reset(time.Minute) // for what does not begin at all
		}
		read := make(chan struct{})
		go func() {
			defer close(read)
			for lines := bufio.NewScanner(out); lines.Scan(); {
				c.mu.Lock()
				c.acked[lines.Text()] = true
				c.mu.Unlock()
				if life%3 != 2 && lived > 0 {
					timer.Reset(lived)
					lived = 0
				}
			}
		}()
		<-read
		if err := cmd.Wait(); err == nil || cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			c.t.Errorf("node %d ended by itself: %v", node, err)
			timer.Stop()
			return
		}
		c.mu.Lock()
		c.kills++
		there := len(c.acked) > 0 // before, a node may have been killed that had not made the database
		c.mu.Unlock()
		if !there {
			continue
		}
		if err := testdb.Verify(c.t.Context(), c.file); err != nil {
			c.t.Errorf("after kill %d of node %d: %v", life+1, node, err)
		}
	}
}

// proves says whether enough was started and killed to say anything.
func (c *chaos) proves() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.acked) >= 20 && c.kills >= 2
}

// finish lets one node complete everything that was acknowledged.
func (c *chaos) finish() {
	list := filepath.Join(filepath.Dir(c.file), "ids")
	var ids []string
	for id := range c.acked {
		ids = append(ids, id)
	}
	if err := os.WriteFile(list, []byte(strings.Join(ids, "\n")), 0o600); err != nil {
		c.t.Fatal(err)
	}
	if err := child(c.t, "chaos", c.file, c.url, "AQUEDUCT_TEST_FINISH="+list).Run(); err != nil {
		c.t.Errorf("the last node: %v", err)
	}
}

// check reads what is left, with nothing of the runtime between.
func (c *chaos) check() {
	t := c.t
	if err := embedded.CheckIntegrity(c.file); err != nil {
		t.Error(err)
	}
	if err := errors.Join(testdb.Verify(t.Context(), c.file), testdb.Remade(t.Context(), c.file)); err != nil {
		t.Error(err)
	}
	st, err := testdb.Open(t.Context(), c.file)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	c.world.mu.Lock() // the answer to a dead node's request may still be on its way
	defer c.world.mu.Unlock()
	for id := range c.acked {
		if why := c.whole(st, id); why != "" {
			t.Errorf("instance %s: %s", id, why)
		}
	}
	there := c.incarnations(st)
	for key := range c.world.effects {
		if incarnation, _, _ := strings.Cut(key, "/"); !there[incarnation] {
			t.Errorf("effect %s of an instance that does not exist", key)
		}
	}
	if deadLetters := must(st.DeadLetters.DeadLetters(t.Context(), backend.DeadLetterQuery{})); len(deadLetters.Items) > 0 {
		t.Errorf("dead letters: %+v", deadLetters.Items[0])
	}
	if !c.proves() {
		t.Errorf("only %d instances and %d kills: that proves nothing", len(c.acked), c.kills)
	}
	t.Logf("%d instances, %d kills, %d attempts for %d effects", len(c.acked), c.kills, c.world.attempts, len(c.world.effects))
}

// incarnations are those of all instances: also of those whose start was
// committed by a node that died before it could say so.
func (c *chaos) incarnations(st *testdb.Database) map[string]bool {
	there := map[string]bool{}
	q := backend.InstanceQuery{Limit: projections.MaxLimit}
	for {
		page := must(st.Instances.Instances(c.t.Context(), q))
		for _, row := range page.Items {
			there[must(st.Writer.Load(c.t.Context(), row.ID)).Incarnation] = true
		}
		if q.After = page.Next; q.After == "" {
			return there
		}
	}
}

// whole says what is wrong with an instance: it is complete, its stream has no
// gap, and each of its two effects happened under one key.
func (c *chaos) whole(st *testdb.Database, id string) string {
	s, err := st.Writer.Load(c.t.Context(), id)
	if err != nil {
		return err.Error()
	}
	if s.Status != snapshot.Completed || string(s.State.Output) != `{"first":14,"go":42,"second":15}` {
		return fmt.Sprintf("%s with output %s", s.Status, s.State.Output)
	}
	entries, err := st.Streams.Stream(c.t.Context(), id, 0, projections.MaxLimit)
	if err != nil {
		return err.Error()
	}
	commands, applied := 0, 0
	for i, e := range entries {
		if e.Position != int64(i+1) {
			return fmt.Sprintf("position %d is missing", i+1)
		}
		if e.Kind == "command" {
			commands++
			if e.Processed == nil || !*e.Processed {
				return fmt.Sprintf("command %d is not processed", e.Position)
			}
			if _, ok := c.world.effects[keyOf(e)]; !ok {
				return fmt.Sprintf("command %d had no effect", e.Position)
			}
		}
		if e.Type == string(signal.ExternalSignal) {
			applied++
		}
	}
	if commands != 2 || applied != 1 {
		return fmt.Sprintf("%d commands, %d signals", commands, applied)
	}
	return ""
}

// chaosChild is a node under load: it starts instances, tells when a start is
// durable, and signals them when they wait. With AQUEDUCT_TEST_FINISH it only
// finishes those in that file.
func chaosChild() int {
	ctx := context.Background()
	n, err := open(ctx, os.Getenv("AQUEDUCT_TEST_FILE"), nil, outside(os.Getenv("AQUEDUCT_TEST_URL")), chaosDocument)
	if err == nil {
		if list := os.Getenv("AQUEDUCT_TEST_FINISH"); list != "" {
			err = finishAll(ctx, n, list)
		} else {
			err = load(ctx, n, os.Getenv("AQUEDUCT_TEST_PREFIX"))
		}
	}
	if err == nil {
		err = n.close()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		return 1
	}
	return 0
}

func load(ctx context.Context, n *testNode, prefix string) error {
	var next atomic.Int64
	errs := make(chan error, 8)
	for range 8 {
		go func() {
			for {
				id := fmt.Sprintf("%s-%d", prefix, next.Add(1))
				if _, _, err := n.rt.Start(ctx, id, signal.Start{Definition: "t/chaos", Input: json.RawMessage(`{}`)}, nil); err != nil {
					errs <- err
					return
				}
				fmt.Println(id)
				if err := finishOne(ctx, n, id); err != nil {
					errs <- err
					return
				}
			}
		}()
	}
	return <-errs
}

// finishOne signals an instance when it waits, and returns when it is complete.
func finishOne(ctx context.Context, n *testNode, id string) error {
	deadline := time.Now().Add(60 * time.Second)
	for sent := false; time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		s, err := n.store.Writer.Load(ctx, id)
		if err != nil {
			return err
		}
		w, _ := s.Primary()
		switch {
		case s.Status == snapshot.Completed:
			return nil
		case s.Status == snapshot.Faulted:
			return fmt.Errorf("instance %s: %+v", id, s.Error)
		case w.Kind == snapshot.WaitEvent && !sent:
			sent = true
			send := enqueue // every other instance is signalled through the queue
			if len(id)%2 == 0 {
				send = direct
			}
			err := send(ctx, n, signal.Envelope{
				SignalID: "go", InstanceID: id, Type: signal.ExternalSignal, OccurredAt: time.Now(), Payload: json.RawMessage(`{"type":"go","data":42}`),
			})
			if err != nil {
				return err
			}
		}
	}
	s, err := n.store.Writer.Load(ctx, id)
	return fmt.Errorf("instance %s is stuck: %s v%d, %v", id, s.Status, s.Version, err)
}

func direct(ctx context.Context, n *testNode, env signal.Envelope) error {
	_, err := n.rt.Signal(ctx, env)
	return done(err)
}

func finishAll(ctx context.Context, n *testNode, list string) error {
	raw, err := os.ReadFile(list)
	if err != nil {
		return err
	}
	for id := range strings.SplitSeq(strings.TrimSpace(string(raw)), "\n") {
		if err := finishOne(ctx, n, id); err != nil {
			return err
		}
	}
	return nil
}
