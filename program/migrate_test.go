package program_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
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
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

func parsed(t *testing.T, version, do string) engine.Definition {
	t.Helper()
	doc := "document: {dsl: '1.0.3', namespace: t, name: m, version: '" + version + "'}\n" + do
	p, err := openworkflow.Parse("m.yaml", []byte(doc))
	if err != nil {
		t.Fatalf("%v\n%s", err, doc)
	}
	return p.Definition
}

func turnInput(n int, env signal.Envelope) engine.Input {
	return engine.Input{Signal: env, Now: epoch.Add(time.Duration(n) * time.Second), Key: []byte("key"), Incarnation: "inc"}
}

func begin(t *testing.T, def engine.Definition, input string) snapshot.Snapshot {
	t.Helper()
	out, err := engine.Begin(def, "i", signal.Start{Input: json.RawMessage(input)}, turnInput(0, signal.Envelope{}))
	if err != nil {
		t.Fatal(err)
	}
	return out.Snapshot
}

// answerWait is the signal that satisfies a wait.
func answerWait(w snapshot.Wait, n int) signal.Envelope {
	env := signal.Envelope{SignalID: fmt.Sprint("s", n), InstanceID: "i", WaitingToken: w.Token}
	switch w.Kind {
	case snapshot.WaitCommand, snapshot.WaitTask:
		env.Type, env.Payload = signal.TaskCompleted, json.RawMessage(fmt.Sprintf(`{"output":{"n":%d}}`, n))
		if n%5 == 0 {
			env.Payload = json.RawMessage(`{"error":{"type":"https://example.org/e1","status":500}}`)
		}
	case snapshot.WaitEvent:
		env.Type, env.WaitingToken = signal.ExternalSignal, ""
		env.Payload = json.RawMessage(fmt.Sprintf(`{"type":%q,"data":{"n":%d}}`, w.Event, n))
	case snapshot.WaitRetry:
		env.Type = signal.RetryDue
	case snapshot.WaitNext:
		env.Type = signal.InternalContinue
	default:
		env.Type = signal.TimerDue
	}
	env.DueAt = w.Until
	return env
}

func stepOn(t *testing.T, def engine.Definition, s snapshot.Snapshot, at, n int) snapshot.Snapshot {
	t.Helper()
	out, err := engine.Step(def, s, turnInput(n, answerWait(s.Waits[at], n)))
	if err != nil {
		t.Fatal(err)
	}
	return out.Snapshot
}

const before = `do:
  - first: {call: a, output: {as: '${ {first: .} }'}}
  - loop:
      for: {each: x, in: '${ [1, 2] }'}
      do:
        - inner: {call: b, with: {x: '${ $x }'}, output: {as: '${ {inner: ., x: $x} }'}}
        - heard: {listen: {to: {one: {with: {type: e}}}}}
  - guarded:
      try: [{risky: {call: c}}]
      catch: {do: [{mend: {call: humanTask, with: {title: Mend}}}]}
`

// In after, a task is new before every other, and the loop has one more inside.
const after = `do:
  - zeroth: {set: {zero: 0}}
  - first: {call: a, output: {as: '${ {first: .} }'}}
  - between: {set: '${ . }'}
  - loop:
      for: {each: x, in: '${ [1, 2] }'}
      do:
        - fresh: {set: '${ . }'}
        - inner: {call: b, with: {x: '${ $x }'}, output: {as: '${ {inner: ., x: $x, moved: true} }'}}
        - heard: {listen: {to: {one: {with: {type: e}}}}}
  - guarded:
      try: [{risky: {call: c}}]
      catch: {do: [{note: {set: '${ . }'}}, {mend: {call: humanTask, with: {title: Mend}}}]}
`

var shifted = map[string]string{
	"/do/0/first":                   "/do/1/first",
	"/do/1/loop":                    "/do/3/loop",
	"/do/1/loop/do/0/inner":         "/do/3/loop/do/1/inner",
	"/do/1/loop/do/1/heard":         "/do/3/loop/do/2/heard",
	"/do/2/guarded":                 "/do/4/guarded",
	"/do/2/guarded/catch/do/0/mend": "/do/4/guarded/catch/do/1/mend",
}

func planned(t *testing.T, a, b engine.Definition, pointers map[string]string) *definition.MigrationPlan {
	t.Helper()
	m, err := definition.PlanMigration(a, b, pointers)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// At each of its waits the instance is moved, and ends in the new version.
func TestMigrateAtEveryWait(t *testing.T) {
	t.Parallel()
	a, b := parsed(t, "1.0.0", before), parsed(t, "2.0.0", after)
	m := planned(t, a, b, shifted)
	for stop := range 7 {
		s := begin(t, a, `{}`)
		for n := 1; n <= stop && !s.Status.Closed(); n++ {
			s = stepOn(t, a, s, 0, n)
		}
		if s.Status.Closed() {
			break
		}
		in := turnInput(50, signal.Envelope{Headers: map[string]string{signal.HeaderActor: "olga"}})
		out, err := m.Migrate(s, in)
		if err != nil {
			t.Fatalf("after %d turns: %v", stop, err)
		}
		next := out.Snapshot
		if e := out.Entries[0]; e.Type != definition.EntryMigrated || e.Meta.Actor != "olga" || !bytes.Contains(e.Data, []byte(`"from":{"name":"t/m","version":"1.0.0"`)) {
			t.Errorf("%+v", e)
		}
		if len(next.Waits) != len(s.Waits) || next.Waits[0].Token != s.Waits[0].Token || next.Version != s.Version+1 || next.Definition.Version != "2.0.0" {
			t.Errorf("after %d turns: %+v", stop, next.Waits)
		}
		for n := 6 * 10; !next.Status.Closed(); n++ {
			if n > 80 {
				t.Fatalf("after %d turns: no end, %+v", stop, next)
			}
			next = stepOn(t, b, next, 0, n*5+1)
		}
		if next.Status != snapshot.Completed {
			t.Errorf("after %d turns: %s %+v", stop, next.Status, next.Error)
		}
		if _, err := engine.Step(a, out.Snapshot, turnInput(60, answerWait(out.Snapshot.Waits[0], 1))); problem.CodeOf(err) != "definition.digest" {
			t.Errorf("the old version still decides: %v", err)
		}
	}
}

func TestWhatIsUnmappedIsRefused(t *testing.T) {
	t.Parallel()
	a, b := parsed(t, "1.0.0", before), parsed(t, "2.0.0", after)
	s := begin(t, a, `{}`)
	m := planned(t, a, b, nil)
	want := []migration.Position{{Pointer: "/do/0/first", Problem: "version 2.0.0 has no such task, and the map does not say where it is"}}
	if got := m.Positions(s); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	_, err := m.Migrate(s, turnInput(1, signal.Envelope{}))
	if problem.CodeOf(err) != "migration.unmapped" || !strings.Contains(err.Error(), "/do/0/first") {
		t.Error(err)
	}
	s = stepOn(t, a, s, 0, 1)
	partly := planned(t, a, b, map[string]string{"/do/1/loop": "/do/3/loop"})
	if got := partly.Positions(s); len(got) != 2 || got[0].To != "/do/3/loop" || got[1].Pointer != "/do/1/loop/do/0/inner" || got[1].Problem == "" {
		t.Errorf("%+v", got)
	}
	for name, pointers := range map[string]map[string]string{
		"unknown old":  {"/do/9/x": "/do/0/zeroth"},
		"unknown new":  {"/do/0/first": "/do/9/x"},
		"another kind": {"/do/0/first": "/do/0/zeroth"},
		"a list":       {"/do": "/do"},
	} {
		if _, err := definition.PlanMigration(a, b, pointers); problem.CodeOf(err) != "migration.invalid" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := definition.PlanMigration(a, a, nil); problem.CodeOf(err) != "migration.invalid" {
		t.Error(err)
	}
}

func TestWhatCannotGoOnIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ old, now, want string }{
		"another event": {`do: [{l: {listen: {to: {one: {with: {type: a}}}}}}]`, `do: [{l: {listen: {to: {one: {with: {type: b}}}}}}]`, "listens for something else"},
		"another event of a function": {
			"use: {functions: {w: {listen: {to: {one: {with: {type: a}}}}}}}\ndo: [{l: {call: w}}]",
			"use: {functions: {w: {listen: {to: {one: {with: {type: b}}}}}}}\ndo: [{l: {call: w}}]", "listens for something else"},
		"fewer events of a function": {
			"use: {functions: {w: {listen: {to: {any: [{with: {type: a}}, {with: {type: b}}]}}}}}\ndo: [{l: {call: w}}]",
			"use: {functions: {w: {listen: {to: {any: [{with: {type: a}}]}}}}}\ndo: [{l: {call: w}}]", "listens for something else"},
		"another event of an extension": {
			"use: {extensions: [{x: {extend: call, before: [{l: {listen: {to: {one: {with: {type: a}}}}}}]}}]}\ndo: [{c: {call: a}}]",
			"use: {extensions: [{x: {extend: call, before: [{l: {listen: {to: {one: {with: {type: b}}}}}}]}}]}\ndo: [{c: {call: a}}]", "listens for something else"},
		"another variable of events": {`do: [{l: {listen: {to: {any: [{with: {type: a}}], until: '${ length > 1 }'}}, foreach: {item: x, do: [{c: {call: a}}]}}}]`,
			`do: [{l: {listen: {to: {any: [{with: {type: a}}], until: '${ length > 1 }'}}, foreach: {item: y, do: [{c: {call: a}}]}}}]`, "listens for something else"},
		"another variable": {`do: [{f: {for: {each: x, in: '${ [1] }'}, do: [{c: {call: a}}]}}]`,
			`do: [{f: {for: {each: y, in: '${ [1] }'}, do: [{c: {call: a}}]}}]`, "variables of its loop"},
		"input that was not kept": {`do: [{d: {do: [{c: {call: a}}]}}]`,
			`do: [{d: {do: [{c: {call: a}}], output: {as: '${ $input }'}}}]`, "asks for its input"},
		"no catch any more": {`do: [{g: {try: [{r: {raise: {error: {type: 'https://e', status: 500}}}}], catch: {do: [{c: {call: a}}]}}}]`,
			`do: [{g: {try: [{r: {raise: {error: {type: 'https://e', status: 500}}}}], catch: {}}}]`, "no such task"},
		"another error variable": {`do: [{g: {try: [{r: {raise: {error: {type: 'https://e', status: 500}}}}], catch: {as: x, do: [{c: {call: a}}]}}}]`,
			`do: [{g: {try: [{r: {raise: {error: {type: 'https://e', status: 500}}}}], catch: {as: y, do: [{c: {call: a}}]}}}]`, "variable of its error"},
	} {
		a, b := parsed(t, "1.0.0", c.old), parsed(t, "2.0.0", c.now)
		s := begin(t, a, `{}`)
		_, err := planned(t, a, b, nil).Migrate(s, turnInput(1, signal.Envelope{}))
		if problem.CodeOf(err) != "migration.unmapped" || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What keeps its input may begin again from that.
func TestATryGoesOnInAVersionWithATimeout(t *testing.T) {
	t.Parallel()
	const of = "do: [{g: {try: [{c: {call: a}}], catch: {}}}]"
	a, b := parsed(t, "1.0.0", of), parsed(t, "2.0.0", "timeout: {after: PT1H}\n"+of)
	out, err := planned(t, a, b, nil).Migrate(begin(t, a, `{}`), turnInput(1, signal.Envelope{}))
	if err != nil || out.Snapshot.Definition.Version != "2.0.0" {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestAListenOfAFunctionGoesOn(t *testing.T) {
	t.Parallel()
	const of = "use: {functions: {w: {listen: {to: {any: [{with: {type: a}}], until: '${ length > 1 }'}}, foreach: {item: x}}}}\ndo: [{l: {call: w}}"
	a, b := parsed(t, "1.0.0", of+"]"), parsed(t, "2.0.0", of+", {more: {set: {a: 1}}}]")
	out, err := planned(t, a, b, nil).Migrate(begin(t, a, `{}`), turnInput(1, signal.Envelope{}))
	if err != nil || len(out.Snapshot.Waits) != 1 || out.Snapshot.Definition.Version != "2.0.0" {
		t.Errorf("%+v, %v", out.Snapshot.Waits, err)
	}
}

const forked = `do:
%s
  - both:
      fork:
        branches:
          - left: {do: [{l1: {call: a}}, {l2: {call: humanTask, with: {title: T}}}]}
          - right: {call: b}
`

func TestBranchesMove(t *testing.T) {
	t.Parallel()
	a := parsed(t, "1.0.0", fmt.Sprintf(forked, ""))
	b := parsed(t, "2.0.0", fmt.Sprintf(forked, "  - before: {set: '${ . }'}"))
	m := planned(t, a, b, map[string]string{"/do/0/both": "/do/1/both"})
	s := stepOn(t, a, begin(t, a, `{}`), 0, 1)
	out, err := m.Migrate(s, turnInput(3, signal.Envelope{}))
	if err != nil || len(m.Positions(s)) < 3 {
		t.Fatalf("%+v, %v", m.Positions(s), err)
	}
	s = out.Snapshot
	for n := 6; len(s.Waits) > 0; n += 5 {
		s = stepOn(t, b, s, 0, n)
	}
	if s.Status != snapshot.Completed {
		t.Errorf("%s %+v", s.Status, s.Error)
	}
	c := parsed(t, "3.0.0", fmt.Sprintf(forked, "")+"          - third: {call: c}\n")
	_, err = planned(t, a, c, nil).Migrate(begin(t, a, `{}`), turnInput(3, signal.Envelope{}))
	if problem.CodeOf(err) != "migration.unmapped" || !strings.Contains(err.Error(), "branches around it are others") {
		t.Error(err)
	}
}

// What a branch that is done has come to is known by its place: in a version that has the
// branches in another order it would be another's.
func TestBranchesThatAreDoneKeepTheirPlaces(t *testing.T) {
	t.Parallel()
	fork := func(version string, branches ...string) engine.Definition {
		return parsed(t, version, "do: [{both: {fork: {branches: ["+strings.Join(branches, ", ")+"]}}}]\n")
	}
	const left, middle, right, other = "{left: {call: a}}", "{middle: {call: b}}", "{right: {call: humanTask, with: {title: T}}}", "{other: {call: c}}"
	const at = "/do/0/both/fork/branches/"
	a := fork("1.0.0", left, middle, right)
	s := begin(t, a, `{}`)
	for n := range 2 {
		command := slices.IndexFunc(s.Waits, func(w snapshot.Wait) bool { return w.Kind == snapshot.WaitCommand })
		s = stepOn(t, a, s, command, n+1)
	}
	if len(s.Waits) != 1 || s.Waits[0].Kind != snapshot.WaitTask {
		t.Fatalf("%+v", s.Waits)
	}
	swapped := map[string]string{at + "0/left": at + "1/left", at + "1/middle": at + "0/middle"}
	for name, c := range map[string]struct {
		to       engine.Definition
		pointers map[string]string
		want     string
	}{
		"in another order, mapped": {fork("2.0.0", middle, left, right), swapped, at + "0/left: the branches around it are others"},
		"in another order":         {fork("2.1.0", middle, left, right), nil, at + "1/middle: version 2.1.0 has no such task"},
		"another in its place":     {fork("2.2.0", left, other, right), nil, at + "1/middle: version 2.2.0 has no such task"},
		"another name, mapped":     {fork("2.3.0", left, other, right), map[string]string{at + "1/middle": at + "1/other"}, ""},
		"the same":                 {fork("2.4.0", left, middle, right), nil, ""},
	} {
		_, err := planned(t, a, c.to, c.pointers).Migrate(s, turnInput(3, signal.Envelope{}))
		if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestStoppedInstancesMove(t *testing.T) {
	t.Parallel()
	a, b := parsed(t, "1.0.0", before), parsed(t, "2.0.0", after)
	m := planned(t, a, b, shifted)
	s := begin(t, a, `{}`)
	operate := func(def engine.Definition, s snapshot.Snapshot, op engine.Operation) snapshot.Snapshot {
		out, err := operate.Operate(def, s, op, nil, turnInput(9, signal.Envelope{}))
		if err != nil {
			t.Fatal(err)
		}
		return out.Snapshot
	}
	move := func(s snapshot.Snapshot) snapshot.Snapshot {
		out, err := m.Migrate(s, turnInput(10, signal.Envelope{}))
		if err != nil {
			t.Fatal(err)
		}
		if out.Snapshot.Status != s.Status {
			t.Errorf("%s became %s", s.Status, out.Snapshot.Status)
		}
		return out.Snapshot
	}
	suspended := operate(b, move(operate(a, s, engine.Suspend)), engine.Resume)
	if suspended.Status != snapshot.Waiting || suspended.Waits[0].Pointer != "/do/1/first" {
		t.Errorf("%+v", suspended)
	}
	faulted := move(stepOn(t, a, s, 0, 5)) // the call fails
	if faulted.Error.Instance != "/do/1/first" {
		t.Errorf("%+v", faulted.Error)
	}
	if retried := operate(b, faulted, engine.Retry); retried.Waits[0].Pointer != "/do/1/first" || retried.Waits[0].Kind != snapshot.WaitCommand {
		t.Errorf("%+v", retried.Waits)
	}
	cancelled := operate(a, s, engine.Cancel)
	if _, err := m.Migrate(cancelled, turnInput(11, signal.Envelope{})); problem.CodeOf(err) != "instance.closed" {
		t.Error(err)
	}
}

// TestMigrationChangesNothingElse renames every task of a random program,
// moves an instance in the middle of its life, and holds it to what it would
// have done without: the same waits, data and output, but for the names.
func TestMigrationChangesNothingElse(t *testing.T) {
	t.Parallel()
	first := *seed
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	moves := 0
	for i := range max(*runs/6, 20) {
		g := &generator{Rand: rand.New(rand.NewPCG(first+uint64(i), 7))}
		doc := g.document()
		renamed := strings.ReplaceAll(rename(doc), "version: '1.0.0'", "version: '2.0.0'")
		moved, err := playBoth(doc, renamed, g.Rand)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", first+uint64(i), err, doc)
		}
		if moved {
			moves++
		}
	}
	if moves < 5 {
		t.Errorf("only %d instances were moved", moves)
	}
}

// rename changes the names t1, t2, ... wherever they stand.
func rename(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == 't' && i+1 < len(text) && text[i+1] >= '1' && text[i+1] <= '9' && (i == 0 || !isAlphabetic(text[i-1])) {
			b.WriteString("renamed-")
			continue
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

func isAlphabetic(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' }

func playBoth(docA, docB string, r *rand.Rand) (moved bool, err error) {
	pa, err := openworkflow.Parse("a", []byte(docA))
	if err != nil {
		return false, err
	}
	pb, err := openworkflow.Parse("b", []byte(docB))
	if err != nil {
		return true, fmt.Errorf("renamed: %w", err)
	}
	out, err := engine.Begin(pa.Definition, "i", signal.Start{Input: json.RawMessage(`{}`)}, turnInput(0, signal.Envelope{}))
	if err != nil {
		return false, err
	}
	a := out.Snapshot
	var b *snapshot.Snapshot
	for n := 1; n < 60 && len(a.Waits) > 0; n++ {
		if b == nil && r.IntN(4) == 0 {
			next, err := moveRenamed(pa.Definition, pb.Definition, a, n)
			if err != nil {
				return false, err
			}
			b = &next
		}
		at := r.IntN(len(a.Waits))
		if b != nil {
			next, err := engine.Step(pb.Definition, *b, turnInput(n, answerWait(b.Waits[at], n)))
			if err != nil {
				return true, fmt.Errorf("moved: %w", err)
			}
			b = &next.Snapshot
		}
		if out, err = engine.Step(pa.Definition, a, turnInput(n, answerWait(a.Waits[at], n))); err != nil {
			return false, err
		}
		a = out.Snapshot
		if b != nil {
			if x, y := outline(a, true), outline(*b, false); x != y {
				return true, fmt.Errorf("turn %d:\n%s\n%s", n, x, y)
			}
		}
	}
	return b != nil, nil
}

// moveRenamed maps every task by its name.
func moveRenamed(a, b engine.Definition, s snapshot.Snapshot, n int) (snapshot.Snapshot, error) {
	none, err := definition.PlanMigration(a, b, nil)
	if err != nil {
		return s, err
	}
	pointers := map[string]string{}
	for range 20 { // each round the map makes the tasks inside others known
		m, err := definition.PlanMigration(a, b, pointers)
		if err != nil {
			return s, err
		}
		grown := false
		positions := append(none.Positions(s), m.Positions(s)...)
		for _, c := range s.Compensations {
			positions = append(positions, migration.Position{Pointer: c.Pointer})
		}
		if s.Compensating != nil {
			positions = append(positions, migration.Position{Pointer: s.Compensating.Error.Instance})
		}
		for _, p := range positions {
			if to := rename(p.Pointer); pointers[p.Pointer] != to && !isListPointer(p.Pointer) {
				pointers[p.Pointer], grown = to, true
			}
		}
		if !grown {
			out, err := m.Migrate(s, turnInput(n, signal.Envelope{}))
			return out.Snapshot, err
		}
	}
	return s, fmt.Errorf("the map does not end: %v", pointers)
}

func isListPointer(p string) bool {
	last := p[strings.LastIndexByte(p, '/')+1:]
	return slices.Contains([]string{"do", "try", "branches"}, last)
}

// outline is what must be equal of two snapshots.
func outline(s snapshot.Snapshot, renames bool) string {
	var b strings.Builder
	fmt.Fprintln(&b, s.Status, string(s.State.Output), string(s.State.Context))
	for _, w := range s.Waits {
		if w.Kind == snapshot.WaitRetry {
			w.Until = time.Time{} // jitter is drawn from the turn's number, and a migration is a turn
		}
		fmt.Fprintln(&b, w.Kind, w.Branch, w.Pointer, w.Until, w.Event, w.Arm)
	}
	for i := range s.Branches {
		fmt.Fprintln(&b, s.Branches[i].ID, string(s.Branches[i].Data))
		for _, f := range s.Branches[i].Frames {
			fmt.Fprintln(&b, f.Pointer, f.Next, f.Phase, string(f.Input), len(f.Items), f.Open)
		}
	}
	if s.Error != nil {
		fmt.Fprintln(&b, s.Error.Type, s.Error.Instance)
	}
	if renames {
		return rename(b.String())
	}
	return b.String()
}

// An instance of a lifecycle moves with its state, wherever that is now; one
// that is between two states is refused.
func TestStatesMove(t *testing.T) {
	t.Parallel()
	lifecycle := func(version, states, transitions string) engine.Definition {
		p, err := openworkflow.Parse("l.yaml", []byte("{lifecycle: '1.0', environment: t, definition: m, version: '"+version+
			"', events: {go: {}}, states: {"+states+"}, transitions: ["+transitions+"]}"))
		if err != nil {
			t.Fatal(err)
		}
		return p.Definition
	}
	a := lifecycle("1.0.0", `A: {category: initial}, B: {onEnter: [{h: {call: f}}], onExit: [{x: {call: f}}], timeout: PT1H}, Z: {category: final}`,
		`{from: A, event: go, to: B}, {from: B, event: go, to: Z}`)
	b := lifecycle("2.0.0", `A0: {category: initial}, A: {}, C: {onEnter: [{h: {call: f}}]}, Y: {category: final}`,
		`{from: A0, event: go, to: A}, {from: A, event: go, to: C}, {from: C, event: go, to: Y}`)
	trigger := func(def engine.Definition, s snapshot.Snapshot, n int) snapshot.Snapshot {
		out, err := engine.Step(def, s, turnInput(n, signal.Envelope{
			SignalID: "s", InstanceID: "i", Type: signal.ExternalSignal, Payload: json.RawMessage(`{"type": "go"}`),
		}))
		if err != nil {
			t.Fatal(err)
		}
		return out.Snapshot
	}
	if _, err := planned(t, a, b, map[string]string{"/states/A": "/states/Y"}).Migrate(begin(t, a, `{}`), turnInput(9, signal.Envelope{})); problem.CodeOf(err) != "migration.unmapped" || !strings.Contains(err.Error(), "it is a final state") {
		t.Errorf("to rest in a final state: %v", err)
	}
	m := planned(t, a, b, map[string]string{"/states/B": "/states/C"})
	inA := begin(t, a, `{}`)
	entering := trigger(a, inA, 1)
	inB := stepOn(t, a, entering, 0, 2)
	leaving := trigger(a, inB, 3)
	for what, c := range map[string]struct {
		s    snapshot.Snapshot
		want string
	}{
		"rests in A": {inA, "/states/A"}, "enters B": {entering, "/states/C/onEnter/0/h"}, "rests in B": {inB, "/states/C"}, "leaves B": {leaving, ""},
	} {
		out, err := m.Migrate(c.s, turnInput(9, signal.Envelope{}))
		if c.want == "" {
			if problem.CodeOf(err) != "migration.unmapped" || !strings.Contains(err.Error(), "it is being left") {
				t.Errorf("%s: %v", what, err)
			}
			continue
		}
		if err != nil || out.Snapshot.Waits[0].Pointer != c.want {
			t.Errorf("%s: %v %+v", what, err, out.Snapshot.Waits)
			continue
		}
		s := out.Snapshot
		at := strings.Split(c.want, "/")[2]
		if what == "enters B" {
			at = "A->" + at
		}
		if s.At() != at {
			t.Errorf("%s: it is in %s, not %s", what, s.At(), at)
		}
		if what == "enters B" {
			s = stepOn(t, b, s, 0, 8)
		}
		if what != "rests in A" && trigger(b, s, 11).Status != snapshot.Completed {
			t.Errorf("%s: it does not go on in the new version", what)
		}
	}
}
