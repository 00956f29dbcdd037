package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/ack"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/runtime/dispatch"
)

// cashier answers a payment by the statuses in its path, one for each attempt, and notes
// what it was asked for.
type cashier struct {
	mu    sync.Mutex
	asked map[string][]string
}

func (b *cashier) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/") // what, of whom, statuses
	of := parts[1]
	b.asked[of] = append(b.asked[of], parts[0])
	status := http.StatusOK
	if parts[0] == "pay" {
		var statuses []int
		for text := range strings.SplitSeq(parts[2], ",") {
			var n int
			_, _ = fmt.Sscan(text, &n)
			statuses = append(statuses, n)
		}
		status = statuses[min(len(b.asked[of]), len(statuses))-1]
	}
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "3600")
	}
	w.WriteHeader(status)
	_, _ = w.Write([]byte("{}"))
}

func (b *cashier) of(id string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.asked[id])
}

const cashierDoc = `
document: {dsl: '1.0.3', namespace: t, name: cashier, version: '1.0.0'}
do:
  - pay:
      call: http
      with: {method: post, endpoint: '${ $workflow.input.url + "/pay/" + $workflow.input.of + "/" + $workflow.input.says }'}
      metadata: {compensate: {call: http, with: {method: post, endpoint: '${ $workflow.input.url + "/refund/" + $workflow.input.of }'}}}
`

// cashierToldDoc pays by a command whose consumer says when it is done.
var cashierToldDoc = strings.NewReplacer("name: cashier", "name: told", "call: http\n      with: {method", "call: acknowledged\n      with: {within: PT1H, call: http, with: {method",
	"says }'}\n", "says }'}}\n").Replace(cashierDoc)

// TestWhatWasDeliveredIsNotDoneWithByHand: a consumer that has got a command may be doing
// it. Whoever fails it in its place does not know that; the consumer itself does.
func TestWhatWasDeliveredIsNotDoneWithByHand(t *testing.T) {
	t.Parallel()
	b := &cashier{asked: map[string][]string{}}
	srv := httptest.NewServer(b)
	t.Cleanup(srv.Close)
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := start(t, fresh(), nil, cashierToldDoc)
		run := t.Name()[strings.LastIndexByte(t.Name(), '/')+1:]
		for id, want := range map[string]struct {
			status string
			asked  []string
		}{
			"fails":   {"compensated", []string{"pay", "refund"}},
			"claims":  {"compensated", []string{"pay", "refund"}},
			"refuses": {"faulted", []string{"pay"}},
		} {
			of := run + "-" + id
			n.begin(t, id, "t/told", map[string]string{"url": srv.URL, "of": of, "says": "200"})
			eventually(t, "a delivery", func() bool {
				rows, err := n.store.Streams.Stream(t.Context(), id, 1, 1)
				return err == nil && len(rows) == 1 && rows[0].Deliveries == 1
			})
			if id == "claims" {
				if _, err := n.rt.ClaimCommand(t.Context(), id, 2, "ann", time.Hour); err != nil {
					t.Fatal(err)
				}
			}
			if id == "refuses" {
				if _, err := n.rt.Acknowledge(t.Context(), id, 2, ack.Ack{Outcome: ack.Failed}); err != nil {
					t.Fatal(err)
				}
			} else {
				n.settle(t, id, engine.Applied, ack.Ack{Outcome: ack.Failed, Actor: "ann"})
			}
			n.until(t, id, status(want.status))
			if got := b.of(of); !slices.Equal(got, want.asked) {
				t.Errorf("%s: %v, want %v", id, got, want.asked)
			}
		}
	})
}

// TestWhatAnAttemptLeftOpenNoLaterRefusalSettles: a payment that was answered with 500 may
// have been made. Whoever refuses it then, or gives it up, or fails it by hand, it is undone.
func TestWhatAnAttemptLeftOpenNoLaterRefusalSettles(t *testing.T) {
	t.Parallel()
	if dispatch.NoticeOpen != ack.Open {
		t.Errorf("the note is %q here and %q there", dispatch.NoticeOpen, ack.Open)
	}
	b := &cashier{asked: map[string][]string{}}
	srv := httptest.NewServer(b)
	t.Cleanup(srv.Close)
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := start(t, fresh(), nil, cashierDoc)
		run := t.Name()[strings.LastIndexByte(t.Name(), '/')+1:]
		begin := func(id, says string) string {
			of := run + "-" + id
			n.begin(t, id, "t/cashier", map[string]string{"url": srv.URL, "of": of, "says": says})
			return of
		}
		ends := func(id, of, status string, asked ...string) {
			t.Helper()
			n.until(t, id, func(i projections.Instance) bool { return i.Status == status })
			if got := b.of(of); !slices.Equal(got, asked) {
				t.Errorf("%s: %v, want %v", id, got, asked)
			}
		}
		ends("refused", begin("refused", "422"), "faulted", "pay")
		ends("busy", begin("busy", "429,422"), "faulted", "pay", "pay")
		ends("open", begin("open", "500,422"), "compensated", "pay", "pay", "refund")
		ends("thrice", begin("thrice", "500,429,404"), "compensated", "pay", "pay", "pay", "refund")
		ends("done", begin("done", "500,200"), "completed", "pay", "pay")

		for _, claims := range []int{0, 1, 2} { // a worker has claimed it, for longer
			id := fmt.Sprint("by-hand-", claims)
			of := begin(id, "503,422")
			n.waits(t, id)
			for range claims {
				row, err := n.rt.ClaimCommand(t.Context(), id, 2, "ann", time.Hour)
				if who := ack.Claimant(row.LastError, row.NextAttemptAt, time.Now()); err != nil || who != "ann" {
					t.Fatalf("%q, %v", who, err)
				}
			}
			n.settle(t, id, engine.Applied, ack.Ack{Outcome: ack.Failed, Actor: "ann"})
			ends(id, of, "compensated", "pay", "refund")
		}
		of := begin("again", "503,422") // somebody has it tried at once, over a claim
		n.waits(t, "again")
		if _, err := n.rt.ClaimCommand(t.Context(), "again", 2, "ann", time.Hour); err != nil {
			t.Fatal(err)
		}
		row, err := n.rt.RetryCommand(t.Context(), "again", 2, "bob")
		if said := ack.Said(row.LastError); err != nil || strings.Contains(said, "Outcome") || strings.Contains(said, "ann") || !strings.Contains(said, "Service Unavailable") {
			t.Errorf("%q, %v", row.LastError, err)
		}
		ends("again", of, "compensated", "pay", "pay", "refund")
	})
}

// TestWhatWasGivenUpAfterItWasLeftOpenIsCompensated: the first attempt was answered with 500, and the
// next one was never sent.
func TestWhatWasGivenUpAfterItWasLeftOpenIsCompensated(t *testing.T) {
	t.Parallel()
	b := &cashier{asked: map[string][]string{}}
	srv, back := httptest.NewServer(b), httptest.NewServer(b) // the breaker is of one of them
	t.Cleanup(srv.Close)
	t.Cleanup(back.Close)
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n, err := openSet(context.Background(), fresh(), func(c *runtime.Config) {
			c.BreakAfter, c.BreakFor, c.GiveUpAfter = 1, time.Hour, 300*time.Millisecond
		}, nil, strings.Replace(cashierDoc, "input.url + \"/refund/", "input.back + \"/refund/", 1))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = n.close() })
		of := "given-up-" + t.Name()[strings.LastIndexByte(t.Name(), '/')+1:]
		n.begin(t, "i", "t/cashier", map[string]string{"url": srv.URL, "back": back.URL, "of": of, "says": "500"})
		n.until(t, "i", func(i projections.Instance) bool { return i.Status == "compensated" || i.Status == "faulted" })
		// Oracle, whose delays are whole seconds, may find the breaker half open.
		if got := slices.Compact(b.of(of)); !slices.Equal(got, []string{"pay", "refund"}) {
			t.Errorf("%v", got)
		}
	})
}

// TestAnAttemptUnderWayIsNotDoneWithByHand: an operator fails a command while a node performs
// it. What that does nobody knows, so it is undone.
func TestAnAttemptUnderWayIsNotDoneWithByHand(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		asked := make(chan string, 10)
		effect := func(ctx context.Context, input json.RawMessage) (any, error) {
			var with struct{ Said string }
			_ = json.Unmarshal(input, &with)
			asked <- with.Said
			if with.Said == "slow!" {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return 1, nil
		}
		n := start(t, fresh(), effect, with(ledgerStep, "slow"))
		n.begin(t, "i", "t/step", map[string]string{"of": "!"})
		if got := <-asked; got != "slow!" {
			t.Fatal(got)
		}
		n.settle(t, "i", engine.Applied, ack.Ack{Outcome: ack.Failed, Actor: "ann"})
		n.until(t, "i", status("compensated"))
		if got := <-asked; got != "unslow!" {
			t.Errorf("undone is %q", got)
		}
	})
}
