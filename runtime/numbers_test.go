package runtime_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/signal"
)

// said is a signal with a number of its sender, and an id or a key.
type said struct {
	sequence int
	id       string
	want     engine.Disposition
}

// What has come before takes its number: whatever is behind it does not wait for ever,
// and what waits there already stays.
func TestADuplicateTakesItsNumber(t *testing.T) {
	t.Parallel()
	document := doc("gather", `
  - all: {listen: {to: {any: [{with: {type: step}}], until: '${ any(.[]; . >= 9) }'}}}
`)
	cases := map[string]struct {
		said   []said
		output string
	}{
		"behind": {[]said{{1, "A", "applied"}, {2, "A", "duplicate"}, {3, "B", "applied"}, {9, "", ""}}, `[1,3,9]`},
		"before": {[]said{{2, "A", "buffered"}, {1, "A", "duplicate"}, {3, "B", "applied"}, {9, "", ""}}, `[2,3,9]`},
		"ahead":  {[]said{{1, "A", "applied"}, {3, "A", "duplicate"}, {2, "B", "applied"}, {4, "C", "applied"}, {9, "", ""}}, `[1,2,4,9]`},
		"again":  {[]said{{3, "C", "buffered"}, {3, "C", "duplicate"}, {1, "A", "applied"}, {2, "B", "applied"}, {3, "C", "duplicate"}, {9, "", ""}}, `[1,2,3,9]`},
	}
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := start(t, fresh(), nil, document)
		for name, c := range cases {
			for _, way := range []string{"id", "key", "queued", "at once"} {
				id := strings.ReplaceAll(name+"-"+way, " ", "")
				n.begin(t, id, "t/gather", nil)
				last, bodies := 0, []string{}
				for _, s := range c.said {
					e := numbered(id, s.id, s.sequence)
					if s.id == "" { // the end
						e = numbered(id, "end", last+1)
					}
					last = max(last, s.sequence)
					e.Payload = json.RawMessage(fmt.Sprintf(`{"id":"x","source":"s","type":"step","data":%d}`, s.sequence))
					if way == "key" {
						e.DedupeKey, e.SignalID = e.SignalID, signal.Keyed(e.SignalID)
					}
					if way == "id" || way == "key" {
						if did, err := n.rt.Signal(t.Context(), e); err != nil || s.want != "" && did != s.want {
							t.Errorf("%s: %d %s: %s, %v", id, s.sequence, s.id, did, err)
						}
						continue
					}
					body, err := e.Encode()
					if err != nil {
						t.Fatal(err)
					}
					if bodies = append(bodies, string(body)); way == "queued" {
						n.send(t, string(body))
						n.drained(t)
					}
				}
				if way == "at once" {
					if _, err := n.rt.Operate(t.Context(), id, engine.Suspend, nil, ""); err != nil {
						t.Fatal(err)
					}
					for _, body := range bodies {
						n.send(t, body)
					}
					n.drained(t)
					if _, err := n.rt.Operate(t.Context(), id, engine.Resume, nil, ""); err != nil {
						t.Fatal(err)
					}
				}
				n.until(t, id, status("completed"))
				if snap, err := n.rt.Snapshot(t.Context(), id); err != nil || string(snap.State.Output) != c.output {
					t.Errorf("%s: %s, %v, want %s", id, snap.State.Output, err, c.output)
				}
				if _, err := n.rt.Signal(t.Context(), numbered(id, "late", 40)); err == nil {
					t.Error("an instance that has ended takes a number")
				}
				if did, err := n.rt.Signal(t.Context(), numbered(id, "end", 41)); way == "id" && (did != engine.Duplicate || err != nil) {
					t.Errorf("%s: of an instance that has ended: %s, %v", id, did, err)
				}
			}
		}
	})
}
