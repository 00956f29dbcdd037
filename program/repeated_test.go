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

// Where the workflow could not take its input, a retry takes it, and a skip gives it
// another.
func TestARetryTakesTheInputOfTheWorkflow(t *testing.T) {
	const do = `input: {schema: {document: {type: object, required: [id]}}, from: '${ {seen: .id} }'}
do:
  - one: {set: '${ {got: .} }'}
`
	v1, v2 := parsed(t, "1.0.0", do), parsed(t, "1.0.1", `input: {from: '${ {seen: .noid} }'}
do:
  - one: {set: '${ {got: .} }'}
`)
	s := begin(t, v1, `{"noid":1}`)
	if again := operated(t, v1, s, engine.Retry, 6); again.Status != snapshot.Faulted || again.Error.Status != 400 {
		t.Errorf("%s %s: the schema of the input was passed over", again.Status, again.State.Output)
	}
	came(t, operated(t, v1, s, engine.Skip, 6), `{"got":null}`)
	again := operated(t, v1, operated(t, v1, s, engine.Retry, 6), engine.Retry, 7)
	if again.Status != snapshot.Faulted {
		t.Errorf("a second retry: %s %s", again.Status, again.State.Output)
	}
	came(t, operated(t, v1, again, engine.Skip, 8), `{"got":null}`)
	came(t, operated(t, v2, movedTo(t, v1, v2, s), engine.Retry, 6), `{"got":{"seen":1}}`)
}

func TestARetryTakesTheInputOfATask(t *testing.T) {
	v1 := parsed(t, "1.0.0", `do:
  - one: {set: '${ {got: .} }', input: {from: .order}, timeout: {after: '${ .sla }'}}
`)
	v2 := parsed(t, "1.0.1", `do:
  - one: {set: '${ {got: .} }', input: {from: .order}, timeout: {after: PT1H}}
`)
	s := begin(t, v1, `{"order":{"id":7}}`)
	came(t, operated(t, v2, movedTo(t, v1, v2, s), engine.Retry, 6), `{"got":{"id":7}}`)
}

// What the workflow makes of its output is made when no task is under way: none catches
// its error, and a retry makes the output again, of what the last task has come to.
func TestTheOutputOfTheWorkflowIsMadeByItself(t *testing.T) {
	const good, bad = `output: {as: '${ {got: .} }'}
`, `output: {as: '${ if true then error("x") else . end }'}
`
	for _, do := range []string{
		`do:
  - one: {set: {a: 1}, then: end}
  - two: {set: {a: 2}}
`,
		`do:
  - outer:
      try: [{r: {set: {a: 1}, then: end}}]
      catch: {do: [{c: {set: {a: 2}}}]}
`,
		`do:
  - outer:
      try:
        - both:
            fork:
              branches:
                - one: {do: [{in: {try: [{r: {set: {a: 1}, then: end}}], catch: {}}}]}
                - two: {call: other}
      catch: {do: [{c: {set: {a: 2}}}]}
      timeout: {after: PT1H}
`,
	} {
		v1, v2 := parsed(t, "1.0.0", bad+do), parsed(t, "1.0.1", good+do)
		s := begin(t, v1, `{}`)
		if s.Status != snapshot.Faulted || len(s.Branches) != 1 || len(s.Waits) != 0 {
			t.Fatalf("%s %s: %d branches, waits %+v; of\n%s", s.Status, s.State.Output, len(s.Branches), s.Waits, do)
		}
		came(t, operated(t, v2, movedTo(t, v1, v2, s), engine.Retry, 6), `{"got":{"a":1}}`)
	}
}

// A task's own variables are of what runs inside: its output.as sees those around it, and
// so does the condition of a catch.
func TestVariablesAreThoseAround(t *testing.T) {
	for do, want := range map[string]string{
		`do:
  - outer:
      for: {in: '${ [["a","b"]] }'}
      do:
        - inner:
            for: {in: '${ $item }'}
            do: [{x: {set: '${ . }'}}]
            output: {as: '${ {of: $item} }'}
`: `{"of":["a","b"]}`,
		`do:
  - outer:
      try: [{r: {raise: {error: {type: 'https://e.example/first', status: 500}}}}]
      catch:
        do:
          - inner:
              try: [{r: {raise: {error: {type: 'https://e.example/second', status: 500}}}}]
              catch: {}
              output: {as: '${ {of: $error.type} }'}
`: `{"of":"https://e.example/first"}`,
		`do:
  - outer:
      for: {in: '${ ["a"] }'}
      do:
        - guarded:
            try:
              - inner:
                  for: {in: '${ ["b"] }'}
                  do: [{x: {raise: {error: {type: 'https://e.example/first', status: 500}}}}]
            catch: {when: '${ $item == "a" }', do: [{c: {set: {caught: true}}}]}
`: `{"caught":true}`,
	} {
		came(t, begin(t, parsed(t, "1.0.0", do), `{}`), want)
	}
}

// What a try makes of its output is not inside it: it takes no error of that, and its body,
// which has succeeded, does not run again.
func TestATryTakesNoErrorOfItsOwnOutput(t *testing.T) {
	for _, catch := range []string{
		`{do: [{c: {set: {caught: true}}}]}`,
		`{retry: {delay: PT1S, limit: {attempt: {count: 5}}}}`,
	} {
		def := parsed(t, "1.0.0", `do:
  - outer:
      try: [{r: {call: charge}}]
      catch: `+catch+`
      output: {as: '${ error("x") }'}
`)
		s := stepOn(t, def, begin(t, def, `{}`), 0, 1)
		if s.Status != snapshot.Faulted || s.Error.Instance != "/do/0/outer" {
			t.Errorf("catch: %s: %s %s %+v", catch, s.Status, s.State.Output, s.Error)
		}
	}
}

func TestACatchMayContinueWhereItsTryDoesNot(t *testing.T) {
	const caught = `
      catch: {then: continue}
      then: end
  - next: {set: {next: true}}
`
	came(t, begin(t, parsed(t, "1.0.0", `do:
  - outer:
      try: [{r: {raise: {error: {type: 'https://e.example/first', status: 500}}}}]`+caught), `{}`), `{"next":true}`)
	came(t, begin(t, parsed(t, "1.0.0", `use:
  extensions:
    - logged: {extend: try, before: [{log: {set: '${ . }'}}]}
do:
  - outer:
      try: [{r: {raise: {error: {type: 'https://e.example/first', status: 500}}}}]`+caught), `{}`), `{"next":true}`)
}

// A task that waits goes on as one that asks for its input: that is what its branch has.
func TestAWaitingTaskGoesOnAsOneThatAsksForItsInput(t *testing.T) {
	a, b := parsed(t, "1.0.0", `do:
  - one: {call: a}
`), parsed(t, "1.0.1", `do:
  - one: {call: a, output: {as: '${ {in: $input, out: .} }'}}
`)
	came(t, stepOn(t, b, movedTo(t, a, b, begin(t, a, `{"id":7}`)), 0, 2), `{"in":{"id":7},"out":{"n":2}}`)
	a, b = parsed(t, "1.0.0", `do:
  - one: {fork: {branches: [{x: {call: a}}]}}
`), parsed(t, "1.0.1", `do:
  - one: {fork: {branches: [{x: {call: a}}]}, output: {as: '${ {in: $input, out: .} }'}}
`)
	came(t, stepOn(t, b, movedTo(t, a, b, begin(t, a, `{"id":7}`)), 0, 2), `{"in":{"id":7},"out":[{"n":2}]}`)
}

// Who cancels a suspended instance does not undo what the outside has refused meanwhile.
func TestWhatWasRefusedWhileSuspendedIsNotCompensated(t *testing.T) {
	def := parsed(t, "1.0.0", `do:
  - one:
      call: charge
      metadata: {compensate: {call: refund}}
`)
	suspended := operated(t, def, begin(t, def, `{}`), engine.Suspend, 2)
	if s := operated(t, def, suspended, engine.Compensate, 3); s.Status != snapshot.Waiting || len(s.Waits) != 1 {
		t.Errorf("without an answer: %s %+v", s.Status, s.Waits)
	}
	refused := stepOn(t, def, suspended, 0, 5)
	if s := operated(t, def, refused, engine.Compensate, 6); s.Status != snapshot.Cancelled || len(s.Waits) != 0 {
		t.Errorf("refused: %s %+v", s.Status, s.Waits)
	}
}
