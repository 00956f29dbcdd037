package runtime_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/ack"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// says puts an acknowledgement on the queue, as an application does.
func (n *testNode) says(t *testing.T, id, signalID, payload string) {
	t.Helper()
	env := signal.Envelope{
		SignalID: signalID, InstanceID: id, Type: signal.AckRequest, OccurredAt: time.Now(), Payload: json.RawMessage(payload),
		Headers: map[string]string{signal.HeaderActor: "shop"},
	}
	body, err := env.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := n.store.Writer.Commit(t.Context(), store.Change{Send: []store.Send{{Queue: store.Signals, Body: body}}}); err != nil {
		t.Fatal(err)
	}
}

// refusals are the reasons of dead letters, sorted.
func (n *testNode) refusals(t *testing.T) string {
	t.Helper()
	page, err := n.store.DeadLetters.DeadLetters(t.Context(), backend.DeadLetterQuery{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	var reasons []string
	for _, l := range page.Items {
		reasons = append(reasons, l.Reason)
	}
	slices.Sort(reasons)
	return strings.Join(reasons, " ")
}

// TestConsumersAcknowledgeByQueue has several consumers of a transition who say on the
// queue what they say by the API: each for their own command, wrong ones not at all.
func TestConsumersAcknowledgeByQueue(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		consumer := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		defer consumer.Close()
		rule := "consumers: {a: {endpoint: '" + consumer.URL + "', within: PT1H}, b: {endpoint: '" + consumer.URL + "', within: PT1H}}\n"
		n := start(t, fresh(), nil, policedDocument, plainDoc)
		n.publish(t, policyOf("1.0.0", "{Draft: {timeout: PT9H}}")+rule+"deliveries: [{states: Review, consumers: '*', await: all}]\n")
		id, err := n.trigger(t, "t/policed", "one", "submit")
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "deliveries", func() bool {
			commands := n.asked(t, id)
			return commands["a"].Deliveries*commands["b"].Deliveries == 1
		})
		a, b := n.asked(t, id)["a"].Position, n.asked(t, id)["b"].Position
		say := func(signalID, consumer string, command int64, more string) {
			t.Helper()
			n.says(t, id, signalID, fmt.Sprintf(`{"command":%d,"consumer":%q,%s}`, command, consumer, more))
		}
		say("1", "b", a, `"outcome":"processed"`) // the command of another
		n.says(t, id, "2", `{"command":1,"outcome":"processed"}`)
		n.says(t, id, "3", `{"command":2,"outcome":"done"}`)
		n.says(t, id, "4", `{"command":2,"outcome":"processed","receiver":"a"}`)
		n.begin(t, "plain", "t/plain", nil)
		n.says(t, "plain", "5", `{"command":2,"outcome":"processed"}`)
		eventually(t, "refusals", func() bool {
			return n.refusals(t) == "ack.invalid ack.invalid ack.unexpected ack.wrong-consumer command.unknown"
		})
		say("6", "a", a, `"outcome":"retry","delaySeconds":3600`)
		eventually(t, "once more", func() bool { return strings.HasPrefix(n.asked(t, id)["a"].LastError, "AckRetryPending: ") })
		say("7", "a", a, `"outcome":"processed","output":{"n":1}`)
		eventually(t, "settled", func() bool { return *n.asked(t, id)["a"].Processed })
		say("7", "a", a, `"outcome":"processed","output":{"n":1}`) // the same message comes again
		for i := range 3 {
			say(fmt.Sprint("late-", i), "a", a, `"outcome":"processed"`)
		}
		eventually(t, "repeats", func() bool { return strings.Contains(n.said(t, id), "AckRepeated a 2") })
		if row := n.until(t, id, func(projections.Instance) bool { return true }); row.Position == "Review" {
			t.Errorf("it went on without b: %+v", row)
		}
		say("8", "b", b, `"outcome":"processed"`)
		n.until(t, id, func(row projections.Instance) bool { return row.Position == "Review" && row.Status == "waiting" })
		if got, want := n.said(t, id), "AckProcessed a 0, AckProcessed b 0, AckRepeated a 2, AckRetry a 0"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
		entries, err := n.store.Streams.Stream(t.Context(), id, 0, 100)
		for _, e := range entries {
			if e.Type == "AckProcessed" && (!strings.Contains(string(e.Metadata), `"actor":"shop"`) || e.SignalID != "7" && e.SignalID != "8") {
				t.Errorf("%s by %q: %s, %v", e.Type, e.SignalID, e.Metadata, err)
			}
		}

		id, err = n.trigger(t, "t/policed", "two", "submit")
		if err != nil {
			t.Fatal(err)
		}
		say("9", "a", n.asked(t, id)["a"].Position, `"outcome":"failed","error":{"title":"Sold out","detail":"until May"}`)
		n.until(t, id, status("faulted"))
		s, err := n.store.Writer.Load(t.Context(), id)
		if err != nil || s.Error.Title != "Sold out" || s.Error.Detail != "until May" || s.Error.Type != engine.ErrorBase+engine.ErrCommunication {
			t.Errorf("%+v, %v", s.Error, err)
		}
		if acks := n.counted(t, "aqueduct_acknowledgements_total"); acks[string(ack.Processed)] != 2 || acks[string(engine.Duplicate)] != 4 {
			t.Errorf("counted %v", acks)
		}
	})
}
