package runtime_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/internal/oracletest"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/sql/oracle"
	"github.com/aqueduct-engine/aqueduct/sql/steps"
	"github.com/aqueduct-engine/aqueduct/store"
)

// spent is how many round trips a node on Oracle has made beside its dequeues, of which
// those that find nothing are many.
func spent(n *testNode) int64 {
	c := n.store.Store.(*oracle.Store).Counts()
	return c.Calls - c.Dequeues
}

// calm starts a node on Oracle that makes no calls by itself: on a slow machine its
// heartbeats, and its looks for strays, would be in each round.
func calm(t *testing.T, place string, set func(*runtime.Config), documents ...string) *testNode {
	t.Helper()
	st, err := testdb.At(oracle.Open(t.Context(), oracle.Options{
		DSN: place, Steps: &steps.Set{}, Consumers: 4, Wait: time.Second, Heartbeat: time.Hour, DeadAfter: 4 * time.Hour,
	}))
	if err != nil {
		t.Fatal(err)
	}
	n, err := openOn(t.Context(), st, func(c *runtime.Config) {
		c.StraysEvery, c.ReconcileEvery, c.UnsentEvery = time.Hour, -1, time.Hour
		if set != nil {
			set(c)
		}
	}, nil, documents...)
	if err != nil {
		t.Fatal(err)
	}
	n.endsWith(t, place)
	return n
}

// deaf is the queue of a node that takes no messages.
type deaf struct{ store.Receiver }

func (deaf) Receive(ctx context.Context, _ store.Queue, _ func(store.Message)) (store.Delivery, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// tellings is a document that listens so often.
func tellings(name string, count int) string {
	var b strings.Builder
	for i := range count {
		fmt.Fprintf(&b, "  - t%d: {listen: {to: {one: {with: {type: t%d}}}}}\n", i, i)
	}
	return doc(name, b.String())
}

// tell is a signal that ends the wait of tellings with that number.
func tell(t *testing.T, id string, i int) signal.Envelope {
	t.Helper()
	return signal.Envelope{
		SignalID: fmt.Sprint(id, "-", i), InstanceID: id, Type: signal.ExternalSignal, OccurredAt: time.Now(), Payload: fmt.Appendf(nil, `{"type":"t%d"}`, i),
	}
}

// A turn whose instance another node has had takes no more round trips than one whose
// snapshot is in the cache: dequeue, and the block that writes it.
func TestATurnAfterAnotherNodesIsTwoRoundTripsOnOracle(t *testing.T) {
	t.Parallel()
	document := tellings("told", 2*maxRounds)
	place := oracletest.Fresh(t, testdb.Install)
	here := calm(t, place, nil, document)
	there := calm(t, place, func(c *runtime.Config) { c.Store.Queue = deaf{c.Store.Queue} }, document)
	there.begin(t, "i", "t/told", nil)
	next := 0
	usually(t, 1, func() int64 {
		r := next
		next++
		before := spent(here)
		if _, err := there.rt.Signal(t.Context(), tell(t, "i", 2*r)); err != nil {
			t.Fatal(err)
		}
		body, err := tell(t, "i", 2*r+1).Encode()
		if err != nil {
			t.Fatal(err)
		}
		there.send(t, string(body))
		there.until(t, "i", func(i projections.Instance) bool { return i.Version == int64(2*r+3) })
		return spent(here) - before
	})
}

// maxRounds is how often usually looks.
const maxRounds = 60

// usually says that no round makes fewer calls beside its dequeues, and some of them no
// more: on a busy machine sessions are opened meanwhile, which begin transactions of
// their own, so rounds are made until three of nine or more had nothing beside them.
func usually(t *testing.T, want int64, round func() int64) {
	t.Helper()
	var took []int64
	for exact := 0; len(took) < 9 || exact < 3; {
		calls := round()
		if took = append(took, calls); calls == want {
			exact++
		}
		if calls < want || len(took) == maxRounds {
			t.Errorf("rounds make %d calls beside their dequeues, %d expected", took, want)
			return
		}
	}
	t.Log("calls of each round beside its dequeues:", took)
}

// A timer takes three round trips from its start to its end: what begins the instance
// and sends it, the dequeue, and the block that ends both.
func TestATimerIsThreeRoundTripsOnOracle(t *testing.T) {
	t.Parallel()
	n := calm(t, oracletest.Fresh(t, testdb.Install), nil, doc("nap", "  - nap: {wait: PT0.01S}\n"))
	next := 0
	usually(t, 2, func() int64 {
		before := spent(n)
		id := fmt.Sprint("i-", next)
		next++
		n.begin(t, id, "t/nap", nil)
		n.until(t, id, status("completed"))
		return spent(n) - before
	})
}
