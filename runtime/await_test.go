package runtime_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aqueduct-engine/aqueduct/ack"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// asked are the commands of an instance to its consumers, by their names.
func (n *testNode) asked(t *testing.T, id string) map[string]projections.Entry {
	t.Helper()
	rows, err := n.store.Streams.Stream(t.Context(), id, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	commands := map[string]projections.Entry{}
	for _, r := range rows {
		var c engine.Command
		if r.Type == engine.EntryCall && json.Unmarshal(r.Data, &c) == nil {
			commands[ack.Consumer(c.Pointer)] = r
		}
	}
	return commands
}

// said counts the entries of acknowledgements of an instance, by type and consumer, and the
// events about them, which is one each.
func (n *testNode) said(t *testing.T, id string) string {
	t.Helper()
	rows, err := n.store.Streams.Stream(t.Context(), id, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	events := 0
	for _, r := range rows {
		if r.Type == engine.EntryEmitted && strings.Contains(string(r.Data), `"io.aqueduct.ack.`) {
			events++
		}
		if !strings.HasPrefix(r.Type, "Ack") {
			continue
		}
		var note ack.Note
		if err := json.Unmarshal(r.Data, &note); err != nil {
			t.Fatal(err)
		}
		said = append(said, fmt.Sprintf("%s %s %d", r.Type, note.Consumer, r.Attempts))
	}
	if events != len(said) {
		t.Errorf("%d events about %q", events, said)
	}
	slices.Sort(said)
	return strings.Join(said, ", ")
}

// operate does what an operator does.
func (n *testNode) operate(t *testing.T, id string, op engine.Operation) {
	t.Helper()
	if _, err := n.rt.Operate(t.Context(), id, op, nil, "olga"); err != nil {
		t.Fatal(err)
	}
}

// TestOneOfSeveralConsumersIsEnough has three consumers of a transition, of whom one is
// to process it: whose policy it is makes no difference.
func TestOneOfSeveralConsumersIsEnough(t *testing.T) {
	t.Parallel()
	var told atomic.Int64
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		told.Store(0)
		consumer := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { told.Add(1) }))
		defer consumer.Close()
		rule := "consumers: {a: {endpoint: '" + consumer.URL + "'}, b: {endpoint: '" + consumer.URL + "'}, c: {endpoint: '" + consumer.URL + "'}}\n"
		n := start(t, fresh(), nil, policedDocument,
			strings.Replace(policedDocument, "policed", "own", 1)+rule+"policies: [{states: Review, consumers: '*', await: any}]\n")
		n.publish(t, policyOf("1.0.0", "{Draft: {timeout: PT9H}}")+rule+"deliveries: [{states: Review, consumers: '*', await: any}]\n")
		say := func(id, who string, want engine.Disposition, a ack.Ack) {
			t.Helper()
			a.Consumer, a.Actor = who, who
			if did, err := n.rt.Acknowledge(t.Context(), id, n.asked(t, id)[who].Position, a); did != want || err != nil {
				t.Errorf("%s says %s: %s, %v, want %s", who, a.Outcome, did, err, want)
			}
		}
		for _, definition := range []string{"t/own", "t/policed"} {
			id, err := n.trigger(t, definition, "one", "submit")
			if err != nil {
				t.Fatal(err)
			}
			eventually(t, "deliveries", func() bool {
				commands := n.asked(t, id)
				return commands["a"].Deliveries*commands["b"].Deliveries*commands["c"].Deliveries == 1
			})
			say(id, "a", engine.Applied, ack.Ack{Outcome: ack.Failed, Error: &snapshot.Error{Title: "No"}})
			n.until(t, id, func(row projections.Instance) bool { return row.Status == "waiting" && row.Position != "Review" })
			say(id, "b", engine.Applied, ack.Ack{Outcome: ack.Processed})
			n.until(t, id, func(row projections.Instance) bool { return row.Position == "Review" && row.Status == "waiting" })
			for who, row := range n.asked(t, id) {
				if !*row.Processed || !strings.Contains(string(row.Data), `"await":"any"`) {
					t.Errorf("%s: %s: %+v", definition, who, row)
				}
			}
			for range 3 { // it comes late
				say(id, "c", engine.Duplicate, ack.Ack{Outcome: ack.Processed})
			}
			if got, want := n.said(t, id), "AckFailed a 0, AckProcessed b 0, AckRepeated c 2, AckSuperseded c 0"; got != want {
				t.Errorf("%s: %s, want %s", definition, got, want)
			}

			for reference, others := range map[string]map[string]ack.Outcome{"all": {"b": ack.Processed, "c": ack.Failed}, "first": {}} {
				want := "AckProcessed a 0, AckSuperseded b 0, AckSuperseded c 0"
				if len(others) > 0 { // who has spoken is superseded by nobody
					want = "AckFailed c 0, AckProcessed a 0, AckProcessed b 0"
				}
				if id, err = n.trigger(t, definition, reference, "submit"); err != nil {
					t.Fatal(err)
				}
				n.operate(t, id, engine.Suspend)
				say(id, "a", engine.Buffered, ack.Ack{Outcome: ack.Processed})
				for _, who := range slices.Sorted(maps.Keys(others)) {
					say(id, who, engine.Buffered, ack.Ack{Outcome: others[who]})
				}
				n.operate(t, id, engine.Resume)
				n.until(t, id, func(row projections.Instance) bool { return row.Position == "Review" && row.Status == "waiting" })
				if got := n.said(t, id); got != want {
					t.Errorf("%s: %s, want %s", definition, got, want)
				}
			}

			id, err = n.trigger(t, definition, "none", "submit")
			if err != nil {
				t.Fatal(err)
			}
			for _, who := range []string{"c", "a", "b"} {
				say(id, who, engine.Applied, ack.Ack{Outcome: ack.Failed, Error: &snapshot.Error{Title: "No"}})
			}
			n.until(t, id, status("faulted"))
			if got, want := n.said(t, id), "AckFailed a 0, AckFailed b 0, AckFailed c 0"; got != want {
				t.Errorf("%s: %s, want %s", definition, got, want)
			}
		}
		page, err := n.store.DeadLetters.DeadLetters(t.Context(), backend.DeadLetterQuery{})
		if err != nil || len(page.Items) > 0 {
			t.Errorf("dead letters %+v, %v", page.Items, err)
		}
	})
}
