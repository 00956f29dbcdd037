package runtime_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
)

// Who need not acknowledge is told for as long as who must, until they take it: a
// consumer that is away faults nothing and makes no dead letter. Then all is done.
func TestWhatNobodyAcknowledgesIsDeliveredToo(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) { deliveredUnasked(t, fresh(), false) })
}

// A rule that says so itself waits until they have taken it; what nobody takes is the
// error timeout of who waits.
func TestARuleWaitsForWhatNobodyAcknowledges(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) { deliveredUnasked(t, fresh(), true) })
}

func deliveredUnasked(t *testing.T, place string, byRule bool) {
	no := new(bool)
	rule, last := "", ""
	if byRule {
		no, rule, last = nil, ", ackRequired: false", ", ackRequired: false, await: any"
	}
	var calls atomic.Int32
	answers := []int{404, 410, 503, 400, 302, 500, 200}
	consumer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Aqueduct-Ack") != "" {
			t.Error("it is asked for an acknowledgement")
		}
		k := min(int(calls.Add(1)), len(answers)) - 1
		w.WriteHeader(answers[k])
	}))
	defer consumer.Close()
	away := httptest.NewServer(nil)
	away.Close()
	n := start(t, place, nil, policedDocument)
	n.rt.Config.AckAge = 6 * time.Second // of who is away
	n.publish(t, policyOf("1.0.0", `{Draft: {timeout: PT9H}}
consumers: {a: {endpoint: '`+consumer.URL+`', within: PT0.1S}, b: {endpoint: '`+away.URL+`', within: PT0.1S}}
deliveries: [{states: [Review], consumers: a, retry: {limit: {duration: PT1H}}, await: true`+rule+`}, {states: [Draft], event: back, consumers: b`+last+`}]`))
	trigger := func(event string) string {
		t.Helper()
		id, _, _, err := n.rt.StartOrSignal(t.Context(), "", signal.Start{
			Definition: "t/policed", BusinessKey: "k", StartKey: signal.LifecycleKey,
			Signal: &signal.FirstSignal{ID: event, Type: event, AckRequired: no},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	id := trigger("submit")
	n.until(t, id, func(row projections.Instance) bool { return row.Position == "Review" && row.Status == "waiting" })
	if got := calls.Load(); got != int32(len(answers)) {
		t.Errorf("%d deliveries", got)
	}
	trigger("back") // to one that is away for ever
	if byRule {
		n.until(t, id, status("faulted"))
		if s, err := n.store.Writer.Load(t.Context(), id); err != nil || !strings.HasSuffix(s.Error.Type, "/timeout") {
			t.Errorf("%+v, %v", s.Error, err)
		}
		return
	}
	l := n.deadLetters(t, 1)
	if l[0].Reason != "command.undelivered" || !strings.HasPrefix(l[0].Detail, "Not delivered: not delivered within ") {
		t.Errorf("%s: %s", l[0].Reason, l[0].Detail)
	}
	rows, err := n.store.Streams.Stream(t.Context(), id, 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range rows {
		if strings.HasPrefix(e.Type, "Ack") || strings.HasPrefix(e.LastError, "Ack") && e.LastError != "AckGivenUp: "+l[0].Detail {
			t.Errorf("entry %s, %s", e.Type, e.LastError)
		}
		if givenUp(e) {
			n.isAnOperators(t, id, e.Position)
		}
	}
}
