package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/internal/oracletest"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
)

var inflightDoc = doc("inflight", `
  - call: {call: effect}
`)

// What is under way when the database begins to refuse, whatever it answers, is
// committed when that is over, and is not done again (of fifteen calls that ended
// while ORA-00942 or a code of no table was answered, fifteen waited for their node
// to be started again).
func TestResultsOutliveAFaultOfWhateverCode(t *testing.T) {
	t.Parallel()
	for _, code := range []int{942, 99999, 1653} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			t.Parallel()
			d := oracletest.StandIn(t, testdb.Install)
			under, calls := make(chan struct{}), atomic.Int32{}
			n := start(t, d.DSN(), func(context.Context, json.RawMessage) (any, error) {
				calls.Add(1)
				<-under
				return "done", nil
			}, inflightDoc)
			const count = 5
			for i := range count {
				n.begin(t, fmt.Sprint(i), "t/inflight", nil)
			}
			eventually(t, "all are under way", func() bool { return calls.Load() == count })
			if err := d.Fault(t.Context(), "runtime.test%", fmt.Sprintf("any:0:error=%d", code)); err != nil {
				t.Fatal(err)
			}
			close(under)
			<-time.After(2 * time.Second) // of the fault
			if err := d.Fault(t.Context(), "runtime.test%", ""); err != nil {
				t.Fatal(err)
			}
			for i := range count {
				n.until(t, fmt.Sprint(i), status("completed"))
			}
			if c := calls.Load(); c != count {
				t.Errorf("%d calls were made for %d commands", c, count)
			}
		})
	}
}
