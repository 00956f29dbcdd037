package program

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/jq"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// Filter says which events a listen takes.
type Filter struct {
	Type      string                  // the event's type; "" = any
	With      map[string]*jq.Template // attributes that must be equal, evaluated on the event when it comes; the value is a literal, or an expression that gives true for a match
	Correlate []Correlation           // in order of their names, at most MaxCorrelations
}

// Correlation ties an event to an instance.
type Correlation struct {
	Name   string
	From   *jq.Template // on the event
	Expect *jq.Template // on the instance's data when the wait is made; nil = the first value that any filter of the listen takes
}

// MaxCorrelations bounds the correlations of one filter.
const MaxCorrelations = 32

func (l *Listen) filter(arm int) *Filter {
	if arm < len(l.Filters) {
		return &l.Filters[arm]
	}
	if arm -= len(l.Filters); arm < len(l.UntilFilters) {
		return &l.UntilFilters[arm]
	}
	return nil
}

// wait is the wait for the events of a filter, with the values that it expects.
func (l *Listen) wait(pointer string, arm int, eval func(*jq.Template) (value, error)) (snapshot.Wait, error) {
	filter := l.filter(arm)
	w := snapshot.Wait{Kind: snapshot.WaitEvent, Pointer: pointer, Arm: arm, Event: cmp.Or(filter.Type, engine.AnyType)}
	for _, c := range filter.Correlate {
		if c.Expect == nil {
			continue
		}
		v, err := eval(c.Expect)
		if err != nil {
			return w, err
		}
		raw, err := v.Raw(maxKeyBytes)
		if err != nil {
			return w, err
		}
		if w.Key == nil {
			w.Key = map[string]string{}
		}
		w.Key[c.Name] = string(raw)
	}
	return w, nil
}

// Subscriptions are the waits of a schedule's listen.
func (n *Node) Subscriptions(limits engine.Limits) ([]snapshot.Wait, error) {
	var waits []snapshot.Wait
	for arm := range n.Listen.Filters {
		w, err := n.Listen.wait(n.Pointer, arm, func(e *jq.Template) (value, error) {
			v, err := e.Eval(nil, nil, limits.Expression)
			return anyValue(v), err
		})
		if err != nil {
			return nil, err
		}
		waits = append(waits, w)
	}
	return waits, nil
}

// maxKeyBytes bounds one value of a correlation key.
const maxKeyBytes = 1 << 10

// Matches reports whether an event satisfies an event wait: its type, its
// further attributes, and the correlation values expected.
func (p *Program) Matches(s *snapshot.Snapshot, w snapshot.Wait, event json.RawMessage) (bool, error) {
	filter := filterAt(p, w.Pointer, w.Arm)
	if filter == nil {
		return false, fmt.Errorf("program: %s: nothing listens at %s", s.InstanceID, w.Pointer)
	}
	found, ok, err := filter.fits(event)
	if err != nil || !ok {
		return false, err
	}
	for name, want := range w.Key {
		if found[name] != want {
			return false, nil
		}
	}
	return true, nil
}

func filterAt(p *Program, pointer string, arm int) *Filter {
	n := p.node(pointer)
	if n == nil || n.Listen == nil {
		return nil
	}
	return n.Listen.filter(arm)
}

// Correlate returns the key of an event for the waits of a filter that have
// bound the given correlations, besides those with an expectation. Who waits where nothing
// listens gets none.
func (p *Program) Correlate(pointer string, arm, bound int, event json.RawMessage) (string, bool, error) {
	filter := filterAt(p, pointer, arm)
	if filter == nil {
		return "", false, nil
	}
	found, ok, err := filter.fits(event)
	if err != nil || !ok {
		return "", false, err
	}
	for i, c := range filter.Correlate {
		if c.Expect == nil && bound&(1<<i) == 0 {
			delete(found, c.Name)
		}
	}
	return engine.Key(found), true, nil
}

// CorrelationRule says how the events of a filter are told, as its author wrote it: an event
// has one key for all filters that say the same.
func (p *Program) CorrelationRule(pointer string, arm, bound int) string {
	filter := filterAt(p, pointer, arm)
	if filter == nil {
		return ""
	}
	says := []any{filter.Type}
	whole := true
	say := func(name string, of bool, t *jq.Template) {
		shown := t.String()
		whole = whole && len(shown) <= jq.MaxShown && shown[0] != '(' // of what is long only that it is
		says = append(says, name, of, shown)
	}
	for _, name := range slices.Sorted(maps.Keys(filter.With)) {
		say(name, filter.With[name].Constant(), filter.With[name])
	}
	for i, c := range filter.Correlate {
		say(c.Name, c.Expect != nil || bound&(1<<i) != 0, c.From)
	}
	raw, err := json.Marshal(says)
	if err != nil || !whole {
		return ""
	}
	return string(raw)
}

// fits evaluates the filter on an event, and gives the values by which it is
// correlated. An event on which an expression fails simply does not fit.
func (f *Filter) fits(event json.RawMessage) (map[string]string, bool, error) {
	e, err := jq.Decode(event)
	if err != nil {
		return nil, false, nil
	}
	attributes, ok := e.(map[string]any)
	if !ok || (f.Type != "" && text(attributes["type"]) != f.Type) {
		return nil, false, nil
	}
	for name, t := range f.With {
		v, err := t.Eval(e, nil, jq.Limits{})
		if err != nil {
			return nil, false, nil
		}
		if yes, isBool := v.(bool); isBool && !t.Constant() {
			if !yes {
				return nil, false, nil
			}
			continue
		}
		if text(v) != text(attributes[name]) {
			return nil, false, nil
		}
	}
	found := map[string]string{}
	for _, c := range f.Correlate {
		v, err := c.From.Eval(e, nil, jq.Limits{})
		if err != nil {
			return nil, false, nil
		}
		raw, err := jq.Encode(v, maxKeyBytes)
		if err != nil {
			return nil, false, nil
		}
		found[c.Name] = string(raw)
	}
	return found, true, nil
}
