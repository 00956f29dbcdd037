package program_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/definition/openworkflow"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/migration"
	"github.com/aqueduct-engine/aqueduct/operate"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/program"
	"github.com/aqueduct-engine/aqueduct/schedule"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// errand is a definition that is Go code: it has one command performed, and
// ends with what that gives. It has nothing that only some definitions have.
type errand struct{ version string }

func (e errand) Ref() snapshot.Definition {
	return snapshot.Definition{Name: "t/errand", Version: e.version, Digest: e.version}
}

func (errand) Begin(t *engine.Turn, input json.RawMessage) error {
	t.Perform(engine.Command{Target: "run", Input: input, Pointer: "/errand"}, snapshot.Wait{Pointer: "/errand"})
	return nil
}

func (errand) Resume(t *engine.Turn, _ snapshot.Wait, r engine.Result) error {
	if r.Error != nil {
		t.Fault(*r.Error)
	} else {
		t.Complete(r.Output)
	}
	return nil
}

func (errand) Matches(*snapshot.Snapshot, snapshot.Wait, json.RawMessage) (bool, error) {
	return false, nil
}

func (errand) Correlate(string, int, int, json.RawMessage) (string, bool, error) {
	return "", false, nil
}

func (e errand) Recover(t *engine.Turn, op engine.Operation, output json.RawMessage) error {
	if op == engine.Skip {
		t.Complete(output)
		return nil
	}
	t.Snap.Error = nil
	return e.Begin(t, t.Snap.State.Input)
}

func TestGoCodeIsRecovered(t *testing.T) {
	t.Parallel()
	def := errand{"1"}
	s := begin(t, def, `{}`)
	out, err := engine.Step(def, s, turnInput(1, answerWait(s.Waits[0], 5)))
	if err != nil || out.Snapshot.Status != snapshot.Faulted {
		t.Fatalf("%+v, %v", out, err)
	}
	skipped, err := operate.Operate(def, out.Snapshot, engine.Skip, json.RawMessage(`7`), turnInput(2, signal.Envelope{}))
	if err != nil || skipped.Snapshot.Status != snapshot.Completed || string(skipped.Snapshot.State.Output) != "7" {
		t.Errorf("skip: %+v, %v", skipped, err)
	}
	again, err := operate.Operate(def, out.Snapshot, engine.Retry, nil, turnInput(2, signal.Envelope{}))
	if err != nil || again.Snapshot.Status != snapshot.Waiting || again.Snapshot.Waits[0].Token == s.Waits[0].Token {
		t.Errorf("retry: %+v, %v", again, err)
	}
}

// retried is an errand whose author has a retry policy.
type retried struct{ errand }

func (retried) Retries(_ *engine.Turn, w snapshot.Wait, e snapshot.Error) (bool, error) {
	return w.Pointer == "/errand" && e.Status == 503, nil
}

func TestRetryPoliciesAreThoseOfDocumentsAndOfGoCode(t *testing.T) {
	t.Parallel()
	document := parsed(t, "1.0.0", `do:
  - guarded:
      try: [{errand: {call: run}}]
      catch: {errors: {with: {status: 503}}, retry: {delay: PT1S, limit: {attempt: {count: 2}}}}
`)
	for _, c := range []struct {
		name  string
		def   engine.Definition
		takes bool
	}{{"a document", document, true}, {"Go code", retried{}, true}, {"Go code without", errand{}, false}} {
		s := begin(t, c.def, `{}`)
		for status, want := range map[int]bool{503: c.takes, 500: false} {
			got, err := engine.Retries(c.def, s, s.Waits[0].Token, snapshot.Error{Status: status}, turnInput(1, signal.Envelope{}))
			if err != nil || got != want {
				t.Errorf("%s: retries %d: %v, %v", c.name, status, got, err)
			}
		}
		if got, err := engine.Retries(c.def, s, "gone", snapshot.Error{Status: 503}, turnInput(1, signal.Envelope{})); got || err != nil {
			t.Errorf("%s: retries what nobody waits for: %v, %v", c.name, got, err)
		}
	}
}

// door is Go code whose instances rest in a state.
type door struct{ errand }

func (door) Begin(t *engine.Turn, _ json.RawMessage) error {
	t.Snap.State.Name = "Open"
	t.Await(snapshot.Wait{Kind: snapshot.WaitState, Pointer: "/states/Open"})
	return nil
}

func (door) HasStates() bool { return true }

func (door) Takes(s *snapshot.Snapshot) []string {
	if s.Status != snapshot.Waiting && s.Status != snapshot.Running {
		return nil
	}
	return []string{"close"}
}

func (d door) Admit(t *engine.Turn, w snapshot.Wait, event engine.Result) error {
	var e struct{ Type string }
	if err := json.Unmarshal(event.Output, &e); err != nil || !slices.Contains(d.Takes(t.Snap), e.Type) {
		return problem.New(problem.Conflict, "lifecycle.refused", "%s does not take %q", w.Pointer, e.Type)
	}
	return nil
}

func TestStatesAreThoseOfDocumentsAndOfGoCode(t *testing.T) {
	t.Parallel()
	p, err := openworkflow.Parse("l.yaml", []byte(`{lifecycle: '1.0', environment: t, definition: door, version: '1.0.0', events: {close: {}, open: {}},
  states: {Open: {category: initial}, Closed: {category: final}}, transitions: [{from: Open, event: close, to: Closed}]}`))
	if err != nil {
		t.Fatal(err)
	}
	event := func(def engine.Definition, s snapshot.Snapshot, name string) (*engine.Outcome, error) {
		return engine.Step(def, s, turnInput(1, signal.Envelope{
			SignalID: "s", InstanceID: "i", Type: signal.ExternalSignal, Payload: json.RawMessage(`{"type":"` + name + `"}`),
		}))
	}
	for name, def := range map[string]engine.Definition{"a document": p.Definition, "Go code": door{}} {
		s := begin(t, def, `{}`)
		if takes := def.(engine.Stateful).Takes(&s); !reflect.DeepEqual(takes, []string{"close"}) {
			t.Errorf("%s: takes %v", name, takes)
		}
		if _, err := event(def, s, "open"); problem.CodeOf(err) != "lifecycle.refused" {
			t.Errorf("%s: an event that it does not take: %v", name, err)
		}
		suspended, err := operate.Operate(def, s, engine.Suspend, nil, turnInput(1, signal.Envelope{}))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := event(def, suspended.Snapshot, "close"); problem.CodeOf(err) != "lifecycle.held" {
			t.Errorf("%s: an event while it is suspended: %v", name, err)
		}
		if out, err := event(def, s, "close"); err != nil || out.Disposition != engine.Applied || out.Snapshot.Status != snapshot.Completed {
			t.Errorf("%s: an event that it takes: %+v, %v", name, out, err)
		}
	}
	without := struct{ engine.Definition }{door{}}
	if out, err := event(without, begin(t, without, `{}`), "open"); err != nil || out.Disposition != engine.Buffered {
		t.Errorf("without states an event is not kept: %+v, %v", out, err)
	}
}

// hourly is an errand that has a schedule.
type hourly struct {
	errand
	*schedule.Schedule
}

func TestSchedulesAreThoseOfDocumentsAndOfGoCode(t *testing.T) {
	t.Parallel()
	every, err := schedule.New(schedule.Schedule{Every: "PT1H"})
	if err != nil {
		t.Fatal(err)
	}
	at := func(hours int, env signal.Envelope) engine.Input {
		in := turnInput(hours*3600, env)
		in.Clock = in.Now
		return in
	}
	for name, def := range map[string]engine.Definition{
		"a document": parsed(t, "1.0.0", "schedule: {every: PT1H}\ndo:\n  - a: {set: {x: 1}}\n"), "Go code": hourly{errand{"1.0.0"}, every},
	} {
		id, start, ok := schedule.Start(def)
		if !ok {
			t.Fatalf("%s has no schedule", name)
		}
		out, err := engine.Begin(def, id, start, at(0, signal.Envelope{}))
		if err != nil {
			t.Fatal(err)
		}
		w := out.Snapshot.Waits[0]
		if w.Kind != snapshot.WaitTimer || !w.Until.Equal(epoch.Add(time.Hour)) {
			t.Errorf("%s: waits for %+v", name, w)
		}
		out, err = engine.Step(def, out.Snapshot, at(1, signal.Envelope{SignalID: "s", InstanceID: id, Type: signal.TimerDue, WaitingToken: w.Token, DueAt: w.Until}))
		if err != nil || len(out.Send) != 2 || out.Send[0].Envelope.Type != signal.StartRequest || !out.Send[1].Due.Equal(epoch.Add(2*time.Hour)) {
			t.Fatalf("%s: a tick: %+v, %v", name, out, err)
		}
		ended, begun, err := schedule.HandOver(def, &out.Snapshot, errand{"2.0.0"}, at(2, signal.Envelope{}))
		if err != nil || ended.Snapshot.Status != snapshot.Cancelled || begun != nil {
			t.Errorf("%s: a version without a schedule: %+v, %+v, %v", name, ended, begun, err)
		}
	}
	if _, _, ok := schedule.Start(errand{}); ok {
		t.Error("Go code without a schedule begins one")
	}
	asked := signal.Start{Schedule: &signal.Schedule{}}
	if _, err := engine.Begin(errand{}, "i", asked, at(0, signal.Envelope{})); err == nil {
		t.Error("a schedule instance of what has no schedule begins")
	}
}

// mobile is an errand whose instances go on in other versions.
type mobile struct{ errand }

func (mobile) Document() any { return nil }

func (mobile) MigrateTo(_ engine.Definition, pointers map[string]string) (migration.Move, error) {
	return func(s *snapshot.Snapshot) (list []migration.Position) {
		for i := range s.Waits {
			at := migration.Position{Pointer: s.Waits[i].Pointer, To: pointers[s.Waits[i].Pointer]}
			if s.Waits[i].Pointer = at.To; at.To == "" {
				at.Problem = "the map does not say where it is"
			}
			list = append(list, at)
		}
		return list
	}, nil
}

// successor is Go code that calls itself a version of a document.
type successor struct{ mobile }

func (successor) Ref() snapshot.Definition { return snapshot.Definition{Name: "t/m", Version: "2.0.0"} }

// wrapped is Go code around a document.
type wrapped struct{ *program.Program }

func TestGoCodeIsMigrated(t *testing.T) {
	t.Parallel()
	if _, err := definition.PlanMigration(errand{"1"}, errand{"2"}, nil); problem.CodeOf(err) != "migration.invalid" {
		t.Errorf("Go code that says no way: %v", err)
	}
	if _, err := definition.PlanMigration(parsed(t, "1.0.0", before), successor{}, nil); problem.CodeOf(err) != "migration.invalid" || !strings.Contains(err.Error(), "Go code") {
		t.Errorf("a document to Go code: %v", err)
	}
	a, b := mobile{errand{"1"}}, mobile{errand{"2"}}
	s := begin(t, a, `{}`)
	out, err := planned(t, a, b, map[string]string{"/errand": "/job"}).Migrate(s, turnInput(1, signal.Envelope{}))
	if err != nil || out.Snapshot.Definition != b.Ref() || out.Snapshot.Waits[0].Pointer != "/job" {
		t.Errorf("%+v, %v", out, err)
	}
	if _, err := planned(t, a, b, nil).Migrate(s, turnInput(1, signal.Envelope{})); problem.CodeOf(err) != "migration.unmapped" {
		t.Errorf("without a map: %v", err)
	}
	old, next := wrapped{parsed(t, "1.0.0", before).(*program.Program)}, wrapped{parsed(t, "2.0.0", after).(*program.Program)}
	out, err = planned(t, old, next, shifted).Migrate(begin(t, old, `{}`), turnInput(1, signal.Envelope{}))
	if err != nil || out.Snapshot.Waits[0].Pointer != "/do/1/first" {
		t.Errorf("around a document: %+v, %v", out, err)
	}
}

// hasty is an errand whose commands are given up soon.
type hasty struct{ errand }

func (hasty) GiveUp() time.Duration { return 5 * time.Second }

func TestGoCodeSaysHowLongItsCommandsWait(t *testing.T) {
	t.Parallel()
	for want, def := range map[time.Duration]engine.Definition{0: errand{}, 5 * time.Second: hasty{}} {
		out, err := engine.Begin(def, "i", signal.Start{Input: json.RawMessage(`{}`)}, turnInput(0, signal.Envelope{}))
		if err != nil || out.Entries[1].Command.GiveUp != want {
			t.Errorf("%T: %+v, %v", def, out.Entries, err)
		}
	}
}
