package program_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/definition/openworkflow"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/operate"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// effects watches what a random program asks of the outside.
type effects struct {
	straight bool // each place is come to once, but for retries
	once     bool // nothing is retried

	bodies      map[string]string // by key: where it is asked for, and what
	keys        map[string]string // by where and what: the key
	asked       map[int64]string  // by the position of a command: its key
	done        map[string]bool   // keys under which something has succeeded
	compensated bool              // something has been compensated: a retry makes new effects
	repeats     int               // commands under a key that was there before
}

// see holds that no key has two bodies, and no effect two keys.
func (e *effects) see(out *engine.Outcome) error {
	if e == nil {
		return nil
	}
	for _, entry := range out.Entries {
		c := entry.Command
		if c == nil {
			if key := e.asked[entry.Meta.Command]; key != "" && entry.Type == string(signal.TaskCompleted) && !strings.Contains(string(entry.Data), `"error"`) {
				e.done[key] = true
			}
			continue
		}
		e.asked[entry.Position] = c.Key
		if c.Key == "" || len(c.Key) > engine.MaxKeyBytes {
			return fmt.Errorf("the command at %s has the key %q", c.Pointer, c.Key)
		}
		body := fmt.Sprintf("%s %v %s %s", c.Pointer, c.Compensates, c.Target, c.Input)
		if before, ok := e.bodies[c.Key]; ok && before != body {
			return fmt.Errorf("key %s has two bodies:\n%s\n%s", c.Key, before, body)
		} else if ok && e.once && (!c.Compensates || e.done[c.Key]) {
			// A compensation that has failed is made again, under its key, when the
			// error ends the instance: that is one effect.
			return fmt.Errorf("key %s is of two effects: %s", c.Key, body)
		} else if ok {
			e.repeats++
		}
		e.bodies[c.Key] = body
		e.compensated = e.compensated || c.Compensates
		where := body + " " + arm(c.Key)
		if before, ok := e.keys[where]; ok && before != c.Key && e.straight && !e.compensated {
			return fmt.Errorf("the effect %s has two keys:\n%s\n%s", where, before, c.Key)
		}
		e.keys[where] = c.Key
	}
	return nil
}

// arm is the branch that a key names.
func arm(key string) string {
	parts := strings.Split(key, "/")
	return parts[len(parts)-2]
}

// TestNoEffectHasTwoKeys runs random programs with random failures, retries of
// their own and of operators, compensations, and a database that is restored in
// between. No key has two bodies. Where the flow comes to each place once, no
// effect has two keys; where nothing is retried, no two effects have one.
func TestNoEffectHasTwoKeys(t *testing.T) {
	t.Parallel()
	first := *seed
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	repeats := 0
	for i := range *runs {
		s := first + uint64(i)
		rnd := rand.New(rand.NewPCG(s, 2))
		g := &generator{Rand: rnd, straight: i%2 == 0, once: i%2 == 1}
		e := &effects{straight: g.straight, once: g.once, bodies: map[string]string{}, keys: map[string]string{}, asked: map[int64]string{}, done: map[string]bool{}}
		doc := g.document()
		if err := playWith(doc, &player{Rand: rnd, effects: e, once: g.once}); err != nil {
			t.Fatalf("seed %d: %v\n%s", s, err, doc)
		}
		repeats += e.repeats
	}
	if repeats == 0 {
		t.Error("no retry has repeated an effect: the property was not tested")
	}
}

// hand is a run of one program, by hand.
type hand struct {
	*testing.T
	def  engine.Definition
	snap snapshot.Snapshot
	rows map[int64]engine.Command
	in   engine.Input
	last *engine.Command // the command made last
}

func take(t *testing.T, doc, input string) *hand {
	t.Helper()
	p, err := openworkflow.Parse("w.yaml", []byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	h := &hand{T: t, def: p.Definition, rows: map[int64]engine.Command{}, in: engine.Input{Now: epoch, Key: []byte("k"), Incarnation: "inc", Requests: map[int64]engine.Command{}}}
	h.accept(engine.Begin(h.def, "i", signal.Start{Input: json.RawMessage(input)}, h.in))
	return h
}

func (h *hand) accept(out *engine.Outcome, err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
	h.snap = out.Snapshot
	for _, e := range out.Entries {
		if e.Command != nil {
			h.rows[e.Position], h.last = *e.Command, e.Command
		}
	}
}

// step answers the wait of a kind with a payload.
func (h *hand) step(kind snapshot.WaitKind, typ signal.Type, payload string) {
	h.Helper()
	h.in.Now = h.in.Now.Add(time.Minute)
	for _, w := range h.snap.Waits {
		if w.Kind == kind {
			h.in.Signal = signal.Envelope{SignalID: "s", InstanceID: "i", Type: typ, WaitingToken: w.Token, DueAt: w.Until, Payload: json.RawMessage(payload)}
			h.accept(engine.Step(h.def, h.snap, h.in))
			return
		}
	}
	h.Fatalf("no %s among %+v", kind, h.snap.Waits)
}

func (h *hand) answers(payload string) {
	h.Helper()
	h.step(snapshot.WaitCommand, signal.TaskCompleted, payload)
}
func (h *hand) retries() { h.Helper(); h.step(snapshot.WaitRetry, signal.RetryDue, `{}`) }

func (h *hand) operate(op engine.Operation) error {
	h.Helper()
	h.in.Signal, h.in.Requests = signal.Envelope{SignalID: "op", InstanceID: "i"}, h.rows
	out, err := operate.Operate(h.def, h.snap, op, nil, h.in)
	if err == nil {
		h.accept(out, nil)
	}
	return err
}

func (h *hand) asks(key, input string) {
	h.Helper()
	if h.last == nil || h.last.Key != key && key != "" || string(h.last.Input) != input {
		h.Fatalf("the last command is %+v with %s, want %s with %s", h.last, h.last.Input, key, input)
	}
}

const (
	failed = `{"error": {"type": "x", "status": 503}}`
	lost   = `{"error": {"type": "x", "status": 408}, "unknown": true}`
)

// varying sends another request on each run: it counts in $context.
const varying = `
document: {dsl: '1.0.3', namespace: t, name: pay, version: '1.0.0'}
do:
  - safe:
      try:
        - note:
            set: '${ . }'
            export: {as: '${ {n: (($context.n // 0) + 1)} }'}
        - pay: {call: charge, with: {n: '${ $context.n }'}}
      catch:
        retry: {limit: {attempt: {count: 5}}, delay: PT1S}
`

const steady = `
document: {dsl: '1.0.3', namespace: t, name: pay, version: '1.0.0'}
do:
  - safe:
      try:
        - pay: {call: charge, with: {n: 1}}
      catch:
        retry: {limit: {attempt: {count: 1}}, delay: PT1S}
`

// TestRetriesRepeatTheKey also when the outcome is unknown, the operator
// retries, and the database was restored in between.
func TestRetriesRepeatTheKey(t *testing.T) {
	t.Parallel()
	h := take(t, steady, `{}`)
	key := h.last.Key
	h.answers(lost)
	h.in.Epoch = 2
	h.retries()
	h.asks(key, `{"n":1}`)
	h.answers(failed)
	if h.snap.Status != snapshot.Faulted {
		t.Fatalf("%s", h.snap.Status)
	}
	h.in.Epoch = 3
	if err := h.operate(engine.Retry); err != nil {
		t.Fatal(err)
	}
	h.asks(key, `{"n":1}`)
}

// TestAnotherRequestAfterAKnownFailureIsAnotherEffect.
func TestAnotherRequestAfterAKnownFailureIsAnotherEffect(t *testing.T) {
	t.Parallel()
	h := take(t, varying, `{}`)
	h.asks("", `{"n":1}`)
	key := h.last.Key
	h.answers(failed)
	h.retries()
	h.asks("", `{"n":2}`)
	if h.last.Key == key {
		t.Errorf("key %s has two requests", key)
	}
}

// TestUnknownOutcomeWaitsForAnOperator where the retry would send another
// request: no catch takes it, and the operator decides.
func TestUnknownOutcomeWaitsForAnOperator(t *testing.T) {
	t.Parallel()
	undecided := func(t *testing.T) (*hand, string) {
		h := take(t, varying, `{}`)
		key := h.last.Key
		h.answers(lost)
		h.retries()
		if h.snap.Status != snapshot.Faulted || h.snap.Error.Type != engine.TypeUndecided || !strings.Contains(h.snap.Error.Detail, key) {
			t.Fatalf("%s with %+v", h.snap.Status, h.snap.Error)
		}
		if err := h.operate(engine.Retry); problem.CodeOf(err) != "effect.undecided" {
			t.Fatalf("a retry that decides nothing: %v", err)
		}
		return h, key
	}
	t.Run("the same", func(t *testing.T) {
		h, key := undecided(t)
		if err := h.operate(engine.RetrySame); err != nil {
			t.Fatal(err)
		}
		h.asks(key, `{"n":1}`)
		h.answers(failed) // of this attempt; what the first has done is as unknown as before
		h.retries()
		if h.snap.Status != snapshot.Faulted || h.snap.Error.Type != engine.TypeUndecided {
			t.Fatalf("%s with %+v", h.snap.Status, h.snap.Error)
		}
	})
	t.Run("the new", func(t *testing.T) {
		h, key := undecided(t)
		if err := h.operate(engine.RetryNew); err != nil {
			t.Fatal(err)
		}
		if h.last.Key == key || string(h.last.Input) == `{"n":1}` {
			t.Errorf("%+v", h.last)
		}
	})
	t.Run("skipped", func(t *testing.T) {
		h, _ := undecided(t)
		if err := h.operate(engine.Skip); err != nil || h.snap.Status != snapshot.Completed {
			t.Errorf("%v, %s", err, h.snap.Status)
		}
	})
}

// TestCompensatedIsAnotherEffectWhenDoneAgain: a task that runs again
// after its compensation is another effect, and its compensation, too.
func TestCompensatedIsAnotherEffectWhenDoneAgain(t *testing.T) {
	t.Parallel()
	h := take(t, `
document: {dsl: '1.0.3', namespace: t, name: pay, version: '1.0.0'}
do:
  - outer:
      try:
        - inner:
            try:
              - pay:
                  call: charge
                  with: {n: 1}
                  metadata: {compensate: {call: refund, with: {n: 1}}}
              - fails: {call: fails}
            catch:
              do:
                - back: {call: compensate}
                - again: {raise: {error: {type: x, status: 500}}}
      catch:
        retry: {limit: {attempt: {count: 5}}, delay: PT1S}
`, `{}`)
	keys := map[string]bool{}
	for range 3 {
		keys[h.last.Key] = true // charge
		h.answers(`{"output": 1}`)
		h.answers(failed)
		keys[h.last.Key] = true // refund
		h.answers(`{"output": 1}`)
		h.retries()
	}
	if len(keys) != 6 {
		t.Errorf("%d keys of 6 effects: %v", len(keys), keys)
	}
}
