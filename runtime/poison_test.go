package runtime_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/internal/await"
	"github.com/aqueduct-engine/aqueduct/internal/oracletest"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// The row of one instance cannot be written, whatever the database says of it: its
// signals are tried again in their order, and nobody else waits for them. A black-box
// run found that no signal of anybody was applied on that node any more.
func TestAFaultOfOneInstanceHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"01653", "01578"} { // no room in a segment, a damaged block
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			d := oracletest.StandIn(t, testdb.Install)
			n := startSet(t, d.DSN(), func(c *runtime.Config) { patient(c); c.RetryDelay = time.Second }, nil, circleDoc)
			send := func(reference string, i int) {
				s := trigger("t/ring", reference, fmt.Sprintf("e-%d", i), "")
				s.Signal.Type, s.Signal.Data = []string{"ab", "bc", "ca"}[i%3], json.RawMessage(`{}`)
				body := must(signal.Envelope{
					SignalID: fmt.Sprintf("%s-%d", reference, i), InstanceID: reference, Type: signal.StartRequest, OccurredAt: time.Now(), Payload: must(json.Marshal(s)),
				}.Encode())
				if err := n.store.Writer.Commit(t.Context(), store.Change{Send: []store.Send{{Queue: store.Signals, Body: body}}}); err != nil {
					t.Fatal(err)
				}
			}
			applied := func(want int64) func(projections.Instance) bool {
				return func(i projections.Instance) bool { return i.Version == want }
			}
			poisoned := func(then string) {
				if _, err := d.Postgres(t.Context(), `create or replace function app.poisoned() returns trigger language plpgsql as $$ begin `+then+` return new; end $$`); err != nil {
					t.Fatal(err)
				}
			}
			send("bad", 0)
			n.until(t, "bad", applied(1))
			poisoned(`if new.instance_id = 'bad' then raise exception 'ORA-` + code + `: injected'; end if;`)
			if _, err := d.Postgres(t.Context(), `create trigger poisoned before update on app.wf_runtime_states for each row execute function app.poisoned()`); err != nil {
				t.Fatal(err)
			}
			const others = 40
			for i := range others {
				if i%20 == 0 {
					for k := range 3 {
						send("bad", 1+i/20*3+k)
					}
				}
				send(fmt.Sprint("other-", i), 0)
			}
			for i := range others {
				n.until(t, fmt.Sprint("other-", i), applied(1))
			}
			from := time.Now()
			send("late", 0) // while the fault goes on
			n.until(t, "late", applied(1))
			t.Logf("another one waits for %s", time.Since(from).Round(time.Millisecond))
			poisoned("")
			n.until(t, "bad", applied(7))
			await.Until(t, "nothing is left", func() (bool, any) {
				left, err := n.store.DeadLetters.DeadLetters(t.Context(), backend.DeadLetterQuery{})
				return err == nil && len(left.Items) == 0, err
			})
			n.quiet(t)
		})
	}
}
