package runtime_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/internal/await"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/runtime"
)

const quietDocument = `
lifecycle: '1.0'
environment: t
definition: policed
version: '1.0.0'
consumers: {a: {endpoint: 'URL', within: PT0.05S}}
states:
  Draft: {category: initial, notices: {EventForbidden: false}}
  Review: {timeout: PT0.05S, notices: {StateStale: false, AckReminderProcessedPending: false}}
  Done: {category: final}
events: {submit: {}, back: {}, expire: {roles: [manager]}}
transitions:
  - {from: Draft, event: submit, to: Review}
  - {from: Review, event: back, to: Draft}
  - {from: '*', event: expire, to: Done}
policies: [{states: Review, consumers: a}]
`

// A state says which notices leave as events, in its lifecycle or in the newest policy.
// Whatever it says, each is an entry of the stream.
func TestAStateSaysWhichNoticesLeave(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		consumer := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		defer consumer.Close()
		effect := func(context.Context, json.RawMessage) (any, error) { return nil, nil }
		place := fresh()
		often := func(c *runtime.Config) { c.AckPause = time.Second } // however long this has taken
		n := startSet(t, place, often, effect, strings.Replace(quietDocument, "URL", consumer.URL, 1))
		other := startSet(t, place, often, effect)
		left := func(id, kind string) (count int) {
			t.Helper()
			for _, r := range n.entries(t, id, "EventEmitted") {
				if strings.Contains(string(r.Data), `"io.aqueduct.`+kind+`.v1"`) {
					count++
				}
			}
			return count
		}
		recorded := func(id, entry string, least int) int {
			t.Helper()
			await.Until(t, entry, func() (bool, any) { got := len(n.entries(t, id, entry)); return got >= least, got })
			return len(n.entries(t, id, entry))
		}
		enter := func(reference string) string {
			t.Helper()
			id, err := n.trigger(t, "t/policed", reference, "submit")
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		const stale, reminder, forbidden = "lifecycle.state-stale", "ack.reminder-processed-pending", "lifecycle.event-forbidden"

		a := enter("a")
		recorded(a, "StateStale", 1)
		recorded(a, "AckReminderProcessedPending", 2)
		if left(a, stale) != 0 || left(a, reminder) != 0 {
			t.Errorf("%d and %d have left", left(a, stale), left(a, reminder))
		}
		if _, err := n.rt.Signal(t.Context(), sentBy(a, "x-1", "expire", byClerk)); problem.CodeOf(err) != "event.forbidden" {
			t.Errorf("%v", err)
		}
		if recorded(a, "EventForbidden", 1) != 1 || left(a, forbidden) != 1 { // the state says nothing of it
			t.Errorf("%d have left", left(a, forbidden))
		}

		other.publish(t, policyOf("1.0.0", "{Review: {notices: {StateStale: true, AckReminderProcessedPending: true}}}"))
		await.Until(t, "a reminder leaves", func() (bool, any) { return left(a, reminder) > 0, left(a, reminder) })
		b := enter("b")
		recorded(b, "StateStale", 1)
		if left(b, stale) != 1 {
			t.Errorf("%d have left", left(b, stale))
		}
		if _, err := n.trigger(t, "t/policed", "b", "back"); err != nil {
			t.Fatal(err)
		}
		if _, err := n.rt.Signal(t.Context(), sentBy(b, "x-2", "expire", byClerk)); problem.CodeOf(err) != "event.forbidden" {
			t.Errorf("%v", err)
		}
		if recorded(b, "EventForbidden", 1) != 1 || left(b, forbidden) != 0 {
			t.Errorf("%d have left", left(b, forbidden))
		}
		other.publish(t, policyOf("1.1.0", "{Review: {notices: {AckReminderProcessedPending: false}}, Draft: {notices: {EventForbidden: true}}}"))
		before := left(a, reminder)
		recorded(a, "AckReminderProcessedPending", recorded(a, "AckReminderProcessedPending", 1)+2)
		if got := left(a, reminder); got > before+1 { // one may have been on its way
			t.Errorf("%d have left, and before %d", got, before)
		}
		if err := testdb.Remade(t.Context(), place); err != nil {
			t.Error(err)
		}
	})
}
