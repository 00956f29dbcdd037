package runtime

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/definition/openworkflow"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// TestBranchesThatGoOnTogetherAreFewMessages: a fork of a thousand branches, whose turn
// ends before all have begun, goes on by a handful of messages, and each branch does
// its work once. (A message for each stood before whatever the queue got next.) Every
// message comes twice, and one has been dealt with in part by then.
func TestBranchesThatGoOnTogetherAreFewMessages(t *testing.T) {
	t.Parallel()
	for name, k := range map[string]struct{ bytes, most int }{"many steps": {0, 120}, "many bytes": {30_000, 200}} {
		t.Run(name, func(t *testing.T) {
			const count = 1000
			var doc strings.Builder
			doc.WriteString("document: {dsl: '1.0.3', namespace: t, name: w, version: 1.0.0}\ndo:\n  - all:\n      fork:\n        branches:\n")
			for i := range count {
				fmt.Fprintf(&doc, "          - b%d: {do: [{one: {set: {n: %d, text: '${ .text }'}}}, {two: {call: work, with: {n: '${ .n }', text: '${ .text }'}}}]}\n", i, i)
			}
			p, err := openworkflow.Parse("w.yaml", []byte(doc.String()))
			if err != nil {
				t.Fatal(err)
			}
			in := engine.Input{Now: time.Unix(0, 0), Key: []byte("k"), Incarnation: "inc"}
			input := json.RawMessage(fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", k.bytes)))
			out, err := engine.Begin(p.Definition, "i", signal.Start{Input: input}, in)
			if err != nil {
				t.Fatal(err)
			}
			sent, done := 0, map[string]bool{}
			var queue []signal.Envelope
			for {
				if err := together(out); err != nil {
					t.Fatal(err)
				}
				for _, m := range out.Send {
					if e := m.Envelope; e.Type == signal.InternalContinue || e.Type == signal.InternalContinueAll {
						queue, sent = append(queue, e, e), sent+1
					}
				}
				for _, e := range out.Entries {
					if e.Command == nil {
						continue
					}
					if at := e.Meta.Pointer; done[at] {
						t.Fatalf("%s is done twice", at)
					} else {
						done[at] = true
					}
				}
				if len(queue) == 0 || out.Snapshot.Status == snapshot.Faulted {
					break
				}
				in.Signal, in.Now, queue = queue[0], in.Now.Add(time.Second), queue[1:]
				decide := goOn
				if in.Signal.Type == signal.InternalContinue {
					decide = func(def engine.Definition, s *snapshot.Snapshot, in engine.Input) (*engine.Outcome, error) {
						return engine.Step(def, *s, in)
					}
				}
				last := out.Snapshot
				if out, err = decide(p.Definition, &last, in); err != nil {
					t.Fatal(err)
				}
			}
			if len(done) != count && out.Snapshot.Error == nil {
				t.Errorf("%d branches of %d have worked", len(done), count)
			}
			t.Logf("%d messages, %d branches, %v", sent, len(done), out.Snapshot.Error)
			if sent == 0 || sent > k.most {
				t.Errorf("%d messages to go on", sent)
			}
		})
	}
}

// Timers share messages by the moment at which they are due, repeats of attempts by
// theirs, and what has a payload, or nobody beside it, keeps its own.
func TestTimersShareMessagesByTheMoment(t *testing.T) {
	t.Parallel()
	at := time.Unix(100, 0)
	var out engine.Outcome
	add := func(n int, typ signal.Type, due time.Time, payload string) {
		for range n {
			i := len(out.Send)
			out.Send = append(out.Send, engine.Message{Due: due, Envelope: signal.Envelope{
				SignalID: fmt.Sprint("s", i), Type: typ, WaitingToken: fmt.Sprint("t", i), DueAt: due, Payload: json.RawMessage(payload),
			}})
		}
	}
	add(goOnMax+2, signal.TimerDue, at, "")
	add(1, signal.TimerDue, at.Add(time.Microsecond), "")
	add(2, signal.RetryDue, at, "")
	add(2, signal.TimerDue, at.In(time.FixedZone("", 3600)), "")
	add(2, signal.ExternalSignal, time.Time{}, "")
	add(2, signal.TimerDue, at, "{}")
	if err := together(&out); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range out.Send {
		var of branches
		if m.Envelope.WaitingToken == "" {
			if err := json.Unmarshal(m.Envelope.Payload, &of); err != nil {
				t.Error(err)
			}
		}
		got = append(got, fmt.Sprintf("%s %s %d %v", m.Envelope.SignalID, m.Envelope.Type, len(of.Tokens), m.Due.Sub(at)))
	}
	want := []string{
		"s0 TimerDueAll 128 0s", "s128 TimerDueAll 4 0s", "s130 TimerDue 0 1µs", "s131 RetryDueAll 2 0s",
		"s135 ExternalSignal 0 " + time.Time{}.Sub(at).String(), "s136 ExternalSignal 0 " + time.Time{}.Sub(at).String(),
		"s137 TimerDue 0 0s", "s138 TimerDue 0 0s",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
