package workflow

import (
	"encoding/json"
	"strings"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// event is a CloudEvent as it came.
type event map[string]json.RawMessage

// eventOf reads an event; one that is no object has nothing.
func eventOf(raw json.RawMessage) event {
	var e event
	if decode(raw, &e) != nil {
		return nil
	}
	return e
}

// at is the value at a path, in canonical form.
func (e event) at(path string) (json.RawMessage, bool) {
	name, rest, deeper := strings.Cut(path, ".")
	v, ok := e[name]
	if !ok {
		return nil, false
	}
	if deeper {
		return eventOf(v).at(rest)
	}
	c, err := canonical(v)
	return c, err == nil
}

// Matches reports whether an event has the type and the values that a step listens
// for.
func (d *Definition) Matches(_ *snapshot.Snapshot, w snapshot.Wait, raw json.RawMessage) (bool, error) {
	e := eventOf(raw)
	if typ, err := e.text("type"); err != nil || typ != w.Event {
		return false, nil
	}
	for path, want := range w.Key {
		if got, ok := e.at(path); !ok || string(got) != want {
			return false, nil
		}
	}
	return true, nil
}

// CorrelationRule says how a step tells its events: steps that say the same have the same
// key of an event.
func (d *Definition) CorrelationRule(pointer string, _, _ int) string {
	s := d.steps[pointer]
	if s == nil || s.Kind != kindEvent {
		return ""
	}
	raw, err := json.Marshal([]any{"code", s.Target, s.Keys})
	if err != nil {
		return ""
	}
	return string(raw)
}

// Correlate gives the key of an event for those who listen at a step. Who waits at one that
// this version does not have gets none.
func (d *Definition) Correlate(pointer string, _, _ int, raw json.RawMessage) (string, bool, error) {
	s := d.steps[pointer]
	if s == nil || s.Kind != kindEvent {
		return "", false, nil
	}
	e := eventOf(raw)
	if typ, err := e.text("type"); err != nil || typ != s.Target {
		return "", false, nil
	}
	found := map[string]string{}
	for _, path := range s.Keys {
		v, ok := e.at(path)
		if !ok {
			return "", false, nil
		}
		found[path] = string(v)
	}
	return engine.Key(found), true, nil
}

func (e event) text(name string) (s string, err error) {
	err = decode(e[name], &s)
	return s, err
}
