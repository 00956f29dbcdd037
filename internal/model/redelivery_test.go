package model

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/ack"
	"github.com/aqueduct-engine/aqueduct/internal/await"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
)

// toldDocument tells one application as its own rule says, and leaves two to a policy.
const toldDocument = `
lifecycle: '1.0'
environment: m
definition: told
version: '1.0.0'
consumers: {own: {endpoint: '%[1]s/own'}}
states:
  Open: {category: initial}
  Done: {category: final}
events: {close: {}}
transitions: [{from: Open, event: close, to: Done}]
policies:
  - {states: Done, consumers: own, retry: {delay: PT200M, delayMax: PT20H, limit: {duration: PT60H}}}
`

func toldPolicy(server, version, first, retry string) string {
	return "policy: '1.0'\nenvironment: m\ndefinition: told\nversion: '" + version + "'\n" +
		"consumers: {away: {endpoint: '" + server + "/away'}, deaf: {endpoint: '" + server + "/deaf', within: PT40M}}\n" +
		"deliveries:\n" + first + "  - {states: Done, consumers: [away, deaf]" + retry + "}\n"
}

// How often a consumer is told again, and for how long, is said by the rule that tells
// it: by the newest policy, at each pause, whatever policy its command is of; and by the
// node where the rule says nothing.
func TestARuleSaysHowOftenAConsumerIsToldAgain(t *testing.T) {
	answers := map[string]int{"/own": http.StatusServiceUnavailable, "/away": http.StatusNotFound, "/deaf": http.StatusOK}
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { rw.WriteHeader(answers[r.URL.Path]) }))
	t.Cleanup(srv.Close)
	list := worlds(t, func(w *world) {
		w.more = []string{fmt.Sprintf(toldDocument, srv.URL), toldPolicy(srv.URL, "1.0.0", "", ", retry: {delay: PT100M, delayMax: PT400M, limit: {duration: P40D}}")}
	})
	for _, w := range list {
		if w.name == "oracle" && w.leap == nil {
			continue // its clock is its own
		}
		toldAgain(t, w, srv.URL)
	}
}

func toldAgain(t *testing.T, w *world, server string) {
	const id = "told"
	start := signal.Start{Definition: "m/told", Signal: &signal.FirstSignal{ID: "s", Type: "close"}}
	if _, _, _, err := w.rt.StartOrSignal(t.Context(), id, start, nil); err != nil {
		t.Fatal(w.name, err)
	}
	// told are the pauses until the next delivery, by consumer, after all that was due is done.
	told := func() map[string]time.Duration {
		t.Helper()
		pauses := map[string]time.Duration{}
		for _, e := range w.rest(t, id) {
			if e.Processed == nil || *e.Processed || !strings.Contains(string(e.Data), "/policies/") || !strings.Contains(string(e.Data), `"ack":`) {
				continue
			}
			name := "own"
			for _, other := range []string{"away", "deaf"} {
				if strings.Contains(string(e.Data), "/"+other+`"`) {
					name = other
				}
			}
			pauses[name] = e.NextAttemptAt.Sub(w.clock.now())
			if strings.HasPrefix(e.LastError, "AckGivenUp") {
				pauses[name] = -1
			}
		}
		return pauses
	}
	is := func(when string, want map[string]time.Duration) {
		t.Helper()
		var got map[string]time.Duration
		await.Until(t, w.name+" "+when, func() (bool, any) {
			got = told()
			for name, pause := range want {
				if near := got[name] - pause; near.Abs() > 200*time.Second || (got[name] < 0) != (pause < 0) {
					return false, fmt.Sprint(got, " want ", want)
				}
			}
			return len(got) == len(want), fmt.Sprint(got, " want ", want)
		})
	}
	pass := func(d time.Duration) {
		t.Helper()
		if err := w.advance(t.Context(), d); err != nil {
			t.Fatal(w.name, err)
		}
	}
	const m, s = 20 * time.Minute, 20 * time.Second // long, so that a slow machine's own time is nothing
	is("begins", map[string]time.Duration{"own": 10 * m, "away": 5 * m, "deaf": 2 * m})
	pass(2*m + 20*s)
	is("reminds", map[string]time.Duration{"own": 7*m + 40*s, "away": 2*m + 40*s, "deaf": 4 * m})
	pass(3 * m)
	is("fails again", map[string]time.Duration{"own": 4*m + 40*s, "away": 10 * m, "deaf": m})
	pass(5 * m)
	is("goes on", map[string]time.Duration{"own": 20 * m, "away": 5 * m, "deaf": 8 * m})

	// By another place in a newer policy; the pauses that run stay as they are.
	newer := func(version, first, retry string) {
		t.Helper()
		if _, _, err := w.cat.Publish(t.Context(), "policy.yaml", []byte(toldPolicy(server, version, first, retry))); err != nil {
			t.Fatal(w.name, err)
		}
	}
	newer("1.1.0", "  - {states: Open, consumers: deaf}\n", ", retry: {delay: PT20M, delayMax: PT60M, limit: {duration: PT20H}}")
	pass(5*m + 20*s)
	is("goes by the newest", map[string]time.Duration{"own": 14*m + 40*s, "away": 3 * m, "deaf": 2*m + 40*s})
	w.shown(t, id, ack.Retries{Delay: m, DelayMax: 3 * m, For: 60 * m})
	pass(3 * m) // of the first: 18:40 have passed
	is("reminds by the newest", map[string]time.Duration{"own": 11*m + 40*s, "away": 3 * m, "deaf": 3 * m})
	pass(42 * m)
	is("is given up at its age", map[string]time.Duration{"own": 40 * m, "away": -1, "deaf": -1})
}

// shown are the times of what a policy has told.
func (w *world) shown(t *testing.T, id string, want ack.Retries) {
	t.Helper()
	entries, err := w.st.Streams.Stream(t.Context(), id, 0, projections.MaxLimit)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range entries {
		if e.Processed != nil && strings.Contains(string(e.Data), `"/policy/`) && strings.Contains(string(e.Data), `"ack":`) {
			if got := w.rt.Retries(t.Context(), e); got != want {
				t.Errorf("%s: %+v, want %+v", w.name, got, want)
			}
			n++
		}
	}
	if n != 2 {
		t.Errorf("%s: %d commands of the policy", w.name, n)
	}
}
