package program

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/jq"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	jsonv2 "github.com/go-json-experiment/json"
)

// Listen waits for events. Each filter is a wait of its own, whose Arm is its
// index: first in Filters, then in UntilFilters.
type Listen struct {
	Mode         ListenMode
	Filters      []Filter
	Until        *jq.Template // ListenAny: stop when it is truthy for the array of events so far
	UntilMode    ListenMode   // ListenAny: how UntilFilters stop it; their events are not in the output
	UntilFilters []Filter
	Forever      bool // ListenAny: it never stops by itself, so nothing is collected
	Envelope     bool // read the whole event, not its data
	Each         *Each
}

// ListenMode says how many events a list of filters takes.
type ListenMode string

const (
	ListenOne ListenMode = "one" // one event of the one filter
	ListenAny ListenMode = "any" // one event of any filter; with an until, more
	ListenAll ListenMode = "all" // one event of each filter
)

// Each processes the events of a listen one after the other, in the order in
// which they came. Its tasks are the node's Body, which may be nil.
type Each struct {
	Item    string       // variable of the event as it is read, without $
	At      string       // variable of its index, without $
	Output  *jq.Template // output.as of one event; nil = as it is
	Export  *jq.Template // export.as of one event; nil = context stays
	Schemas Schemas      // of the output and the export of one event
}

// says is what a listen listens for, as its author wrote it; "" where that is too long to be
// shown.
func (l *Listen) says() string {
	whole := true
	shown := func(t *jq.Template) string {
		if t == nil {
			return ""
		}
		s := t.String()
		whole = whole && len(s) <= jq.MaxShown && s[0] != '('
		return s
	}
	says := []any{l.Mode, l.UntilMode, l.Forever, l.Envelope, shown(l.Until), l.Each != nil}
	if l.Each != nil {
		says = append(says, l.Each.Item, l.Each.At)
	}
	for _, f := range slices.Concat(l.Filters, l.UntilFilters) {
		says = append(says, f.Type, len(f.With), len(f.Correlate))
		for _, name := range slices.Sorted(maps.Keys(f.With)) {
			says = append(says, name, shown(f.With[name]))
		}
		for _, c := range f.Correlate {
			says = append(says, c.Name, shown(c.From), shown(c.Expect))
		}
	}
	raw, err := json.Marshal(append(says, len(l.Filters)))
	if err != nil || !whole {
		return ""
	}
	return string(raw)
}

// phaseDelivered marks the frame of a listen that takes no more events, and still
// has some to process.
const phaseDelivered = "heard"

// lasts reports whether a filter takes more than one event.
func (l *Listen) lasts(arm int) bool {
	return arm < len(l.Filters) && l.Mode == ListenAny && (l.Until != nil || l.Forever || len(l.UntilFilters) > 0)
}

// keepsEvents reports whether the events that have been processed are asked
// for again.
func (l *Listen) keepsEvents() bool { return l.Until != nil }

// listen begins to listen: with the events that came early, then by waiting.
func (r listens) listen(n *Node, in *scope) (rests bool, err error) {
	l := n.Listen
	if filters := len(l.Filters) + len(l.UntilFilters); filters > r.t.In.Limits.FanOut {
		return false, raise(engine.ErrRuntime, 500, "Limit exceeded", fmt.Sprintf("%d events at once exceed %d", filters, r.t.In.Limits.FanOut))
	}
	r.w.tell(engine.WorkflowCorrelationStartedEvent, "", nil)
	if err := r.subscribe(n, r.top(), &r.data, in); err != nil {
		return false, err
	}
	return r.process(n)
}

// subscribe makes the waits of the filters that have not had their event. The
// filters that end the listening come first: an event that fits both ends it.
func (r listens) subscribe(n *Node, f *snapshot.Frame, data *value, in *scope) error {
	l := n.Listen
	all := len(l.Filters) + len(l.UntilFilters)
	if l.Mode == ListenAll && len(l.Filters) == 0 {
		f.Phase = phaseDelivered
	}
	waits := make([]snapshot.Wait, 0, all)
	for i := range all {
		arm := (len(l.Filters) + i) % all
		if slices.Contains(f.Done, arm) {
			continue
		}
		w, err := r.subscription(n, f, arm, data, in)
		if err != nil {
			return err
		}
		waits = append(waits, w)
	}
	one := l.Until != nil && l.Each != nil // the next when it is known that this was not the last
	for len(waits) > 0 && f.Phase != phaseDelivered && !(one && len(f.Items) > f.Next) {
		i, event, ok, err := r.t.Early(waits)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		w := waits[i]
		if waits = slices.Delete(waits, i, i+1); l.lasts(w.Arm) {
			waits = append(waits, w)
		}
		if err := r.deliverEvent(n, f, w, event, in); err != nil {
			return err
		}
		for i := range waits {
			waits[i] = bind(l, f, waits[i])
		}
	}
	if f.Phase == phaseDelivered {
		return nil
	}
	for _, w := range waits {
		r.t.Await(w)
	}
	return nil
}

// listenAgain makes the waits of the listen at frame i anew, after a fault has
// withdrawn them all.
func (r listens) listenAgain(n *Node, i int) error {
	f := &r.b.Frames[i]
	in, data := about(n, f), rawValue(f.Input)
	in.inside = len(r.b.Frames) - i
	err := r.subscribe(n, f, &data, &in)
	if err != nil {
		r.waits.unwind(i, engine.TaskCancelled)
	}
	return err
}

// subscription is the wait of one filter, not yet made. What a correlation
// expects is evaluated on the input of the listen.
func (r listens) subscription(n *Node, f *snapshot.Frame, arm int, data *value, in *scope) (snapshot.Wait, error) {
	w, err := n.Listen.wait(n.Pointer, arm, func(t *jq.Template) (value, error) {
		v, err := r.evals.evalOn(t, data, in)
		return anyValue(v), err
	})
	w.Branch = r.b.ID
	return bind(n.Listen, f, w), err
}

// bind adds the values that the listen has bound to a wait.
func bind(l *Listen, f *snapshot.Frame, w snapshot.Wait) snapshot.Wait {
	key := maps.Clone(w.Key)
	for i, c := range l.filter(w.Arm).Correlate {
		v, ok := f.Bound[c.Name]
		if c.Expect != nil || !ok {
			continue
		}
		if key == nil {
			key = map[string]string{}
		}
		key[c.Name] = v
		w.Bound |= 1 << i
	}
	w.Key = key
	return w
}

// delivered takes an event that a wait of the listen n was for. The branch may be
// at work on an event before.
func (r listens) delivered(n *Node, w snapshot.Wait, event json.RawMessage) (rests bool, err error) {
	i := slices.IndexFunc(r.b.Frames, func(f snapshot.Frame) bool { return f.Pointer == n.Pointer })
	if i < 0 {
		return false, fmt.Errorf("program: %s: %s does not listen", r.t.Snap.InstanceID, n.Pointer)
	}
	f := &r.b.Frames[i]
	busy := i < len(r.b.Frames)-1
	in := about(n, f)
	err = r.renew(n, f, w, event, &in)
	if err == nil && (busy || continues(r.t.Snap, r.b.ID)) {
		return true, nil
	}
	if in.input.there() { // else it processes nothing, and leaves the data as they are
		r.data = in.input
	}
	if err != nil {
		r.waits.unwind(i, engine.TaskCancelled) // raised at the listen, not where it is at work
		return false, err
	}
	return r.process(n)
}

// renew gives an event to the listen and keeps its waits in step.
func (r listens) renew(n *Node, f *snapshot.Frame, w snapshot.Wait, event json.RawMessage, in *scope) error {
	known := len(f.Bound)
	if err := r.deliverEvent(n, f, w, event, in); err != nil {
		return err
	}
	mine := r.listening(n)
	if f.Phase == phaseDelivered {
		r.t.Withdraw(engine.TaskCancelled, mine)
		return nil
	}
	var again []snapshot.Wait
	if len(f.Bound) > known { // all are found by another key from now on
		for _, other := range r.t.Snap.Waits {
			if mine(other) {
				again = append(again, other)
			}
		}
		r.t.Withdraw(engine.TaskCancelled, mine)
	}
	if n.Listen.lasts(w.Arm) {
		again = append(again, w)
	}
	for _, w := range again {
		w.Token = ""
		r.t.Await(bind(n.Listen, f, w))
	}
	return nil
}

// listening says which waits are those of the listen n.
func (r listens) listening(n *Node) func(w snapshot.Wait) bool {
	return func(w snapshot.Wait) bool {
		return w.Kind == snapshot.WaitEvent && w.Branch == r.b.ID && w.Pointer == n.Pointer
	}
}

// continues reports whether a branch goes on in a turn of its own.
func continues(s *snapshot.Snapshot, branch int) bool {
	return slices.ContainsFunc(s.Waits, func(w snapshot.Wait) bool { return w.Kind == snapshot.WaitNext && w.Branch == branch })
}

// deliverEvent collects an event, and notices whether it was the last.
func (r listens) deliverEvent(n *Node, f *snapshot.Frame, w snapshot.Wait, event json.RawMessage, in *scope) error {
	l := n.Listen
	found, ok, err := l.filter(w.Arm).fits(event)
	if err != nil || !ok {
		return raise(engine.ErrValidation, 400, "Not an event", fmt.Sprintf("the signal is no event of type %s", w.Event))
	}
	for _, c := range l.filter(w.Arm).Correlate {
		if _, bound := f.Bound[c.Name]; c.Expect == nil && !bound {
			if f.Bound == nil {
				f.Bound = map[string]string{}
			}
			f.Bound[c.Name] = found[c.Name]
		}
	}
	if until := w.Arm - len(l.Filters); until >= 0 {
		f.Done = append(f.Done, w.Arm)
		if l.UntilMode != ListenAll || len(f.Done) == len(l.UntilFilters) {
			f.Phase = phaseDelivered
		}
		return nil
	}
	item, err := l.read(event)
	if err != nil {
		return err
	}
	if len(f.Items)+len(f.Results) >= r.t.In.Limits.Items {
		return raise(engine.ErrRuntime, 500, "Limit exceeded", fmt.Sprintf("one listen has collected %d events", r.t.In.Limits.Items))
	}
	if l.Each != nil || !l.Forever {
		f.Items = append(slices.Clip(f.Items), item)
	}
	switch {
	case l.Mode == ListenAll:
		if f.Done = append(f.Done, w.Arm); len(f.Done) == len(l.Filters) {
			f.Phase = phaseDelivered
		}
	case l.Until != nil && l.Each == nil:
		return r.until(l, f, f.Items, in)
	case !l.lasts(w.Arm):
		f.Phase = phaseDelivered
	}
	return nil
}

// until evaluates the condition to stop on the events so far.
func (r listens) until(l *Listen, f *snapshot.Frame, events []json.RawMessage, in *scope) error {
	all, err := json.Marshal(events)
	if err != nil {
		return err
	}
	data := rawValue(all)
	v, err := r.evals.evalOn(l.Until, &data, in)
	if err == nil && jq.Truthy(v) {
		f.Phase = phaseDelivered
	}
	return err
}

// read gives of an event what the listen asks for.
func (l *Listen) read(event json.RawMessage) (json.RawMessage, error) {
	if l.Envelope {
		return event, nil
	}
	var e struct {
		Data json.RawMessage `json:"data"`
	}
	if err := jsonv2.Unmarshal(event, &e); err != nil {
		return nil, raise(engine.ErrValidation, 400, "Not an event", err.Error())
	}
	return orNull(e.Data), nil
}

// process begins with the next event of the listen on top, or ends it, or
// waits. The output is an array of the events in the order in which they came,
// or of what their processing gave.
func (r listens) process(n *Node) (rests bool, err error) {
	f, l := r.top(), n.Listen
	for l.Each != nil {
		at := 0
		if l.keepsEvents() {
			at = f.Next
		}
		if at >= len(f.Items) {
			if again, err := r.next(n); err != nil || !again {
				if err != nil {
					return false, err
				}
				break
			}
			f = r.top()
		}
		if !r.t.Step(n.Pointer) {
			r.t.Await(snapshot.Wait{Kind: snapshot.WaitNext, Branch: r.b.ID, Pointer: n.Pointer})
			return true, nil
		}
		f.Vars = map[string]json.RawMessage{l.Each.Item: f.Items[at], l.Each.At: json.RawMessage(itoa(f.Next))}
		r.data = rawValue(f.Input)
		if n.Body != nil {
			r.push(snapshot.Frame{Pointer: n.Body.Pointer})
			return false, nil
		}
		r.data = rawValue(f.Items[at])
		if err := r.processed(n); err != nil {
			return false, err
		}
	}
	if f.Phase != phaseDelivered {
		return true, nil
	}
	out := f.Items
	if l.Each != nil {
		out = f.Results
	}
	return false, r.complete(n, rawValue(array(out)), n.Then)
}

// processed takes the data as what the processing of an event gave.
func (r listens) processed(n *Node) error {
	f, l := r.top(), n.Listen
	in := about(n, f)
	if err := r.shape(l.Each.Output, l.Each.Export, l.Each.Schemas, &in); err != nil {
		return err
	}
	raw, err := r.data.Raw(snapshot.MaxBytes)
	if err != nil {
		return err
	}
	if !l.Forever {
		f.Results = append(slices.Clip(f.Results), raw)
	}
	if f.Next++; !l.keepsEvents() {
		f.Items = f.Items[1:]
	}
	f.Vars = nil
	r.data = rawValue(f.Input)
	if l.Until == nil {
		return nil
	}
	if err := r.until(l, f, f.Items[:f.Next], &in); err != nil || f.Phase != phaseDelivered {
		return err
	}
	r.t.Withdraw(engine.TaskCancelled, r.listening(n))
	return nil
}

// next takes an event that came while one was processed, at the listen on top.
func (r listens) next(n *Node) (bool, error) {
	f := r.top()
	if n.Listen.Until == nil || f.Phase == phaseDelivered {
		return false, nil
	}
	mine := r.listening(n)
	var waits []snapshot.Wait
	for _, w := range r.t.Snap.Waits {
		if mine(w) {
			waits = append(waits, w)
		}
	}
	i, event, ok, err := r.t.Early(waits)
	if err != nil || !ok {
		return false, err
	}
	token := waits[i].Token
	r.t.Withdraw(engine.TaskCancelled, func(w snapshot.Wait) bool { return w.Token == token })
	in := about(n, f)
	return true, r.renew(n, f, waits[i], event, &in)
}

// Postpones reports whether the listen that a wait is of takes its events one
// after the other, each when it is known that the one before was not the last,
// and is at work on one.
func (p *Program) Postpones(s *snapshot.Snapshot, w snapshot.Wait) bool {
	n, b := p.node(w.Pointer), s.Branch(w.Branch)
	if n == nil || n.Listen == nil || n.Listen.Until == nil || n.Listen.Each == nil || b == nil {
		return false
	}
	return b.Frames[len(b.Frames)-1].Pointer != n.Pointer || continues(s, b.ID)
}

// array writes values as a JSON array.
func array(values []json.RawMessage) json.RawMessage {
	return slices.Concat([]byte("["), bytes.Join(asBytes(values), []byte(",")), []byte("]"))
}

func asBytes(values []json.RawMessage) [][]byte {
	res := make([][]byte, len(values))
	for i, v := range values {
		res[i] = v
	}
	return res
}
