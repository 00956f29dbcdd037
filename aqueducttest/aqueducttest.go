// Package aqueducttest tests a workflow definition in virtual time: no
// database, no node, no network, no sleeping.
//
//	w := aqueducttest.File(t, "workflow.yaml")
//	w.OnCall("POST https://scores.example/scoring").Return(`{"score": 500}`)
//	w.Start(`{"applicant": "ann"}`)
//	w.Task("askOfficer").Claim("olga", "loan-officers").Complete("approved", nil)
//	w.Completed(`{"decision": "approved"}`)
//
// A [Workflow] is one instance. The engine that decides is the one of a node,
// and after every turn the snapshot goes through its stored form, so what a
// test shows is what a node does. Commands are answered by stubs: a command
// that no stub knows fails the test, with what was asked and what is stubbed.
// Time stands still until [Workflow.Advance] or [Workflow.NextTimer]; what is
// due then happens in order, each at its own moment.
//
// The same test always gives the same decisions, tokens and timeline. What a
// node repeats by itself is repeated here, by the same rules: a stub answers one
// attempt, and a failure that another attempt may mend is tried again, later and
// later, before the workflow hears of it; see [Workflow.Attempts]. An event goes
// to this instance alone. Of a call that is acknowledged, a stub's answer is what
// the consumer acknowledges.
//
// Values: a string, []byte or json.RawMessage is JSON text, anything else is
// made JSON by encoding/json; nil is null.
package aqueducttest

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/definition/openworkflow"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/operate"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// TB is what the kit needs of *testing.T.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
	Logf(format string, args ...any)
	Failed() bool
	Cleanup(func())
}

// Limits of one test.
const (
	MaxTurns   = 100_000 // of one instance
	InstanceID = "test-1"
)

// incarnation is as long as a node's, so that keys have the same form.
const incarnation = "test-incarnation"

// Epoch is when an instance is started, unless At says otherwise.
var Epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Workflow is one instance of a definition under test. It is not safe for use
// by several goroutines.
type Workflow struct {
	Groups map[string][]string // of people, by their names: of which roles of events they are

	t     TB
	def   engine.Definition
	snap  snapshot.Snapshot
	now   time.Time
	began time.Time
	turns int

	entries []engine.Entry
	calls   []Call
	stubs   []*Stub
	tasks   []*Task
	due     []pending // timers, late answers and further attempts, in the order in which they were made
	ready   []func()
	made    int             // signals of this test
	policy  activity.Policy // of further attempts
	driver  driver
}

// driver takes the turns of a workflow, and plays what they ask of the outside.
type driver struct{ *Workflow }

// pending is what comes later, if the wait of a token is still there then.
type pending struct {
	at    time.Time
	token string
	do    func()
}

// File reads a definition in the Open Workflow DSL, with the documents that it
// refers to. Findings fail the test.
func File(t TB, path string, given ...definition.Resource) *Workflow {
	t.Helper()
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("aqueducttest: %v", err)
	}
	return parse(t, path, source, given)
}

// Text is [File] for a definition in the test itself.
func Text(t TB, source string, given ...definition.Resource) *Workflow {
	t.Helper()
	return parse(t, "definition", []byte(source), given)
}

func parse(t TB, name string, source []byte, given []definition.Resource) *Workflow {
	t.Helper()
	p, err := openworkflow.Parse(name, source, given...)
	if err == nil && len(p.Needs) > 0 {
		err = fmt.Errorf("%s: a test fetches nothing: give it the document as a definition.Resource", p.Needs[0].Place)
	}
	if err != nil {
		t.Fatalf("aqueducttest: %v", err)
		return nil
	}
	w := Definition(t, p.Definition)
	t.Cleanup(func() {
		if !t.Failed() {
			Replay(w)
		}
	})
	return w
}

// Definition tests any definition, one that is Go code included.
func Definition(t TB, def engine.Definition) *Workflow {
	w := &Workflow{t: t, def: def, now: Epoch}
	w.driver = driver{w}
	t.Cleanup(func() {
		if t.Failed() && w.turns > 0 {
			t.Logf("timeline:\n%s", w.Timeline())
		}
	})
	return w
}

// At sets the moment of the start, before it.
func (w *Workflow) At(moment time.Time) *Workflow {
	w.now = moment.UTC()
	return w
}

// Attempts sets how many attempts are made at a call whose failure another one
// may mend, the first included: activity.attempts of a node, and 5 unless set.
// With 1 the first failure is the one that the workflow hears of.
func (w *Workflow) Attempts(most int) *Workflow {
	w.policy.MaxAttempts = most
	return w
}

// Now is the virtual time.
func (w *Workflow) Now() time.Time { return w.now }

// Start begins the instance and goes on until it waits.
func (w *Workflow) Start(input any) *Workflow {
	w.t.Helper()
	return w.StartWithKey("", input)
}

// StartWithKey is [Workflow.Start] with a business key.
func (w *Workflow) StartWithKey(key string, input any) *Workflow {
	w.t.Helper()
	if w.turns > 0 {
		w.t.Fatalf("aqueducttest: the instance is started already")
	}
	w.began = w.now
	env := signal.Envelope{SignalID: InstanceID, InstanceID: InstanceID, Type: signal.StartRequest, OccurredAt: w.now}
	in := w.driver.input(env)
	start := signal.Start{Definition: w.def.Ref().Name, BusinessKey: key, Input: w.driver.json(input)}
	decided(w.driver, in, func() (*engine.Outcome, error) { return engine.Begin(w.def, InstanceID, start, in) })
	w.driver.run()
	return w
}

func (w driver) input(env signal.Envelope) engine.Input {
	return engine.Input{Signal: env, Now: w.now, Clock: w.now, Key: []byte(InstanceID), Epoch: 1, Incarnation: incarnation}
}

// json is a value as JSON.
func (w driver) json(v any) json.RawMessage {
	w.t.Helper()
	raw, err := encode(v)
	if err != nil {
		w.t.Fatalf("aqueducttest: %v", err)
	}
	return raw
}

func encode(v any) (json.RawMessage, error) {
	var raw []byte
	switch v := v.(type) {
	case nil:
		return json.RawMessage("null"), nil
	case string:
		raw = []byte(v)
	case []byte:
		raw = v
	case json.RawMessage:
		raw = v
	default:
		return json.Marshal(v)
	}
	if !json.Valid(raw) {
		return nil, fmt.Errorf("%q is not JSON; a text needs quotes of its own: `\"text\"`", raw)
	}
	return raw, nil
}

// take makes a turn's outcome the state of the instance, by way of its stored
// form. What cannot be written faults the instance in its place, as on a node.
func (w driver) take(out *engine.Outcome, err error, in engine.Input) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("aqueducttest: the engine refuses: %v", err)
	}
	if w.turns++; w.turns > MaxTurns {
		w.t.Fatalf("aqueducttest: %d turns and no end; the workflow runs in a circle", MaxTurns)
	}
	encoded, err := written(out)
	faults := w.snap.Status != snapshot.Faulted && !w.snap.Status.Closed() && out.Disposition != engine.Buffered
	if err != nil && faults {
		if w.turns > 1 {
			out, err = engine.FaultWith(w.snap, engine.Unwritten(err), in)
		} else {
			out, err = engine.FaultFirst(w.def, out.Snapshot, engine.Unwritten(err), in)
		}
		if err == nil {
			encoded, err = written(out)
		}
	}
	if err == nil {
		w.snap, err = snapshot.Decode(encoded)
	}
	if err != nil {
		w.t.Fatalf("aqueducttest: the turn cannot be stored: %v", err)
	}
	w.entries = append(w.entries, out.Entries...)
	w.changeTasks(out.Tasks)
	for _, m := range out.Send {
		w.sent(m)
	}
	for _, e := range out.Entries {
		if e.Command != nil && !slices.ContainsFunc(out.Settled, func(s engine.Settled) bool { return s.Position == e.Position }) {
			w.command(e)
		}
	}
}

// written is the stored form of a turn's snapshot, if all of the turn can be
// written.
func written(out *engine.Outcome) ([]byte, error) {
	for _, m := range out.Send {
		if _, err := m.Envelope.Encode(); err != nil {
			return nil, err
		}
	}
	return out.Snapshot.Encode()
}

// sent keeps a message of a turn until it is due.
func (w driver) sent(m engine.Message) {
	w.t.Helper()
	body, err := m.Envelope.Encode()
	if err == nil {
		m.Envelope, err = signal.Decode(body) // as a queue gives it
	}
	switch {
	case err != nil:
		w.t.Fatalf("aqueducttest: a node could not send this: %v", err)
	case m.Envelope.InstanceID != InstanceID:
		w.child(m.Envelope)
	case m.Due.After(w.now):
		w.later(m.Due, m.Envelope)
	default:
		w.ready = append(w.ready, func() { w.deliver(m.Envelope) })
	}
}

// later delivers a signal at a moment.
func (w driver) later(at time.Time, env signal.Envelope) {
	w.due = append(w.due, pending{at, env.WaitingToken, func() {
		env.OccurredAt = w.now
		w.deliver(env)
	}})
}

// run delivers what is ready, until the instance only waits.
func (w driver) run() {
	w.t.Helper()
	for len(w.ready) > 0 {
		next := w.ready[0]
		w.ready = w.ready[1:]
		next()
	}
}

func (w driver) deliver(env signal.Envelope) engine.Disposition {
	w.t.Helper()
	if len(env.Payload) > 0 {
		if _, err := env.Encode(); err != nil {
			w.t.Fatalf("aqueducttest: a node could not send this: %v", err)
		}
	}
	in := w.input(env)
	return decided(w, in, func() (*engine.Outcome, error) { return engine.Step(w.def, w.snap, in) })
}

// decided makes a decision twice, and takes it.
func decided(w driver, in engine.Input, decide func() (*engine.Outcome, error)) engine.Disposition {
	w.t.Helper()
	out, err := decide()
	if again, e := decide(); err == nil && e == nil {
		w.same(out, again)
	}
	w.take(out, err, in)
	return out.Disposition
}

// same fails the test when a decision that was made twice came to different ends, as
// that of Go code with a clock, a random number or the order of a map in it does.
func (w driver) same(one, other *engine.Outcome) {
	w.t.Helper()
	for _, pair := range [][2]any{{one.Snapshot, other.Snapshot}, {one.Entries, other.Entries}, {one.Send, other.Send}, {one.Tasks, other.Tasks}} {
		a, err := json.Marshal(pair[0])
		b, e := json.Marshal(pair[1])
		if err == nil && e == nil && string(a) != string(b) {
			w.t.Fatalf("aqueducttest: %v", impure(a, b))
		}
	}
}

// signal makes a signal to the instance.
func (w driver) signal(typ signal.Type, token string, payload any, actor string) signal.Envelope {
	w.t.Helper()
	w.made++
	env := signal.Envelope{
		SignalID: fmt.Sprintf("signal-%d", w.made), InstanceID: InstanceID, RuntimeProvider: signal.Provider, Type: typ,
		WaitingToken: token, OccurredAt: w.now, Payload: w.json(payload),
	}
	if actor != "" {
		env.Headers = map[string]string{signal.HeaderActor: actor}
	}
	return env
}

// Operate does what an operator can: suspend, resume, retry, retry-same,
// retry-new, skip, cancel.
func (w *Workflow) Operate(op engine.Operation, output any) *Workflow {
	w.t.Helper()
	w.driver.started()
	var raw json.RawMessage
	if output != nil {
		raw = w.driver.json(output)
	}
	in := w.driver.input(signal.Envelope{SignalID: "operate", InstanceID: InstanceID})
	in.Requests = w.driver.requests()
	decided(w.driver, in, func() (*engine.Outcome, error) { return operate.Operate(w.def, w.snap, op, raw, in) })
	w.driver.run()
	return w
}

// requests are the commands of which nobody knows what became.
func (w driver) requests() map[int64]engine.Command {
	list := map[int64]engine.Command{}
	for _, past := range w.snap.Effects {
		for _, e := range w.entries {
			if past.Unknown && e.Position == past.Command && e.Command != nil {
				list[e.Position] = *e.Command
			}
		}
	}
	return list
}

func (w driver) started() {
	w.t.Helper()
	if w.turns == 0 {
		w.t.Fatalf("aqueducttest: the instance is not started")
	}
}
