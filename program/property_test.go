package program_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/definition/openworkflow"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/operate"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/replay"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

var (
	seed  = flag.Uint64("seed", 0, "seed of the first random program; 0 = from the clock")
	runs  = flag.Int("programs", 300, "how many random programs")
	turns = flag.Int("turns", 60, "how many signals each")
)

// TestInvariants feeds random programs random signals in random order,
// duplicates, stale tokens and wrong types included, and holds the invariants
// of the design: tokens are single-use, a terminal instance has no waits, a
// wait has a token, a repeated decision is the same to the byte, and a stale
// signal changes nothing but the stream.
func TestInvariants(t *testing.T) {
	t.Parallel()
	first := *seed
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	for i := range *runs {
		s := first + uint64(i)
		g := &generator{Rand: rand.New(rand.NewPCG(s, 1))}
		doc := g.document()
		if err := play(doc, g.Rand); err != nil {
			t.Fatalf("seed %d: %v\n%s", s, err, doc)
		}
	}
}

// generator makes random documents.
type generator struct {
	*rand.Rand
	n        int
	straight bool // the flow comes to each task once, but for retries
	once     bool // nothing is retried
}

func (g *generator) document() string {
	var b strings.Builder
	b.WriteString("document: {dsl: '1.0.3', namespace: t, name: random, version: '1.0.0'}\n")
	if g.IntN(4) == 0 {
		b.WriteString("timeout: {after: P1D}\n")
	}
	b.WriteString("do:\n")
	g.list(&b, 1, 3)
	return b.String()
}

func (g *generator) list(b *strings.Builder, indent, depth int) {
	count := 1 + g.IntN(3)
	names := make([]string, count)
	for i := range names {
		g.n++
		names[i] = fmt.Sprintf("t%d", g.n)
	}
	for i, name := range names {
		fmt.Fprintf(b, "%s- %s:\n", strings.Repeat("  ", indent), name)
		g.task(b, indent+2, depth, names[i:])
		if g.IntN(6) == 0 {
			by := []string{
				"call: undo, with: {of: %q}", "call: undo, with: {of: %q}", "call: humanTask, with: {title: %q}, timeout: {after: PT1H}",
				"call: acknowledged, with: {call: undo, with: {of: %q}}", "run: {workflow: {namespace: t, name: undo, input: {of: %q}}}",
			}[g.IntN(5)]
			fmt.Fprintf(b, "%smetadata: {compensate: {"+by+"}}\n", strings.Repeat("  ", indent+2), "-"+name) // which no renaming changes: that would be another request
		}
	}
}

// arms writes the branches of a fork: tasks that cannot jump to each other.
func (g *generator) arms(b *strings.Builder, indent, depth int) {
	for range 1 + g.IntN(3) {
		g.n++
		name := fmt.Sprintf("t%d", g.n)
		fmt.Fprintf(b, "%s- %s:\n", strings.Repeat("  ", indent), name)
		g.task(b, indent+2, depth, []string{name})
	}
}

// task writes one task; later are the names it may jump to, itself first.
func (g *generator) task(b *strings.Builder, indent, depth int, later []string) {
	line := func(format string, args ...any) {
		fmt.Fprintf(b, "%s%s\n", strings.Repeat("  ", indent), fmt.Sprintf(format, args...))
	}
	kinds := 8
	if depth > 0 {
		kinds = 14
	}
	kind := g.IntN(kinds)
	if loops := kind == 6 || kind == 9 || kind == 10; g.straight && loops {
		kind = 1
	}
	switch kind {
	case 0:
		line("set: '${ {n: ((.n? // 0) + 1)} }'")
	case 1:
		line("call: work")
		line("with: {n: '${ .n? }'}")
	case 2:
		line("wait: PT%dM", 1+g.IntN(90))
	case 3:
		line("listen: {to: {one: {with: {type: e%d}}}}", g.IntN(3))
		if g.IntN(2) == 0 {
			line("timeout: {after: PT1H}")
		}
	case 4:
		line("call: humanTask")
		line("with: {title: Do it}")
		if g.IntN(2) == 0 {
			line("timeout: {after: {days: 1}}")
		}
	case 5:
		line("raise: {error: {type: 'https://example.org/e%d', status: %d}}", g.IntN(2), 500+g.IntN(2))
	case 6:
		line("switch:")
		line("  - a: {when: '((.n? // 0) | tonumber? // 0) > %d', then: %s}", g.IntN(3), later[len(later)-1])
		line("  - b: {then: %s}", []string{"continue", "exit", "end"}[g.IntN(3)])
	case 7:
		line("call: forEach")
		line("with: {in: '${ [1, 2, 3][:%d] }', each: x, call: work, with: {x: '${ $x }'}}", g.IntN(4))
	case 8:
		line("do:")
		g.list(b, indent+1, depth-1)
	case 9:
		line("for: {each: x, in: '${ [1, 2, 3][:%d] }'}", g.IntN(4))
		line("do:")
		g.list(b, indent+1, depth-1)
	case 10:
		g.listen(b, indent, depth, line)
	case 11:
		line("fork:")
		if g.IntN(3) == 0 {
			line("  compete: true")
		}
		line("  branches:")
		g.arms(b, indent+2, depth-1)
		if g.IntN(3) == 0 {
			line("timeout: {after: PT2H}")
		}
	default:
		line("try:")
		g.list(b, indent+1, depth-1)
		line("catch:")
		if g.IntN(2) == 0 {
			line("  errors: {with: {status: 500}}")
		}
		retries := g.IntN(2) == 0 && !g.once
		if retries {
			g.retry(line)
		}
		if !retries || g.IntN(2) == 0 {
			line("  do:")
			g.list(b, indent+2, depth-1)
			if g.IntN(3) == 0 {
				g.n++
				line("    - t%d: {call: compensate}", g.n)
			}
		}
	}
}

// listen writes a listen to several events.
func (g *generator) listen(b *strings.Builder, indent, depth int, line func(format string, args ...any)) {
	correlate := []string{"", ", correlate: {n: {from: .data.n}}", ", correlate: {n: {from: .data.n, expect: 5}}"}
	filter := func() string { return fmt.Sprintf("{with: {type: e%d}%s}", g.IntN(3), correlate[g.IntN(3)]) }
	filters := "[" + filter() + ", " + filter() + "]"
	switch g.IntN(5) {
	case 0:
		line("listen: {to: {all: %s}}", filters)
	case 1:
		line("listen: {to: {any: %s}}", filters)
	case 2:
		line("listen: {to: {any: [], until: 'length > %d'}}", g.IntN(3))
	case 3:
		line("listen: {to: {any: %s, until: {one: %s}}}", filters, filter())
	default:
		line("listen: {to: {any: %s, until: {all: %s}}}", filters, filters)
	}
	if g.IntN(4) == 0 {
		line("timeout: {after: PT5H}")
	}
	if g.IntN(2) == 0 {
		line("foreach:")
		line("  output: {as: '${ {n: .n?} }'}")
		if g.IntN(3) > 0 {
			line("  do:")
			g.list(b, indent+2, depth-1)
		}
	}
}

func (g *generator) retry(line func(format string, args ...any)) {
	line("  retry:")
	line("    limit: {attempt: {count: %d%s}%s}", g.IntN(4),
		[]string{"", ", duration: PT3H"}[g.IntN(2)], []string{"", ", duration: PT30M"}[g.IntN(2)])
	if g.IntN(2) == 0 {
		line("    delay: PT%dM", g.IntN(5))
	}
	if g.IntN(2) == 0 {
		line("    backoff: {%s: {}}", []string{"constant", "linear", "exponential"}[g.IntN(3)])
	}
	if g.IntN(2) == 0 {
		line("    jitter: {from: PT0S, to: PT9S}")
	}
	if g.IntN(3) == 0 {
		line("    %s: $error.status == 500", []string{"when", "exceptWhen"}[g.IntN(2)])
	}
}

// player is one run of one program.
type player struct {
	own engine.Outcome // of the last decision in place
	*rand.Rand
	def    engine.Definition
	snap   snapshot.Snapshot
	tokens map[string]bool   // every token ever handed out
	sent   []signal.Envelope // every signal ever sent
	clock  int

	stream   []projections.Entry      // of all turns
	commands map[int64]engine.Command // in it

	effects *effects // what was asked of the outside; nil = it is not watched
	epoch   int64    // of the database; 0 = the first
	once    bool     // no operator retries
}

func play(doc string, r *rand.Rand) error { return playWith(doc, &player{Rand: r}) }

func playWith(doc string, p *player) error {
	parsed, err := openworkflow.Parse("random.yaml", []byte(doc))
	if err != nil {
		return err
	}
	p.def, p.tokens, p.commands = parsed.Definition, map[string]bool{}, map[int64]engine.Command{}
	in := p.input(signal.Envelope{SignalID: "start", InstanceID: "i", Type: signal.StartRequest})
	out, err := engine.Begin(p.def, "i", signal.Start{Input: json.RawMessage(`{"n": 0}`)}, in)
	if err != nil {
		return err
	}
	if err := p.accept(out); err != nil {
		return err
	}
	for range *turns {
		if err := p.turn(); err != nil {
			return err
		}
	}
	return p.replay()
}

// replay makes the instance again from its stream: it comes to the same entries and
// the same snapshot.
func (p *player) replay() error {
	stored, err := p.snap.Encode()
	if err != nil {
		return err
	}
	found, err := replay.Replayer{Definitions: p, Key: []byte("k")}.Verify(context.Background(), "i", stored, func(yield func(projections.Entry, error) bool) {
		for _, e := range p.stream {
			if !yield(e, nil) {
				return
			}
		}
	})
	if err == nil && (found.Verdict != replay.Equal || found.Through != p.snap.Position) {
		err = fmt.Errorf("replay: %s", found)
	}
	return err
}

// Under implements replay.Definitions.
func (p *player) Under(context.Context, snapshot.Definition, string) (engine.Definition, error) {
	return p.def, nil
}

// write keeps the entries of a turn as a store does.
func (p *player) write(out *engine.Outcome) error {
	rows, err := projections.Fold(nil, out, "", func(*engine.Entry) (string, int) { return "", 0 })
	if err != nil {
		return err
	}
	p.stream = append(p.stream, rows.Stream...)
	for _, e := range out.Entries {
		if e.Command != nil {
			p.commands[e.Position] = *e.Command
		}
	}
	return nil
}

func (p *player) input(env signal.Envelope) engine.Input {
	p.clock++
	if p.effects != nil && p.IntN(15) == 0 {
		p.epoch++ // the database was restored
	}
	return engine.Input{Signal: env, Now: epoch.Add(time.Duration(p.clock) * time.Minute), Key: []byte("k"), Incarnation: "inc", Epoch: p.epoch, Limits: engine.Limits{Steps: 1 + p.IntN(20)}}
}

// turn sends one signal, sometimes an operator's operation, decides it twice,
// and checks what came of it.
func (p *player) turn() error {
	if p.IntN(12) == 0 {
		return p.operate()
	}
	env := p.signal()
	p.sent = append(p.sent, env)
	in := p.input(env)
	before, err := p.snap.Encode()
	if err != nil {
		return err
	}
	out, err := engine.Step(p.def, p.snap, in)
	if err != nil {
		return fmt.Errorf("step %s: %w", env.Type, err)
	}
	again, err := engine.Step(p.def, p.snap, in)
	if err != nil {
		return err
	}
	if a, b := encode(out), encode(again); a != b {
		return fmt.Errorf("the same decision differs:\n%s\n%s", a, b)
	}
	if after, _ := p.snap.Encode(); string(after) != string(before) {
		return fmt.Errorf("%s changed the snapshot it was decided on", env.Type)
	}
	if err := p.inPlace(in, before, written(out)); err != nil {
		return err
	}
	if out.Disposition == engine.Stale || out.Disposition == engine.Closed {
		if len(out.Send)+len(out.Tasks)+len(out.Settled) > 0 || len(out.Entries) != 1 || len(out.Snapshot.Waits) != len(p.snap.Waits) {
			return fmt.Errorf("a stale %s did something: %s", env.Type, encode(out))
		}
	}
	return p.accept(out)
}

// written is an outcome as it is kept: an empty list is none.
func written(out *engine.Outcome) string {
	state, err := out.Snapshot.Encode()
	rest := *out
	rest.Snapshot = snapshot.Snapshot{}
	return fmt.Sprintf("%s %v %s", state, err, encode(&rest))
}

// inPlace makes a decision on what the one before has left, without a copy. It
// decides the same, and changes nothing else of what the one before has decided.
func (p *player) inPlace(in engine.Input, before []byte, want string) error {
	if left, err := p.own.Snapshot.Encode(); err != nil || string(left) != string(before) {
		p.own = engine.Outcome{Snapshot: p.snap.Clone()} // an operator, or a crash, was between
	}
	last := p.own
	last.Snapshot = snapshot.Snapshot{}
	decided := encode(&last)
	in.Own = true
	out, err := engine.Step(p.def, p.own.Snapshot, in)
	if err != nil {
		return err
	}
	if got := written(out); got != want {
		return fmt.Errorf("in place it is decided differently:\n%s\n%s", got, want)
	}
	if now := encode(&last); now != decided {
		return fmt.Errorf("what was decided before has changed:\n%s\n%s", now, decided)
	}
	p.own = *out
	return nil
}

func encode(out *engine.Outcome) string {
	b, _ := json.Marshal(out)
	return string(b)
}

func (p *player) operate() error {
	op := engine.Operations[p.IntN(len(engine.Operations)-1)] // all but cancel
	if p.once && strings.HasPrefix(string(op), "retry") {
		return nil
	}
	in := p.input(signal.Envelope{SignalID: "op", InstanceID: "i"})
	in.Requests = p.commands
	out, err := operate.Operate(p.def, p.snap, op, json.RawMessage(`{"n": 9}`), in)
	if err != nil {
		return nil // not in this state
	}
	return p.accept(out)
}

// signal makes a signal: mostly one that fits a wait, sometimes an old one
// again, a token of nobody, or the wrong type for its wait.
func (p *player) signal() signal.Envelope {
	p.clock++
	env := signal.Envelope{SignalID: fmt.Sprintf("s%d", p.clock), InstanceID: "i", OccurredAt: epoch, Payload: json.RawMessage(`{"output": {"n": 1}}`)}
	if len(p.sent) > 0 && p.IntN(5) == 0 {
		return p.sent[p.IntN(len(p.sent))]
	}
	if len(p.snap.Waits) == 0 || p.IntN(6) == 0 {
		env.Type, env.Payload = signal.ExternalSignal, json.RawMessage(fmt.Sprintf(`{"type": "e%d", "data": {"n": 5}}`, p.IntN(3)))
		return env
	}
	w := p.snap.Waits[p.IntN(len(p.snap.Waits))]
	env.WaitingToken, env.DueAt = w.Token, w.Until
	env.Type = map[snapshot.WaitKind]signal.Type{
		snapshot.WaitCommand: signal.TaskCompleted, snapshot.WaitTask: signal.TaskCompleted, snapshot.WaitTimer: signal.TimerDue,
		snapshot.WaitTimeout: signal.TimerDue, snapshot.WaitEvent: signal.ExternalSignal, snapshot.WaitRetry: signal.RetryDue, snapshot.WaitNext: signal.InternalContinue,
		snapshot.WaitChild: signal.SubWorkflowCompleted,
	}[w.Kind]
	switch p.IntN(8) {
	case 0:
		env.WaitingToken = "forged"
	case 1:
		env.Type = signal.Types[p.IntN(len(signal.Types)-6)]
	case 2:
		if w.Kind == snapshot.WaitCommand || w.Kind == snapshot.WaitChild {
			env.Payload = json.RawMessage(fmt.Sprintf(`{"error": {"type": "x", "status": %d, "title": "no"}}`, 500+p.IntN(2)))
		}
	}
	if env.Type == signal.CancelRequest {
		env.Payload = json.RawMessage(`{"token": "forged"}`)
	}
	if env.Type == signal.ExternalSignal {
		env.Payload = json.RawMessage(`{"type": "e0", "data": {"n": 5}}`)
	}
	return env
}

// branches checks that each branch waits, or has branches that it waits for,
// and that ids of branches are used once.
func (p *player) branches(next snapshot.Snapshot) error {
	busy := map[int]bool{}
	for _, w := range next.Waits {
		if w.Kind != snapshot.WaitTimeout {
			busy[w.Branch] = true
		}
	}
	for _, b := range next.Branches {
		if b.ID != 0 {
			busy[b.Parent] = true
		}
		if b.ID > next.LastBranch || next.LastBranch < p.snap.LastBranch {
			return fmt.Errorf("branch %d with %d made last, %d before", b.ID, next.LastBranch, p.snap.LastBranch)
		}
		if b.ID == 0 || b.ID > p.snap.LastBranch {
			continue
		}
		if before := p.snap.Branch(b.ID); before == nil || before.Parent != b.Parent || before.Arm != b.Arm {
			return fmt.Errorf("branch %d is another than before", b.ID)
		}
	}
	for _, b := range next.Branches {
		if len(b.Frames) == 0 || next.Branch(b.Parent) == nil {
			return fmt.Errorf("branch %d has no frame or no parent", b.ID)
		}
		if !busy[b.ID] && next.Status != snapshot.Faulted {
			return fmt.Errorf("branch %d waits for nothing", b.ID)
		}
	}
	if u, last := next.Compensating, len(next.Compensations)-1; u != nil && !u.Done && !u.Children && next.Status != snapshot.Faulted {
		one := func(w snapshot.Wait) bool { return w.Arm != next.Compensations[last].Step }
		if len(next.Waits) == 0 || slices.ContainsFunc(next.Waits, one) {
			return fmt.Errorf("%+v is not the compensation of what was completed last", next.Waits)
		}
	}
	if next.Status == snapshot.Faulted && len(next.Branches) > 1 {
		return fmt.Errorf("faulted with %d branches", len(next.Branches))
	}
	return nil
}

// accept checks an outcome and makes it the state.
func (p *player) accept(out *engine.Outcome) error {
	next := out.Snapshot
	if err := p.effects.see(out); err != nil {
		return err
	}
	if err := p.write(out); err != nil {
		return err
	}
	if next.Version != p.snap.Version+1 {
		return fmt.Errorf("version %d follows %d", next.Version, p.snap.Version)
	}
	if n := int64(len(out.Entries)); next.Position != p.snap.Position+n {
		return fmt.Errorf("position %d after %d and %d entries", next.Position, p.snap.Position, n)
	}
	had := map[string]bool{}
	for _, w := range p.snap.Waits {
		had[w.Token] = true
	}
	for _, w := range next.Waits {
		switch {
		case w.Token == "":
			return fmt.Errorf("a wait at %s has no token", w.Pointer)
		case !had[w.Token] && p.tokens[w.Token]:
			return fmt.Errorf("the token of the wait at %s was used before", w.Pointer)
		}
		p.tokens[w.Token] = true
		if next.Branch(w.Branch) == nil {
			return fmt.Errorf("the wait at %s is of branch %d, which is not there", w.Pointer, w.Branch)
		}
	}
	if err := p.branches(next); err != nil {
		return err
	}
	stopped := next.Status.Closed() || next.Status == snapshot.Faulted
	if stopped != (len(next.Waits) == 0) {
		return fmt.Errorf("%s with %d waits", next.Status, len(next.Waits))
	}
	raw, err := next.Encode()
	if err != nil {
		return err
	}
	p.snap, err = snapshot.Decode(raw)
	if err != nil {
		return err
	}
	if again, err := p.snap.Encode(); err != nil || string(again) != string(raw) {
		return fmt.Errorf("snapshot differs after a round trip: %v\n%s\n%s", err, raw, again)
	}
	return nil
}
