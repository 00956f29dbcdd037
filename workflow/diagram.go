package workflow

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// declared is what a definition says of itself: what its digest is of.
type declared struct {
	Workflow string         `json:"workflow"`
	Version  string         `json:"version"`
	Start    []string       `json:"start"`
	Steps    []declaredStep `json:"steps"`
	Upcasts  []string       `json:"upcasts,omitempty"` // versions
}

type declaredStep struct {
	step
	To      []string `json:"to,omitempty"`
	OnError []string `json:"onFailure,omitempty"` // nil = the workflow fails
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
// and where they lead to. Two programs with the same name and version must declare
// the same.
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

// Mermaid draws the steps as a Mermaid flowchart, with an arrow for each way that
// [To] declares.
func (d *Definition) Mermaid() string {
	var b strings.Builder
	names := slices.Sorted(maps.Keys(d.steps))
	id := map[string]string{}
	b.WriteString("flowchart TD\n  S([\"start\"])\n")
	for i, p := range names {
		s := d.steps[p]
		id[s.Name] = fmt.Sprintf("N%d", i)
		text := s.Name + "<br/>" + s.Kind
		if s.Target != "" && s.Target != s.Kind {
			text += " " + s.Target
		}
		fmt.Fprintf(&b, "  %s[\"%s\"]\n", id[s.Name], escaped.Replace(text))
	}
	arrows := func(from, label string, h *handler) {
		if h == nil {
			return
		}
		for _, to := range h.to {
			fmt.Fprintf(&b, "  %s -->%s %s\n", from, label, id[to])
		}
		if h.said && len(h.to) == 0 {
			fmt.Fprintf(&b, "  %s -->%s E\n", from, label)
		}
	}
	arrows("S", "", d.start)
	for _, p := range names {
		s := d.steps[p]
		arrows(id[s.Name], "", s.done)
		arrows(id[s.Name], "|failure|", s.failed)
	}
	b.WriteString("  E([\"end\"])\n")
	return b.String()
}

// escaped is a label without what Mermaid could take for its own.
var escaped = strings.NewReplacer(`"`, "#quot;", "<br/>", "<br/>", "<", "#lt;", ">", "#gt;", "`", "#96;")
