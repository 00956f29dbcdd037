package program_test

import (
	"testing"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/operate"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

func operated(t *testing.T, def engine.Definition, s snapshot.Snapshot, op engine.Operation, n int) snapshot.Snapshot {
	t.Helper()
	out, err := operate.Operate(def, s, op, nil, turnInput(n, signal.Envelope{SignalID: "operate", InstanceID: "i"}))
	if err != nil {
		t.Fatal(err)
	}
	return out.Snapshot
}

func movedTo(t *testing.T, a, b engine.Definition, s snapshot.Snapshot) snapshot.Snapshot {
	t.Helper()
	out, err := planned(t, a, b, nil).Migrate(s, turnInput(5, signal.Envelope{}))
	if err != nil {
		t.Fatal(err)
	}
	return out.Snapshot
}

func came(t *testing.T, s snapshot.Snapshot, want string) {
	t.Helper()
	if s.Status != snapshot.Completed || string(s.State.Output) != want {
		t.Errorf("%s output %s error %+v; want %s", s.Status, s.State.Output, s.Error, want)
	}
}

// A timeout by expression is of the input of its task, also after a retry.
func TestARetryGivesTheWorkflowItsTimeoutByItsInput(t *testing.T) {
	def := parsed(t, "1.0.0", `timeout: {after: '${ .sla }'}
do:
  - one: {set: {x: 1}}
  - two: {call: a}
`)
	s := begin(t, def, `{"sla":"PT1H"}`)
	s = stepOn(t, def, s, len(s.Waits)-1, 5)
	s = operated(t, def, s, engine.Retry, 6)
	if s.Status == snapshot.Faulted {
		t.Error("the retry cannot be")
	}
}

func TestARetryGivesATaskItsTimeoutByItsInput(t *testing.T) {
	def := parsed(t, "1.0.0", `do:
  - outer:
      do:
        - one: {set: {x: 1}}
        - two: {call: a}
      timeout: {after: '${ .sla }'}
`)
	s := begin(t, def, `{"sla":"PT1H"}`)
	for i, w := range s.Waits {
		if w.Kind == snapshot.WaitCommand {
			s = stepOn(t, def, s, i, 5)
			break
		}
	}
	s = operated(t, def, s, engine.Retry, 6)
	if s.Status == snapshot.Faulted {
		t.Error("the retry cannot be")
	}
}

func TestARetryMakesTheOutputOnce(t *testing.T) {
	v1 := parsed(t, "1.0.0", `output: {as: '${ {n: (.n + 1)} }', schema: {document: {properties: {n: {type: string}}}}}
do:
  - one: {set: {n: 1}}
`)
	v2 := parsed(t, "1.0.1", `output: {as: '${ {n: (.n + 1)} }', schema: {document: {properties: {n: {type: number}}}}}
do:
  - one: {set: {n: 1}}
`)
	s := begin(t, v1, `{}`)
	s = operated(t, v2, movedTo(t, v1, v2, s), engine.Retry, 6) // as after a migration
	came(t, s, `{"n":2}`)
}

func TestTheTimeOfAnAttemptGoesByTheError(t *testing.T) {
	def := parsed(t, "1.0.0", `do:
  - outer:
      try: [{r: {call: charge}}]
      catch: {retry: {delay: PT1S, limit: {attempt: {count: 5, duration: '${ if $error.status == 500 then "PT10M" else "PT1S" end }'}}}}
`)
	s := begin(t, def, `{}`)
	s = stepOn(t, def, s, 0, 5)
	s = stepOn(t, def, s, 0, 6)
	for _, w := range s.Waits {
		if w.Kind == snapshot.WaitTimeout && w.Until.Sub(epoch).Minutes() < 5 {
			t.Error("$error is null in limit.attempt.duration")
		}
	}
}

// A status that is no whole number from 100 to 599 is an error of its own.
func TestAStatusIsAWholeNumber(t *testing.T) {
	def := parsed(t, "1.0.0", `do:
  - r: {raise: {error: {type: 'https://e.example/first', status: '${ .code }'}}}
`)
	for in, want := range map[string]int{`{"code":404.0}`: 404, `{"code":4.04e2}`: 404, `{"code":"404"}`: 404, `{"code":"x"}`: 400, `{}`: 400, `{"code":404.5}`: 400, `{"code":1e300}`: 400, `{"code":99}`: 400} {
		s := begin(t, def, in)
		if s.Error == nil || s.Error.Status != want || (s.Error.Type == "https://e.example/first") != (want == 404) {
			t.Errorf("%s: %+v", in, s.Error)
		}
	}
}
