package model

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aqueduct-engine/aqueduct/ack"
	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/definition/openworkflow"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/await"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// documents are what instances run. None waits longer than its test asks for.
var documents = []string{`
document: {dsl: '1.0.3', namespace: m, name: flow, version: '1.0.0'}
do:
  - first: {call: effect, with: {name: first, fails: '${ .fails // false }'}, output: {as: '${ $input + {first: .n} }'}}
  - go: {listen: {to: {one: {with: {type: go}}}}, output: {as: '${ $input + {go: .[0]} }'}}
  - ask: {call: humanTask, with: {title: Look, candidateGroups: [clerks], outcomes: ['yes', 'no']}, output: {as: '${ $input + {said: .outcome} }'}}
  - last: {call: effect, with: {name: last}, output: {as: '${ $input + {last: .n} }'}}
`, `
document: {dsl: '1.0.3', namespace: m, name: ack, version: '1.0.0'}
do:
  - tell: {call: acknowledged, with: {call: effect, with: {name: tell}, within: PT1H}, output: {as: '${ $input + {told: .} }'}}
`, `
document: {dsl: '1.0.3', namespace: m, name: timed, version: '1.0.0'}
do:
  - pause: {wait: PT0.01S}
  - each: {call: forEach, with: {in: '${ [1, 2, 3] }', each: item, call: effect, with: {name: each, n: '${ $item }'}}}
`, `
document: {dsl: '1.0.3', namespace: m, name: family, version: '1.0.0'}
do:
  - child: {run: {workflow: {namespace: m, name: flow, version: '1.0.0', input: {child: true}}}}
`, `
document: {dsl: '1.0.3', namespace: m, name: ear, version: '1.0.0'}
do:
  - hear: {listen: {to: {one: {with: {type: cry}, correlate: {who: {from: .data.who, expect: '${ .who }'}}}}}}
`, `
document: {dsl: '1.0.3', namespace: m, name: hours, version: '1.0.0'}
do:
  - rest: {wait: PT1H}
  - after: {call: effect, with: {name: after}}
`, `
document: {dsl: '1.0.3', namespace: m, name: late, version: '1.0.0'}
do:
  - ask: {call: humanTask, with: {title: Look, candidateGroups: [clerks], outcomes: ['yes', 'no']}, timeout: {after: PT2H}, output: {as: .outcome}}
`}

// world is a node on one of the stores.
type world struct {
	name  string
	place string // where the invariants are looked at; "" = nowhere
	open  func(ctx context.Context) (*testdb.Database, error)
	sick  *atomic.Bool // effects that may fail do

	real map[string]string // the ids of children, which no two databases give alike, by the names that a run has for them

	operations int

	more      []string // documents beside those of all
	published func(ctx context.Context, event json.RawMessage) (any, error)

	clock *clock                                           // nil = the machine's
	leap  func(ctx context.Context, d time.Duration) error // advances the clock of the database, where it has one

	st   *testdb.Database
	cat  *definition.Catalogue
	rt   *runtime.Runtime
	stop context.CancelFunc
	done chan error
}

// start runs a node on the world's store.
func (w *world) start(ctx context.Context) error {
	var err error
	if w.st, err = w.open(ctx); err != nil {
		return err
	}
	cat := definition.New(w.st, openworkflow.Parsers(), w.clock.now)
	w.cat = cat
	for i, d := range append(slices.Clone(documents), w.more...) {
		if _, _, err := cat.Publish(ctx, fmt.Sprintf("doc-%d.yaml", i), []byte(d)); err != nil {
			return fmt.Errorf("document %d: %w", i, err)
		}
	}
	performer := activity.New(activity.Config{Policy: activity.Policy{MaxAttempts: 1}})
	performer.Register("effect", w.effect)
	if w.published != nil {
		performer.Register(engine.TargetEvent, w.published)
	}
	w.rt, err = runtime.New(ctx, runtime.Config{
		Store: w.st.Parts, Definitions: cat, Performer: performer, Now: w.clock.now, RetryMax: -1, NoticeKeep: -1, BreakAfter: 1 << 20, SignalConsumers: 2, ScheduleConsumers: 2, CommandConsumers: 2,
	})
	if err != nil {
		return err
	}
	run, stop := context.WithCancel(ctx)
	w.stop, w.done = stop, make(chan error, 1)
	go func() { w.done <- w.rt.Run(run) }()
	return nil
}

// effect tells what it was asked, and fails where it may while effects are sick.
func (w *world) effect(_ context.Context, input json.RawMessage) (any, error) {
	var in struct {
		Name  string
		Fails bool
	}
	if err := json.Unmarshal(input, &in); err != nil {
		return nil, err
	}
	if in.Fails && w.sick.Load() {
		return nil, problem.New(problem.Invalid, "effect.sick", "it is sick")
	}
	return map[string]any{"n": len(input)}, nil
}

func (w *world) close() error {
	w.stop()
	return errors.Join(<-w.done, w.st.Close())
}

// verify looks at the invariants, and at every row, after every operation; on Oracle, where that
// takes a session of its own, after every fifth.
func (w *world) verify(ctx context.Context) error {
	w.operations++
	if w.place == "" || w.name == "oracle" && w.operations%5 > 0 {
		return nil
	}
	return errors.Join(testdb.Verify(ctx, w.place), testdb.Check(ctx, w.place))
}

// quiet waits until nothing is due and no command is with a worker.
func (w *world) quiet(ctx context.Context, prefix string) (state, error) {
	var wait await.Wait
	var last string
	for calm := 0; ; {
		queues, err := w.st.Backlog.Queues(ctx)
		if err != nil {
			return state{}, err
		}
		s, err := w.state(ctx, prefix)
		if err != nil {
			return state{}, err
		}
		busy, delayed := 0, 0
		for _, q := range queues {
			busy += q.Ready + q.Leased
			delayed += q.Delayed
		}
		raw, _ := json.Marshal(s) // plain data
		if string(raw) == last && busy == 0 && s.settled() {
			calm++
		} else {
			calm = 0
		}
		if last = string(raw); calm == 3 {
			return s, nil
		}
		if !wait.Again(2*time.Millisecond, last) {
			return s, fmt.Errorf("%s does not come to rest: %d messages ready, %d delayed: %s", w.name, busy, delayed, raw)
		}
	}
}

// state is what may be seen of the instances of one run.
type state struct {
	Instances   []instance
	Tasks       []task
	DeadLetters []string
}

type instance struct {
	ID, Definition, Status, At, Parent, Error string
	Version                                   int64
	Output                                    string
	Stream                                    []string
	Waits                                     []string
	open                                      bool // something is going on
}

type task struct {
	ID, Status, Assignee, Role, Outcome string
	Version                             int64
	Events                              []string
}

// settled says that no instance has something going on: a command that is
// performed, or a timer that is nearly due.
func (s state) settled() bool {
	return !slices.ContainsFunc(s.Instances, func(i instance) bool { return i.open })
}

// state reads everything whose instance has the prefix.
func (w *world) state(ctx context.Context, prefix string) (state, error) {
	var s state
	names, rows, err := w.rows(ctx, prefix)
	if err != nil {
		return s, err
	}
	for _, row := range rows {
		i, err := w.instance(ctx, row)
		if errors.Is(err, store.ErrNotFound) {
			continue // retention was faster
		}
		if err != nil {
			return s, err
		}
		i.ID, i.Parent = names[row.ID], names[row.ParentID]
		s.Instances = append(s.Instances, i)
		tasks, err := w.tasks(ctx, row.ID)
		if err != nil {
			return s, err
		}
		for n, k := range tasks { // their ids have the incarnation of the instance in them
			real := k.ID
			k.ID = fmt.Sprint(names[row.ID], "#", n)
			w.real[k.ID] = real
			s.Tasks = append(s.Tasks, k)
		}
	}
	deadLetters, err := w.st.DeadLetters.DeadLetters(ctx, backend.DeadLetterQuery{Limit: projections.MaxLimit})
	if err != nil {
		return s, err
	}
	for _, l := range deadLetters.Items {
		if name := names[l.InstanceID]; name != "" || strings.HasPrefix(l.InstanceID, prefix) {
			s.DeadLetters = append(s.DeadLetters, cmp.Or(name, l.InstanceID)+" "+l.Reason)
		}
	}
	slices.SortFunc(s.Instances, func(a, b instance) int { return strings.Compare(a.ID, b.ID) })
	slices.SortFunc(s.Tasks, func(a, b task) int { return strings.Compare(a.ID, b.ID) })
	slices.Sort(s.DeadLetters)
	return s, nil
}

// rows are the instances of a run, with their names: a child is named for its
// parent.
func (w *world) rows(ctx context.Context, prefix string) (names map[string]string, rows []projections.Instance, err error) {
	var all []projections.Instance
	for after := ""; ; {
		page, err := w.st.Instances.Instances(ctx, backend.InstanceQuery{After: after, Limit: projections.MaxLimit})
		if err != nil {
			return nil, nil, err
		}
		all = append(all, page.Items...)
		if after = page.Next; after == "" {
			break
		}
	}
	names, w.real = map[string]string{}, map[string]string{}
	slices.SortFunc(all, func(a, b projections.Instance) int {
		return cmp.Or(a.StartedAt.Compare(b.StartedAt), strings.Compare(a.ID, b.ID))
	})
	born := map[string]int{}
	for more := true; more; { // until every child has found its parent
		more = false
		for _, row := range all {
			parent := names[row.ParentID]
			switch {
			case names[row.ID] != "" || parent == "" && !strings.HasPrefix(row.ID, prefix) && !strings.HasPrefix(row.ID, scheduleOf(prefix)):
				continue
			case parent != "":
				born[parent]++
				names[row.ID] = fmt.Sprint(parent, "~child", born[parent])
			default:
				names[row.ID] = row.ID
			}
			w.real[names[row.ID]] = row.ID
			rows, more = append(rows, row), true
		}
	}
	return names, rows, nil
}

// of is the id in this world of what a run has a name for.
func (w *world) of(name string) string { return cmp.Or(w.real[name], name) }

func (w *world) instance(ctx context.Context, row projections.Instance) (instance, error) {
	snap, err := w.st.Writer.Load(ctx, row.ID)
	if err != nil {
		return instance{}, err
	}
	i := instance{
		ID: row.ID, Definition: row.Definition, Status: string(snap.Status), At: snap.At(), Parent: row.ParentID, Error: row.ErrorType,
		Version: snap.Version, Output: string(snap.State.Output),
	}
	for _, wait := range snap.Waits {
		i.Waits = append(i.Waits, fmt.Sprintf("%s %s %d %s", wait.Kind, wait.Pointer, wait.Command, wait.Event))
		soon := !wait.Until.IsZero() && wait.Until.Sub(w.clock.now()) < time.Minute
		i.open = i.open || soon && !snap.Status.Closed() && snap.Status != "suspended"
	}
	slices.Sort(i.Waits)
	entries, err := w.st.Streams.Stream(ctx, row.ID, 0, projections.MaxLimit)
	if err != nil {
		return i, err
	}
	for _, e := range entries {
		processed := "-"
		if e.Processed != nil {
			processed = fmt.Sprint(*e.Processed)
			soon := e.NextAttemptAt.Sub(w.clock.now()) < time.Minute // its message is counted by no queue yet
			i.open = i.open || !*e.Processed && (e.DeliveredAt.IsZero() || !e.NextAttemptAt.IsZero() && soon && len(snap.Buffer) == 0)
		}
		i.Stream = append(i.Stream, fmt.Sprintf("%d %s %s %s %s %s", e.Position, e.Kind, e.Direction, e.Type, named(e, snap.Incarnation), processed))
	}
	return i, nil
}

// derived is the id of a signal that another instance has sent, its parent say: it
// begins with that one's incarnation.
var derived = regexp.MustCompile(`^[\w-]{16}(\.\d+\.\d+\.\d+)$`)

// named is the id of a signal without what is random in it: the incarnation of
// an instance, and the token that names a result.
func named(e projections.Entry, incarnation string) string {
	id := derived.ReplaceAllString(strings.ReplaceAll(e.SignalID, incarnation, ""), "$1")
	if _, of, ok := strings.Cut(id, "/"); ok && e.Type == string(signal.TaskCompleted) {
		return "token/" + of
	}
	return id
}

func (w *world) tasks(ctx context.Context, id string) ([]task, error) {
	var list []task
	page, err := w.st.Tasks.Tasks(ctx, backend.TaskQuery{InstanceID: id, Limit: projections.MaxLimit})
	if err != nil {
		return nil, err
	}
	for _, row := range page.Items {
		k := task{ID: row.ID, Status: row.Status, Assignee: row.Assignee, Role: row.Role, Outcome: row.Outcome, Version: row.Version}
		events, err := w.st.Tasks.TaskEvents(ctx, row.ID)
		if err != nil {
			return nil, err
		}
		for _, e := range events {
			k.Events = append(k.Events, e.Event+" "+e.Actor)
		}
		list = append(list, k)
	}
	return list, nil
}

// said is what a call of a service came to: its answer, or the code of its
// problem.
func said(answer any, err error) string {
	var p *problem.Error
	switch {
	case errors.As(err, &p):
		return p.Code
	case errors.Is(err, store.ErrNotFound):
		return "not found"
	case err != nil:
		return err.Error()
	}
	return fmt.Sprint(answer)
}

// envelope is a signal of an application.
func envelope(id, signalID, kind string) signal.Envelope {
	return signal.Envelope{
		SignalID: signalID, InstanceID: id, Type: signal.ExternalSignal, OccurredAt: time.Now(), Payload: json.RawMessage(`{"type":"` + kind + `","data":1}`),
	}
}

// acknowledge settles the first command of an instance.
func (w *world) acknowledge(ctx context.Context, id, kind string) (any, error) {
	entries, err := w.st.Streams.Pending(ctx, id, 1)
	if err != nil {
		return nil, err
	}
	position := int64(1)
	if len(entries) > 0 {
		position = entries[0].Position
	}
	return w.rt.Acknowledge(ctx, id, position, ack.Ack{Outcome: ack.Outcome(kind)})
}

// deadLetter replays or discards the i-th dead letter of a run, in the order of state.
func (w *world) deadLetter(ctx context.Context, prefix string, i int, replay bool) error {
	page, err := w.st.DeadLetters.DeadLetters(ctx, backend.DeadLetterQuery{Limit: projections.MaxLimit})
	if err != nil {
		return err
	}
	list := slices.DeleteFunc(page.Items, func(l projections.DeadLetter) bool { return !strings.HasPrefix(l.InstanceID, prefix) })
	if i >= len(list) {
		return fmt.Errorf("dead letter %d is of a child", i)
	}
	slices.SortStableFunc(list, func(a, b projections.DeadLetter) int {
		return strings.Compare(a.InstanceID+" "+a.Reason, b.InstanceID+" "+b.Reason)
	})
	if replay {
		_, err := w.rt.Replay(ctx, list[i].ID)
		return err
	}
	return w.rt.Discard(ctx, list[i].ID)
}

// answer completes the open task of an instance, whoever has it.
func (w *world) answer(ctx context.Context, id string) error {
	page, err := w.st.Tasks.Tasks(ctx, backend.TaskQuery{InstanceID: id})
	if err != nil {
		return err
	}
	for _, k := range page.Items {
		if k.Status != projections.TaskReady && k.Status != projections.TaskReserved {
			continue
		}
		user := k.Assignee
		if user == "" {
			user = "ann"
			if _, err := w.rt.ClaimTask(ctx, k.ID, user, []string{"clerks"}); err != nil {
				return err
			}
		}
		if _, err := w.rt.CompleteTask(ctx, k.ID, user, []string{"clerks"}, "yes", nil); err != nil {
			return err
		}
	}
	return nil
}
