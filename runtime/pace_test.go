package runtime

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/signal"
)

// TestPace: a burst goes at once, then so many in a second, each definition and
// cause for itself; who has waited may burst again.
func TestPace(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p := newPacer(Rates{Starts: 10, Events: 10, Loops: 10, Burst: 3})
	admit := func(what, name string, want time.Duration) {
		t.Helper()
		due := p.admit(what, name, now)
		if due.IsZero() {
			due = now
		}
		if got := due.Sub(now); got != want {
			t.Errorf("%s of %s: in %s, not %s", what, name, got, want)
		}
	}
	for i := range 10 {
		admit(selfStart, "a", time.Duration(max(0, i-2))*100*time.Millisecond)
	}
	now = now.Add(time.Hour) // of a host, until the database's is asked
	admit(selfStart, "c", 0)
	now = now.Add(-time.Hour)
	for i := range 4 {
		admit(selfStart, "c", time.Duration(max(0, i-1))*100*time.Millisecond)
	}
	admit(selfEvent, "a", 0)
	admit(selfStart, "b", 0)
	now = now.Add(time.Second)
	for i := range 5 {
		admit(selfStart, "a", time.Duration(max(0, i-2))*100*time.Millisecond)
	}
	for i := range 3 * pacedMax {
		admit(selfLoop, fmt.Sprint(i), 0)
	}
	if len(p.next) > pacedMax {
		t.Errorf("%d rates are remembered", len(p.next))
	}
	if _, ok := p.next["start a"]; !ok {
		t.Error("the busiest is forgotten")
	}
}

// TestLineage: what has caused a message is in it, bounded, and other headers
// stay; a definition finds itself.
func TestLineage(t *testing.T) {
	t.Parallel()
	first := map[string]string{signal.HeaderActor: "eve"}
	h := lineage(first, "t/a")
	if len(first) != 1 || h[signal.HeaderActor] != "eve" || !causedBy(h, "t/a") || causedBy(h, "t/b") || causedBy(first, "t/a") {
		t.Errorf("%v of %v", h, first)
	}
	if again := lineage(h, "t/a"); !maps.Equal(again, h) {
		t.Errorf("%v of %v", again, h)
	}
	if both := lineage(lineage(nil, "t/c"), "t/b", h[signal.HeaderLineage]); !causedBy(both, "t/a") || !causedBy(both, "t/b") || !causedBy(both, "t/c") {
		t.Errorf("of two causes: %v", both)
	}
	for i := range 100 {
		h = lineage(h, fmt.Sprint("t/", i))
	}
	if n := len(strings.Fields(h[signal.HeaderLineage])); n != lineageMax || !causedBy(h, "t/99") || len(h[signal.HeaderLineage]) > signal.MaxHeaderSize/2 {
		t.Errorf("%d names: %v", n, h)
	}
	full := map[string]string{}
	for i := range signal.MaxHeaders {
		full[fmt.Sprint(i)] = "x"
	}
	if got := lineage(full, "t/a"); len(got) != signal.MaxHeaders {
		t.Errorf("%d headers", len(got))
	}
}
