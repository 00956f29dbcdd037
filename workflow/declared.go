package workflow

import (
	"encoding/json"
	"maps"
	"slices"
)

// declared is what a definition says of itself: what its digest is of.
type declared struct {
	Workflow string         `json:"workflow"`
	Version  string         `json:"version"`
	Start    []string       `json:"start,omitzero"`
	Steps    []declaredStep `json:"steps"`
	Upcasts  []string       `json:"upcasts,omitempty"` // versions
}

type declaredStep struct {
	step
	To      []string `json:"to,omitzero"`
	OnError []string `json:"onFailure,omitzero"` // nil = the workflow fails
}

func (d *Definition) declared() declared {
	all := declared{Workflow: d.ref.Name, Version: d.ref.Version, Start: d.start.to, Upcasts: slices.Sorted(maps.Keys(d.upcasts))}
	for _, p := range slices.Sorted(maps.Keys(d.steps)) {
		s := d.steps[p]
		one := declaredStep{step: *s, To: s.done.to}
		if s.failed != nil {
			one.OnError = append([]string{}, s.failed.to...)
		}
		all.Steps = append(all.Steps, one)
	}
	return all
}

// Declared is what the definition says of itself, as JSON: its steps, what they call,
// and where they lead to; diagram.Mermaid draws it. Two programs with the same name and
// version must declare the same.
func (d *Definition) Declared() json.RawMessage { return slices.Clone(d.document) }

// Functions are the registered functions that its steps call, by pointer.
func (d *Definition) Functions() map[string]string {
	all := map[string]string{}
	for at, s := range d.steps {
		if s.Kind == kindCall {
			all[at] = s.Target
		}
	}
	return all
}

// ListensOtherwise names the steps that listen for something else than those of the same
// names in what another version declared: who waits there has the key of before.
func (d *Definition) ListensOtherwise(of json.RawMessage) (names []string) {
	var old declared
	if decode(of, &old) != nil {
		return nil
	}
	sorted := func(keys []string) []string { return slices.Sorted(slices.Values(keys)) }
	for _, o := range old.Steps {
		s := d.steps[pointerOf(o.Name)]
		if s != nil && o.Kind == kindEvent && (s.Kind != o.Kind || s.Target != o.Target || !slices.Equal(sorted(s.Keys), sorted(o.Keys))) {
			names = append(names, o.Name)
		}
	}
	return names
}
