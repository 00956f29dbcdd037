package program_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/definition/openworkflow"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/operate"
	"github.com/aqueduct-engine/aqueduct/schedule"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

var rewrite = flag.Bool("rewrite", false, "write what the scenarios give into testdata; read the diff")

// TestScenarios runs the text scenarios in testdata. A scenario is a list of
// blocks: a command line, its argument on the lines below, a line "----", and
// the expected output up to an empty line.
//
//	define             the document (YAML) that later commands use
//	start JSON         begin an instance
//	spawn JSON         begin it as the child of an instance p that waits for it
//	with EVENT         begin it with the first signal {"type", "data"} and the input of the line below
//	schedule           begin the schedule instance
//	outage D           turns are decided that much after their moment from now on
//	child PTR JSON     the sub-workflow at a pointer ended so
//	disown TOKEN       the parent waits no more
//	result PTR JSON    answer the command that waits at a pointer (fail PTR JSON: with an error)
//	open PTR JSON      as fail, by an answer that does not say that nothing was done (lose PTR JSON: by none)
//	task PTR JSON      complete the human task at a pointer
//	timer PTR          the timer or timeout at a pointer is due
//	due PTR            the due date of the human task at a pointer passes
//	retry PTR          the backoff at a pointer is over
//	event JSON         an application's signal
//	numbered S N JSON  the same, with the sequence N of the sender S
//	continue           deliver the InternalContinue
//	again              deliver the last signal once more
//	forge PTR          a TimerDue with the token of whatever waits at a pointer
//	operate OP JSON    an operator's operation
//	late DURATION      so much time passes
//	steps N            the step budget from now on; fanout N: the limit of what goes on at once
//	snapshot           show the whole snapshot
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			t.Parallel()
			runFile(t, file)
		})
	}
}

func runFile(t *testing.T, file string) {
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{limits: engine.Limits{}}
	var out strings.Builder
	for _, b := range blocks(string(src)) {
		if b.command == "" {
			out.WriteString(b.text)
			continue
		}
		got := w.run(b.command, b.text)
		fmt.Fprintf(&out, "%s\n%s----\n%s\n", b.command, b.text, got)
	}
	if *rewrite {
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, want := out.String(), string(src); got != want {
		t.Errorf("%s differs; run with -rewrite and read the diff\n%s", file, firstDifference(got, want))
	}
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range g {
		if i >= len(w) || g[i] != w[i] {
			line := "(end)"
			if i < len(w) {
				line = w[i]
			}
			return fmt.Sprintf("line %d:\n got %s\nwant %s", i+1, g[i], line)
		}
	}
	return "the expectation is longer"
}

type block struct{ command, text string }

// blocks splits a scenario; comments and blank lines between blocks are blocks
// without a command.
func blocks(src string) []block {
	var out []block
	lines := strings.SplitAfter(src, "\n")
	for i := 0; i < len(lines); {
		line := lines[i]
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			out = append(out, block{text: line})
			i++
			continue
		}
		b := block{command: strings.TrimSuffix(line, "\n")}
		for i++; i < len(lines) && strings.TrimSpace(lines[i]) != "----"; i++ {
			b.text += lines[i]
		}
		for i++; i < len(lines) && strings.TrimSpace(lines[i]) != ""; i++ {
		}
		i++
		out = append(out, b)
	}
	return out
}

// world is the state of one scenario.
type world struct {
	def    engine.Definition
	snap   snapshot.Snapshot
	last   signal.Envelope
	limits engine.Limits
	clock  int
	late   time.Duration
}

var epoch = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

func (w *world) input(env signal.Envelope) engine.Input {
	w.clock++
	now := epoch.Add(time.Duration(w.clock) * time.Second)
	return engine.Input{Signal: env, Now: now, Clock: now.Add(w.late), Key: []byte("key"), Incarnation: "inc", Limits: w.limits}
}

func (w *world) run(command, text string) string {
	verb, rest, _ := strings.Cut(command, " ")
	arg, tail, _ := strings.Cut(rest, " ")
	switch verb {
	case "define":
		p, err := openworkflow.Parse("workflow.yaml", []byte(text))
		if err != nil {
			return fmt.Sprintf("error: %v\n", err)
		}
		w.def = p.Definition
		return p.Ref.Name + "@" + p.Ref.Version + "\n"
	case "outage":
		w.late, _ = time.ParseDuration(arg)
		return "ok\n"
	case "start", "spawn", "schedule", "with":
		in := w.input(signal.Envelope{SignalID: "start", InstanceID: "i", Type: signal.StartRequest, OccurredAt: epoch})
		start := signal.Start{Definition: "d", BusinessKey: "key-1", Input: json.RawMessage(rest)}
		if verb == "schedule" {
			start.BusinessKey, start.Schedule = schedule.Key, &signal.Schedule{}
		}
		if verb == "spawn" {
			start.Parent = &signal.Parent{InstanceID: "p", Token: "token-of-p", Depth: engine.MaxDepth}
		}
		if verb == "with" {
			start.Signal = &signal.FirstSignal{ID: "first", Actor: "ann"}
			if err := json.Unmarshal([]byte(rest), start.Signal); err != nil {
				return "error: " + err.Error() + "\n"
			}
			start.Input = json.RawMessage(strings.TrimSpace(text))
		}
		return w.show(engine.Begin(w.def, "i", start, in))
	case "late":
		late, err := time.ParseDuration(arg)
		if err != nil {
			return "error: " + err.Error() + "\n"
		}
		w.clock += int(late / time.Second)
		return "ok\n"
	case "steps":
		_, _ = fmt.Sscan(arg, &w.limits.Steps)
		return "ok\n"
	case "fanout":
		_, _ = fmt.Sscan(arg, &w.limits.FanOut)
		return "ok\n"
	case "snapshot":
		raw, err := w.snap.Encode()
		if err != nil {
			return "error: " + err.Error() + "\n"
		}
		var pretty bytes.Buffer
		_ = json.Indent(&pretty, raw, "", "  ")
		return pretty.String() + "\n"
	case "operate":
		in := w.input(signal.Envelope{SignalID: "op", InstanceID: "i", Headers: map[string]string{signal.HeaderActor: "olga"}})
		return w.show(operate.Operate(w.def, w.snap, engine.Operation(arg), json.RawMessage(tail), in))
	case "again":
		return w.step(w.last)
	}
	return w.signal(verb, arg, tail, rest)
}

func (w *world) signal(verb, arg, tail, rest string) string {
	w.clock++
	env := signal.Envelope{SignalID: fmt.Sprintf("s-%d", w.clock), InstanceID: "i", OccurredAt: epoch}
	pick := func(kinds ...snapshot.WaitKind) {
		env.WaitingToken = "none"
		for _, wait := range w.snap.Waits {
			for _, k := range kinds {
				if wait.Kind == k && (wait.Pointer == arg || fmt.Sprintf("%s[%d]", wait.Pointer, wait.Arm) == arg) {
					env.WaitingToken, env.DueAt = wait.Token, wait.Until
					return
				}
			}
		}
	}
	switch verb {
	case "result", "task":
		env.Type, env.Payload = signal.TaskCompleted, json.RawMessage(`{"output":`+tail+`}`)
		env.Headers = map[string]string{signal.HeaderActor: "ann"}
		pick(snapshot.WaitCommand, snapshot.WaitTask)
	case "fail":
		env.Type, env.Payload = signal.TaskCompleted, json.RawMessage(`{"error":`+tail+`}`)
		pick(snapshot.WaitCommand)
	case "lose":
		env.Type, env.Payload = signal.TaskCompleted, json.RawMessage(`{"error":`+tail+`,"unknown":true}`)
		pick(snapshot.WaitCommand)
	case "open":
		env.Type, env.Payload = signal.TaskCompleted, json.RawMessage(`{"error":`+tail+`,"open":true}`)
		pick(snapshot.WaitCommand)
	case "child":
		env.Type, env.Payload = signal.SubWorkflowCompleted, json.RawMessage(tail)
		pick(snapshot.WaitChild)
	case "disown":
		env.Type, env.Payload = signal.CancelRequest, json.RawMessage(`{"token":"`+arg+`"}`)
	case "onCancel":
		env.Type, env.Payload = signal.CancelRequest, json.RawMessage(`{"token":"`+arg+`",`+strings.TrimPrefix(tail, "{"))
	case "timer":
		env.Type = signal.TimerDue
		pick(snapshot.WaitTimer, snapshot.WaitTimeout)
	case "due":
		env.Type = signal.TimerDue
		pick(snapshot.WaitDue)
	case "retry":
		env.Type = signal.RetryDue
		pick(snapshot.WaitRetry)
	case "forge":
		env.Type = signal.TimerDue
		pick(snapshot.WaitCommand, snapshot.WaitTask, snapshot.WaitEvent)
	case "continue":
		env.Type = signal.InternalContinue
		for _, wait := range w.snap.Waits {
			if wait.Kind == snapshot.WaitNext {
				env.WaitingToken = wait.Token
			}
		}
	case "numbered":
		number, payload, _ := strings.Cut(tail, " ")
		env.Type, env.Payload, env.Sender = signal.ExternalSignal, json.RawMessage(payload), arg
		_, _ = fmt.Sscan(number, &env.Sequence)
	case "event":
		env.Type, env.Payload = signal.ExternalSignal, json.RawMessage(rest)
	default:
		return "unknown command " + verb + "\n"
	}
	return w.step(env)
}

func (w *world) step(env signal.Envelope) string {
	w.last = env
	return w.show(engine.Step(w.def, w.snap, w.input(env)))
}

// show prints what a turn decided, and takes it over.
func (w *world) show(out *engine.Outcome, err error) string {
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	var b strings.Builder
	s := out.Snapshot
	fmt.Fprintf(&b, "%s: %s v%d\n", out.Disposition, s.Status, s.Version)
	for _, e := range out.Entries {
		fmt.Fprintf(&b, "  %d %s %s %s", e.Position, e.Kind, e.Dir, e.Type)
		if e.Meta.Pointer != "" {
			fmt.Fprintf(&b, " at %s", e.Meta.Pointer)
		}
		if e.Command != nil {
			fmt.Fprintf(&b, " %s %s", e.Command.Target, e.Command.Input)
			if e.Command.Reverses != "" {
				fmt.Fprintf(&b, " reverses %s", e.Command.Reverses)
			}
			if e.Command.Ack > 0 {
				fmt.Fprintf(&b, " acknowledged within %s", e.Command.Ack)
			}
		} else if len(e.Data) > 0 {
			fmt.Fprintf(&b, " %s", e.Data)
		}
		if e.Meta.Sequence > 0 {
			fmt.Fprintf(&b, " of %s %d %s %s", e.Meta.Sender, e.Meta.Sequence, e.Meta.Disposition, e.Meta.Refusal)
		}
		if len(e.Meta.Steps) > 0 {
			fmt.Fprintf(&b, " ran %s", strings.Join(e.Meta.Steps, " "))
		}
		b.WriteByte('\n')
	}
	if x := s.Schedule; x != nil {
		fmt.Fprintf(&b, "  schedule ticks %d missed %d due %s\n", x.Ticks, x.Missed, x.Due.Format(time.RFC3339))
	}
	for _, m := range out.Send {
		fmt.Fprintf(&b, "  send %s", m.Envelope.Type)
		if m.Envelope.InstanceID != s.InstanceID {
			payload := m.Envelope.Payload
			for _, x := range s.Waits {
				payload = bytes.ReplaceAll(payload, []byte(x.Token), []byte("…"))
			}
			fmt.Fprintf(&b, " to %s %s", m.Envelope.InstanceID, payload)
		}
		if !m.Due.IsZero() {
			fmt.Fprintf(&b, " due %s", m.Due.Format(time.RFC3339))
		}
		b.WriteByte('\n')
	}
	for _, c := range out.Tasks {
		fmt.Fprintf(&b, "  task %s", c.Event)
		if c.Create != nil {
			raw, _ := json.Marshal(struct {
				Name string `json:"name,omitempty"`
				*engine.Task
				DueAt   time.Time `json:"dueAtUtc,omitzero"`
				Pointer string    `json:"ptr,omitempty"`
			}{c.Create.Name, c.Create, c.Create.DueAt, c.Create.Pointer})
			fmt.Fprintf(&b, " %s", raw)
		}
		b.WriteByte('\n')
	}
	if len(out.Settled) > 0 {
		positions := make([]int64, len(out.Settled))
		for i, s := range out.Settled {
			positions[i] = s.Position
		}
		fmt.Fprintf(&b, "  settled %v\n", positions)
	}
	w.showState(&b, s)
	w.snap = stored(s)
	return b.String()
}

// stored is the snapshot as the next node reads it.
func stored(s snapshot.Snapshot) snapshot.Snapshot {
	raw, err := s.Encode()
	if err != nil {
		panic(err)
	}
	if s, err = snapshot.Decode(raw); err != nil {
		panic(err)
	}
	return s
}

func (w *world) showState(b *strings.Builder, s snapshot.Snapshot) {
	var waits []string
	for _, x := range s.Waits {
		line := fmt.Sprintf("  waits %s at %s", x.Kind, x.Pointer)
		if x.Arm > 0 {
			line += fmt.Sprintf("[%d]", x.Arm)
		}
		if len(x.Key) > 0 {
			line += " " + engine.Key(x.Key)
		}
		if x.Left > 0 {
			line += " (left)"
		}
		waits = append(waits, line+"\n")
	}
	sort.Strings(waits)
	b.WriteString(strings.Join(waits, ""))
	if len(s.Buffer) > 0 {
		fmt.Fprintf(b, "  keeps %d\n", len(s.Buffer))
	}
	for _, x := range s.Senders {
		fmt.Fprintf(b, "  of %s %d\n", x.Name, x.Last)
	}
	for _, x := range s.Ahead {
		fmt.Fprintf(b, "  ahead %s %d\n", x.Sender, x.Sequence)
	}
	if len(s.State.Context) > 0 {
		fmt.Fprintf(b, "  context %s\n", s.State.Context)
	}
	for _, c := range s.Compensations {
		fmt.Fprintf(b, "  undoes %s by %s %s%s", c.Pointer, c.Target, c.Input, c.Lacks)
		if c.Open {
			b.WriteString(" (open)")
		}
		b.WriteByte('\n')
	}
	for _, br := range s.Branches {
		if len(br.Data) > 0 {
			fmt.Fprintf(b, "  data %s\n", br.Data)
		}
	}
	if s.State.Output != nil {
		fmt.Fprintf(b, "  output %s\n", s.State.Output)
	}
}
