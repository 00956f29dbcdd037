package runtime_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/internal/oracletest"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/sql/oracle"
	"github.com/aqueduct-engine/aqueduct/store"
)

// spent is how many round trips a node on Oracle has made beside its dequeues, of which
// those that find nothing are many.
func spent(n *testNode) int64 {
	c := n.store.Store.(*oracle.Store).Counts()
	return c.Calls - c.Dequeues
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
	const warm, rounds = 2, 9
	document := tellings("told", 2*(warm+rounds))
	place := oracletest.Fresh(t, testdb.Install)
	here := start(t, place, nil, document)
	there := startSet(t, place, func(c *runtime.Config) { c.Store.Queue = deaf{c.Store.Queue} }, nil, document)
	there.begin(t, "i", "t/told", nil)
	var took []int64
	for r := range warm + rounds {
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
		took = append(took, spent(here)-before)
	}
	usually(t, took, 1)
}

// usually says that no round has made fewer calls beside its dequeues, and a third of them
// not more: on a busy machine sessions are opened meanwhile, which begin transactions of
// their own, and heartbeats come.
func usually(t *testing.T, took []int64, want int64) {
	t.Helper()
	t.Log("calls of each round beside its dequeues:", took)
	if slices.Sort(took); took[0] != want || took[len(took)/3] != want {
		t.Errorf("rounds make %d calls beside their dequeues, %d expected", took, want)
	}
}

// A timer takes three round trips from its start to its end: what begins the instance
// and sends it, the dequeue, and the block that ends both.
func TestATimerIsThreeRoundTripsOnOracle(t *testing.T) {
	t.Parallel()
	const count = 9
	n := start(t, oracletest.Fresh(t, testdb.Install), nil, doc("nap", "  - nap: {wait: PT0.01S}\n"))
	var took []int64
	for i := range count {
		before := spent(n)
		id := fmt.Sprint("i-", i)
		n.begin(t, id, "t/nap", nil)
		n.until(t, id, status("completed"))
		took = append(took, spent(n)-before)
	}
	usually(t, took, 2)
}
