package replay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/definition/openworkflow"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/operate"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/replay"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

const source = `
document: {dsl: '1.0.3', namespace: t, name: loan, version: '%s'}
do:
  - score: {call: scoring, with: {of: '${ .applicant }'}}
  - hear: {listen: {to: {one: {with: {type: paid}}}}}
%s  - ask: {call: humanTask, with: {title: Approve}}
`

var began = time.Date(2026, 5, 1, 9, 0, 0, 0, time.UTC)

// instance is one instance, and what a store would have of it.
type instance struct {
	t      *testing.T
	defs   map[string]engine.Definition // by digest
	def    engine.Definition
	snap   snapshot.Snapshot
	stream []projections.Entry
	turns  int
	in     engine.Input // further input of each turn
}

func parse(t *testing.T, version, more string) engine.Definition {
	t.Helper()
	p, err := openworkflow.Parse("loan.yaml", fmt.Appendf(nil, source, version, more))
	if err != nil {
		t.Fatal(err)
	}
	return p.Definition
}

func newInstance(t *testing.T) *instance {
	t.Helper()
	i := &instance{t: t, defs: map[string]engine.Definition{}, def: parse(t, "1.0.0", "")}
	i.defs[i.def.Ref().Digest] = i.def
	return i
}

// Under implements replay.Definitions.
func (i *instance) Under(_ context.Context, ref snapshot.Definition, _ string) (engine.Definition, error) {
	if def := i.defs[ref.Digest]; def != nil {
		return def, nil
	}
	return nil, errors.New("it is not here")
}

func (i *instance) input(env signal.Envelope) engine.Input {
	i.turns++
	in := i.in
	in.Signal, in.Now, in.Key, in.Incarnation = env, began.Add(time.Duration(i.turns)*time.Minute), []byte("key"), "inc"
	in.Signal.InstanceID, in.Signal.OccurredAt = "i", in.Now.Add(-time.Second)
	in.Signal.Headers = map[string]string{signal.HeaderActor: "ann"}
	return in
}

func (i *instance) take(out *engine.Outcome, err error) *instance {
	i.t.Helper()
	if err != nil {
		i.t.Fatal(err)
	}
	rows, err := projections.Fold(nil, out, "", func(*engine.Entry) (string, int) { return "", 0 })
	if err != nil {
		i.t.Fatal(err)
	}
	i.stream, i.snap = append(i.stream, rows.Stream...), out.Snapshot
	return i
}

func (i *instance) begin(start signal.Start) *instance {
	i.t.Helper()
	start.Definition = "t/loan"
	start.Input = json.RawMessage(`{"applicant": "ann"}`)
	in := i.input(signal.Envelope{})
	in.Signal.Headers[signal.HeaderCorrelation] = "c-1"
	return i.take(engine.Begin(i.def, "i", start, in))
}

func (i *instance) signal(env signal.Envelope) *instance {
	i.t.Helper()
	env.SignalID = fmt.Sprint("s", i.turns)
	return i.take(engine.Step(i.def, i.snap, i.input(env)))
}

// answer answers the command or the task that the instance waits for.
func (i *instance) answer(payload string) *instance {
	i.t.Helper()
	return i.signal(signal.Envelope{Type: signal.TaskCompleted, WaitingToken: i.snap.Waits[0].Token, Payload: json.RawMessage(payload)})
}

func (i *instance) event(typ string) *instance {
	i.t.Helper()
	return i.signal(signal.Envelope{Type: signal.ExternalSignal, Payload: fmt.Appendf(nil, `{"type": %q}`, typ)})
}

func (i *instance) operate(op engine.Operation, output string) *instance {
	i.t.Helper()
	var raw json.RawMessage
	if output != "" {
		raw = json.RawMessage(output)
	}
	return i.take(operate.Operate(i.def, i.snap, op, raw, i.input(signal.Envelope{})))
}

func (i *instance) entries(yield func(projections.Entry, error) bool) {
	for _, e := range i.stream {
		if !yield(e, nil) {
			return
		}
	}
}

func (i *instance) verify() replay.Finding {
	i.t.Helper()
	stored, err := i.snap.Encode()
	if err != nil {
		i.t.Fatal(err)
	}
	return i.against(stored)
}

func (i *instance) against(stored []byte) replay.Finding {
	i.t.Helper()
	f, err := replay.Replayer{Definitions: i, Key: []byte("key")}.Verify(context.Background(), "i", stored, i.entries)
	if err != nil {
		i.t.Fatal(err)
	}
	return f
}

// equal fails the test unless the whole instance is made again.
func (i *instance) equal(what string) {
	i.t.Helper()
	if f := i.verify(); f.Verdict != replay.Equal || f.Through != i.snap.Position {
		i.t.Errorf("%s: %s; the stream ends at %d", what, f, i.snap.Position)
	}
}

// loan is an instance that has come to its person, with what a stream can have.
func loan(t *testing.T) *instance {
	t.Helper()
	i := newInstance(t)
	i.in.Engine = "v1"
	return i.begin(signal.Start{BusinessKey: "b", KeyParts: map[string]string{"of": "b"}}).event("paid").operate(engine.Suspend, "").answer(`{"output":{"score":700}}`).operate(engine.Resume, "")
}

// Every kind of turn is made again: what a start says, signals that come early, late, out
// of order or for the wrong version, operators' acts, limits, epochs and faults.
func TestEveryTurnIsMadeAgain(t *testing.T) {
	t.Parallel()
	loan(t).equal("suspended, with what was kept")
	loan(t).answer(`{"output":{"outcome":"yes"}}`).event("paid").equal("completed, with a late event")
	loan(t).operate(engine.Cancel, "").equal("cancelled")
	loan(t).signal(signal.Envelope{Type: signal.ExternalSignal, ExpectedVersion: 1, Payload: json.RawMessage(`{}`)}).equal("of another version")
	loan(t).signal(signal.Envelope{Type: signal.TimerDue, WaitingToken: "forged"}).equal("forged")
	loan(t).signal(signal.Envelope{Type: signal.CancelRequest, Payload: json.RawMessage(`{"token":"x"}`)}).equal("cancelled by no parent")

	i := newInstance(t).begin(signal.Start{Parent: &signal.Parent{InstanceID: "p", Token: "tok", Depth: 1}})
	i.equal("a child")
	i.signal(signal.Envelope{Type: signal.CancelRequest, Payload: json.RawMessage(`{"token":"tok"}`)}).equal("cancelled by its parent")
	newInstance(t).begin(signal.Start{Signal: &signal.FirstSignal{ID: "first", Type: "paid", Data: json.RawMessage(`{"n": 1.50}`), Actor: "bob"}}).
		answer(`{"output":{}}`).equal("begun with an early event")
	newInstance(t).begin(signal.Start{Signal: &signal.FirstSignal{ID: "first", Type: "paid", Sender: "crm", Sequence: 1}}).
		signal(signal.Envelope{Type: signal.ExternalSignal, Sender: "crm", Sequence: 3, Payload: json.RawMessage(`{"type":"paid"}`)}).
		signal(signal.Envelope{Type: signal.ExternalSignal, Sender: "crm", Sequence: 2, Payload: json.RawMessage(`{"type":"other"}`)}).
		signal(signal.Envelope{Type: signal.ExternalSignal, Sender: "crm", Sequence: 2, Payload: json.RawMessage(`{"type":"other"}`)}).equal("out of order, and again")

	for _, op := range []engine.Operation{engine.Retry, engine.Skip} {
		i = newInstance(t).begin(signal.Start{}).answer(`{"error":{"type":"https://test.example/no","status":500,"title":"no"}}`)
		i.operate(op, `{"score":1}`).equal(string(op))
	}
	i = newInstance(t).begin(signal.Start{}).answer(`{"error":{"type":"https://test.example/no","status":500},"unknown":true}`)
	i.in.Requests = map[int64]engine.Command{2: {}}
	i.operate(engine.RetryNew, "").equal("retried anew")

	i = newInstance(t)
	i.in.Limits, i.in.Lifecycle = engine.Limits{Steps: 1, FanOut: 7}, true
	i.begin(signal.Start{}).signal(signal.Envelope{Type: signal.InternalContinue, WaitingToken: "gone"})
	i.in.Epoch, i.in.Crowded = 5, true
	i.answer(`{"output":1}`).equal("under limits, in another epoch")
	i.in = engine.Input{Epoch: 5}
	i.take(engine.FaultWith(i.snap, engine.Unwritten(errors.New("too large")), i.input(signal.Envelope{}))).equal("faulted in place of a turn")

	i = newInstance(t).begin(signal.Start{})
	first := i.snap
	i.stream = nil
	in := i.input(signal.Envelope{})
	i.take(engine.FaultFirst(i.def, first, engine.Unwritten(errors.New("too large")), in)).equal("faulted in place of its first turn")
}

// An instance that went on in another version is made again in both, by the map that
// took it there.
func TestMigrationsAreMadeAgain(t *testing.T) {
	t.Parallel()
	i := newInstance(t).begin(signal.Start{}).answer(`{"output":{}}`)
	next := parse(t, "2.0.0", "  - more: {set: {a: 1}}\n")
	i.defs[next.Ref().Digest] = next
	plan, err := definition.PlanMigration(i.def, next, map[string]string{"/do/2/ask": "/do/3/ask"})
	if err != nil {
		t.Fatal(err)
	}
	i.take(plan.Migrate(i.snap, i.input(signal.Envelope{})))
	i.def = next
	i.event("paid").equal("migrated")
	delete(i.defs, next.Ref().Digest)
	if f := i.verify(); f.Verdict != replay.Unverifiable || f.Turns != 2 || !strings.Contains(f.Why, "t/loan@2.0.0") {
		t.Errorf("without the version that it went to: %s", f)
	}
}

// Whatever is changed of the stream or of the snapshot is found, and named by its
// position and path.
func TestDifferencesAreNamed(t *testing.T) {
	t.Parallel()
	for path, c := range map[string]struct {
		position int64
		change   func(e *projections.Entry)
	}{
		"DATA/applicant": {1, func(e *projections.Entry) { e.Data = json.RawMessage(`{"n":2}`) }},
		"TYPE":           {3, func(e *projections.Entry) { e.Type = "Other" }},
		"DIRECTION":      {2, func(e *projections.Entry) { e.Direction = "in" }},
		"DATA/input/of":  {2, func(e *projections.Entry) { e.Data = []byte(strings.Replace(string(e.Data), "ann", "bob", 1)) }},
		"DATA/key": {2, func(e *projections.Entry) {
			e.Data = []byte(strings.Replace(string(e.Data), `"key":"inc`, `"key":"ink`, 1))
		}},
		"METADATA/ptr": {2, func(e *projections.Entry) {
			e.Metadata = []byte(strings.Replace(string(e.Metadata), "score", "scope", 1))
		}},
		"CREATED_ON_UTC": {7, func(e *projections.Entry) { e.CreatedAt = e.CreatedAt.Add(time.Microsecond) }},
		"SIGNAL_ID":      {7, func(e *projections.Entry) { e.SignalID = "x" }},
		"METADATA/steps/0": {6, func(e *projections.Entry) {
			e.Metadata = []byte(strings.Replace(string(e.Metadata), `"steps":["`, `"steps":["/do/9","`, 1))
		}},
		"METADATA/version": {5, func(e *projections.Entry) {
			e.Metadata = []byte(strings.Replace(string(e.Metadata), `"version":4`, `"version":5`, 1))
		}},
		"METADATA/disposition": {3, func(e *projections.Entry) {
			e.Metadata = []byte(strings.Replace(string(e.Metadata), "buffered", "applied", 1))
		}},
	} {
		i := loan(t)
		before := fmt.Sprint(i.stream[c.position-1])
		c.change(&i.stream[c.position-1])
		if before == fmt.Sprint(i.stream[c.position-1]) {
			t.Errorf("%s: nothing is changed of %s", path, before)
		}
		f := i.verify()
		if f.Verdict != replay.Different {
			t.Errorf("%s at %d: %s", path, c.position, f)
		}
		if f.Why == "" && (f.Path != path || f.Position != c.position || f.Engine != "v1") {
			t.Errorf("%s at %d is named %s", path, c.position, f)
		}
	}
	i := loan(t)
	stored, _ := i.snap.Encode()
	for path, change := range map[string][2]string{
		"snapshot/workflowState/input/applicant": {`"applicant": "ann"`, `"applicant": "bob"`},
		"snapshot/businessReference/key":         {`"key":"b"`, `"key":"c"`},
		"snapshot/waiting/ptr":                   {`"ptr":"/do/2/ask"`, `"ptr":"/do/0/score"`},
		"snapshot/version":                       {`"version":5`, `"version":6`},
		"snapshot/incarnation":                   {`"incarnation":"inc"`, `"incarnation":"ink"`},
	} {
		changed := strings.Replace(string(stored), change[0], change[1], 1)
		if f := i.against([]byte(changed)); changed == string(stored) || f.Verdict != replay.Different || f.Path != path || f.Position != i.snap.Position {
			t.Errorf("%s: %s\n%s", path, f, stored)
		}
	}
	i.stream = i.stream[:len(i.stream)-1]
	if f := i.verify(); f.Verdict != replay.Different || f.Replayed != "TaskCreated" || f.Position != i.snap.Position {
		t.Errorf("an entry is gone: %s", f)
	}
	i.stream = append(i.stream[:3:3], i.stream[4:]...)
	if f := i.verify(); f.Verdict != replay.Different || f.Path != "POSITION" || f.Position != 5 {
		t.Errorf("a gap: %s", f)
	}
}

// What an older engine has written, or nobody has kept, is said to be so. It is never
// called equal.
func TestWhatIsNotRecordedIsUnverifiable(t *testing.T) {
	t.Parallel()
	without := func(e *projections.Entry) {
		var m engine.Meta
		if err := json.Unmarshal(e.Metadata, &m); err != nil {
			t.Fatal(err)
		}
		m.Basis = nil
		e.Metadata, _ = json.Marshal(m)
	}
	i := loan(t)
	for k := range i.stream[:3] {
		without(&i.stream[k])
	}
	if f := i.verify(); f.Verdict != replay.Unverifiable || f.Position != 4 || f.Turns != 0 {
		t.Errorf("begun by an older engine: %s", f)
	}
	for k := range i.stream {
		without(&i.stream[k])
	}
	if f := i.verify(); f.Verdict != replay.Unverifiable || f.Position != int64(len(i.stream)+1) {
		t.Errorf("of an older engine: %s", f)
	}
	i = loan(t)
	without(&i.stream[3])
	if f := i.verify(); f.Verdict != replay.Unverifiable || f.Position != 4 || f.Through != 2 || f.Turns != 1 {
		t.Errorf("with a turn of an older engine: %s", f)
	}
	i = loan(t)
	i.stream = i.stream[2:]
	if f := i.verify(); f.Verdict != replay.Unverifiable || f.Position != 3 {
		t.Errorf("purged: %s", f)
	}
	i.stream = nil
	if f := i.verify(); f.Verdict == replay.Equal {
		t.Errorf("without a stream: %s", f)
	}
	i = loan(t)
	stored, _ := i.snap.Encode()
	if f := i.against([]byte(strings.Replace(string(stored), `"engineSchemaVersion":1`, `"engineSchemaVersion":2`, 1))); f.Verdict != replay.Unverifiable || f.Turns != 5 {
		t.Errorf("with a snapshot of a newer engine: %s", f)
	}
	i = loan(t)
	i.defs = nil
	if f := i.verify(); f.Verdict != replay.Unverifiable || f.Position != 1 {
		t.Errorf("without its definition: %s", f)
	}
}

// What an engine has decided by the rules of before is made again where they agree. Where
// they do not, it is not called different; a stream that is not as it was written is.
func TestOtherRulesAreNoDifference(t *testing.T) {
	t.Parallel()
	before := func(s []projections.Entry) {
		for k := range s {
			s[k].Metadata = []byte(strings.Replace(string(s[k].Metadata), `,"rules":2`, "", 1))
		}
	}
	i := loan(t)
	if !strings.Contains(string(i.stream[0].Metadata), `,"rules":2`) {
		t.Fatalf("%s", i.stream[0].Metadata)
	}
	before(i.stream)
	i.equal("by other rules that agree")
	stored, _ := i.snap.Encode()
	changed := []byte(strings.Replace(string(stored), `"applicant": "ann"`, `"applicant": "bob"`, 1))
	if f := i.against(changed); f.Verdict != replay.Unverifiable || !strings.Contains(f.Why, "snapshot/workflowState/input/applicant") {
		t.Errorf("a snapshot by other rules: %s", f)
	}
	i.stream[1].Type = "Other"
	if f := i.verify(); f.Verdict != replay.Unverifiable || f.Position != 2 || !strings.Contains(f.Why, "TYPE is Other") {
		t.Errorf("an entry by other rules: %s", f)
	}
	i = loan(t)
	before(i.stream[:1])
	i.stream = append(i.stream[:3:3], i.stream[4:]...)
	if f := i.verify(); f.Verdict != replay.Different || f.Path != "POSITION" {
		t.Errorf("a gap: %s", f)
	}
}

// The state at a position is that after its turn.
func TestStateAtAPosition(t *testing.T) {
	t.Parallel()
	i := loan(t)
	at := func(position int64) (snapshot.Snapshot, error) {
		s, _, err := replay.Replayer{Definitions: i, Key: []byte("key")}.At(context.Background(), "i", nil, position, i.entries)
		return s, err
	}
	for position, want := range map[int64]int64{1: 1, 2: 1, 3: 2, 4: 3, 5: 4, 6: 5, 7: 5, 8: 5} {
		if s, err := at(position); err != nil || s.Version != want {
			t.Errorf("at %d: version %d, %v", position, s.Version, err)
		}
	}
	for _, position := range []int64{-1, 0, i.snap.Position + 1} {
		if _, err := at(position); err == nil {
			t.Errorf("there is a state at %d", position)
		}
	}
}
