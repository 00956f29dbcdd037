package workflow_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/operate"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/workflow"
)

// TestARewindAsksAgain: an instance of Go code goes back to the end of an earlier turn,
// and asks for the steps that were open then under their keys, or under new ones.
func TestARewindAsksAgain(t *testing.T) {
	t.Parallel()
	a, b := workflow.Call[int, string]("a", "f"), workflow.Call[int, string]("b", "g")
	w := workflow.New[notes]("t/back", "1.0.0")
	workflow.Start(w, func(n notes, _ workflow.Input[any]) (notes, workflow.Do) {
		return n, workflow.Do{a.With(1).CompensateWith("release", workflow.CallKey)}
	})
	workflow.On(w, a, func(n notes, _ workflow.Input[string]) (notes, workflow.Do) { return n, workflow.Do{b.With(2)} })
	workflow.On(w, b, func(n notes, _ workflow.Input[string]) (notes, workflow.Do) {
		return n, workflow.Do{workflow.Complete(n)}
	})
	def := made(t, w)
	in := engine.Input{Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Key: []byte("k"), Incarnation: "inc"}
	const input = `{ "a": 1, "b": "R&D <\u2028>" }` // by whose digest the instance is verified
	first, err := engine.Begin(def, "i", signal.Start{Input: json.RawMessage(input)}, in)
	if err != nil {
		t.Fatal(err)
	}
	begun := first.Snapshot.Clone()
	in.Signal = signal.Envelope{SignalID: "s", InstanceID: "i", Type: signal.TaskCompleted, WaitingToken: begun.Waits[0].Token, Payload: json.RawMessage(`{"output":"x"}`)}
	second, err := engine.Step(def, first.Snapshot, in)
	if err != nil {
		t.Fatal(err)
	}
	in.Signal = signal.Envelope{}
	commandOf := func(out *engine.Outcome) (c *engine.Command) {
		for _, e := range out.Entries {
			if e.Command != nil {
				c = e.Command
			}
		}
		return c
	}
	rewind := func(past snapshot.Snapshot, version int64, incarnation string) (*engine.Outcome, error) {
		t.Helper()
		with, err := operate.BackTo(past, version, incarnation)
		if err != nil {
			t.Fatal(err)
		}
		return operate.Operate(def, second.Snapshot.Clone(), operate.Rewind, with, in)
	}
	key := commandOf(first).Key
	out, err := rewind(begun, 2, "")
	if err != nil {
		t.Fatal(err)
	}
	s := out.Snapshot
	if string(s.State.Input) != input {
		t.Errorf("the input is %s", s.State.Input)
	}
	if c := commandOf(out); c.Target != "f" || c.Key != key || c.Token == begun.Waits[0].Token || s.Version != 3 || s.Incarnation != "inc" {
		t.Errorf("asked %+v at version %d", c, s.Version)
	}
	// A stream may have a rewind of before, whose snapshot is JSON.
	with := asBefore(t, begun)
	if was, err := operate.Operate(def, second.Snapshot.Clone(), operate.Rewind, with, in); err != nil || commandOf(was).Key != key {
		t.Errorf("as it was written before: %+v, %v", was, err)
	}
	if len(s.Compensations) != 1 || len(s.Waits) != 1 || s.Waits[0].Pointer != begun.Waits[0].Pointer || len(out.Settled) != 1 {
		t.Errorf("%+v, settled %v", s, out.Settled)
	}
	if out, err = rewind(begun, 2, "other"); err != nil || commandOf(out).Key == key || out.Snapshot.Incarnation != "other" {
		t.Errorf("new keys: %+v, %v", out, err)
	}
	later, other, child := second.Snapshot.Clone(), begun.Clone(), begun.Clone()
	other.Definition.Version, child.SubFrames = "2.0.0", []snapshot.SubFrame{{InstanceID: "c", Token: "t"}}
	for code, refused := range map[string]func() error{
		"rewind.stale":         func() error { _, err := rewind(begun, 1, ""); return err },
		"rewind.position":      func() error { _, err := rewind(later, 2, ""); return err },
		"rewind.other-version": func() error { _, err := rewind(other, 2, ""); return err },
		"rewind.child":         func() error { return operate.Rewindable(&later, &child) },
		"rewind.epoch": func() error { // the database has been restored since, with no turn behind it
			after := in
			after.Epoch = 2
			with, err := operate.BackTo(begun, 2, "")
			if err != nil {
				return err
			}
			_, err = operate.Operate(def, second.Snapshot.Clone(), operate.Rewind, with, after)
			return err
		},
		"rewind.lifecycle": func() error {
			s := second.Snapshot.Clone()
			s.State.Name = "Open"
			return operate.Rewindable(&s, &begun)
		},
		"rewind.schedule": func() error {
			s := second.Snapshot.Clone()
			s.Schedule = &snapshot.Schedule{}
			return operate.Rewindable(&s, &begun)
		},
		"rewind.compensates": func() error {
			s := second.Snapshot.Clone()
			s.Compensating = &snapshot.Compensating{}
			return operate.Rewindable(&s, &begun)
		},
		"instance.suspended": func() error {
			s := second.Snapshot.Clone()
			s.Status = snapshot.Suspended
			return operate.Rewindable(&s, &begun)
		},
		"instance.closed": func() error {
			s := second.Snapshot.Clone()
			s.Status = snapshot.Completed
			return operate.Rewindable(&s, &begun)
		},
		"rewind.too-large": func() error {
			big := begun.Clone()
			big.State.Context, _ = json.Marshal(make([]byte, operate.MaxBack))
			_, err := operate.BackTo(big, 2, "")
			return err
		},
	} {
		if err := refused(); problem.CodeOf(err) != code {
			t.Errorf("%v, want %s", err, code)
		}
	}
}

// asBefore is the output of a rewind as it was written when its snapshot was JSON.
func asBefore(t *testing.T, past snapshot.Snapshot) json.RawMessage {
	t.Helper()
	with, err := operate.BackTo(past, 2, "")
	if err != nil {
		t.Fatal(err)
	}
	var said map[string]any
	if err := json.Unmarshal(with, &said); err != nil {
		t.Fatal(err)
	}
	state, err := base64.StdEncoding.DecodeString(said["state"].(string))
	if err != nil {
		t.Fatal(err)
	}
	said["state"] = json.RawMessage(state)
	if with, err = json.Marshal(said); err != nil {
		t.Fatal(err)
	}
	return with
}

// TestARewindKeepsTheKeysOfWhatIsAskedLater, though the instance takes a turn more than before.
func TestARewindKeepsTheKeysOfWhatIsAskedLater(t *testing.T) {
	t.Parallel()
	a, b := workflow.Call[int, string]("a", "f"), workflow.Call[int, string]("b", "g")
	w := workflow.New[notes]("t/back", "1.0.0")
	workflow.Start(w, func(n notes, _ workflow.Input[any]) (notes, workflow.Do) { return n, workflow.Do{a.With(1)} })
	workflow.On(w, a, func(n notes, _ workflow.Input[string]) (notes, workflow.Do) {
		return n, workflow.Do{workflow.Emit("a.done", 1), b.With(2)}
	})
	workflow.On(w, b, func(n notes, _ workflow.Input[string]) (notes, workflow.Do) { return n, nil })
	def := made(t, w)
	p := play(t, def)
	past := p.snap.Clone()
	p.comes(def, snapshot.WaitCommand, `{"output":"x"}`)
	for _, incarnation := range []string{"", "other"} {
		with, err := operate.BackTo(past, p.snap.Version, incarnation)
		if err != nil {
			t.Fatal(err)
		}
		p.in.Signal = signal.Envelope{}
		p.took(operate.Operate(def, p.snap.Clone(), operate.Rewind, with, p.in))
		p.asks(def, engine.Suspend)
		p.asks(def, engine.Resume)
		p.comes(def, snapshot.WaitCommand, `{"output":"x"}`)
		n := len(p.commands)
		for i, c := range p.commands[n-3:] {
			if before := p.commands[n-6+i]; c.Target != before.Target || (c.Key == before.Key) != (incarnation == "") {
				t.Errorf("%q: asked %s as %s, and before as %s", incarnation, c.Target, c.Key, before.Key)
			}
		}
	}
}

// TestKeysOfBeforeGoOn: an instance of an engine that numbered decisions by their versions
// goes on with other numbers than it had, also beside such an engine.
func TestKeysOfBeforeGoOn(t *testing.T) {
	t.Parallel()
	call := workflow.Call[int, string]("call", "f")
	w := workflow.New[int]("t/round", "1.0.0")
	workflow.Start(w, func(n int, _ workflow.Input[any]) (int, workflow.Do) { return n, workflow.Do{call.With(1)} })
	workflow.On(w, call, func(n int, _ workflow.Input[string]) (int, workflow.Do) { return n, workflow.Do{call.With(1)} })
	def := made(t, w)
	p := play(t, def)
	before := func(version int) { // it has been decided by one of those
		p.snap.Version, p.snap.Branches[0].Frames[0].Jumps = int64(version), version
	}
	before(7)
	p.snap.Branches[0].Arm = 0
	p.comes(def, snapshot.WaitCommand, `{"output":""}`)
	p.asks(def, engine.Suspend)
	p.asks(def, engine.Resume)
	p.comes(def, snapshot.WaitCommand, `{"output":""}`)
	before(12)
	p.comes(def, snapshot.WaitCommand, `{"output":""}`)
	p.asks(def, engine.Suspend)
	var visits []string
	for _, c := range p.commands {
		visits = append(visits, strings.Split(c.Key, "/")[3])
	}
	if got := strings.Join(visits[1:], " "); got != "-1 -2 -3" { // the first stands for one of theirs
		t.Errorf("decisions have the numbers %s", got)
	}
}
