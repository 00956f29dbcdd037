package diagram

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// states draws a lifecycle as a state diagram. A mark inside a state, or at a
// hook of a transition, is drawn at the state that is left.
func states(root map[string]any, marks []Mark) string {
	d := &drawing{classes: map[string]string{}}
	d.line("stateDiagram-v2")
	d.depth++
	all, _ := root["states"].(map[string]any)
	transitions, _ := root["transitions"].([]any)
	ids := map[string]string{}
	for i, name := range slices.Sorted(maps.Keys(all)) {
		ids[name] = "s" + strconv.Itoa(i+1)
	}
	stays := map[string][]string{} // what instances do there
	for _, m := range marks {
		if name := stateAt(m.Pointer, all, transitions); name != "" {
			stays[name] = append(stays[name], m.Text)
			d.class(ids[name], m)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		shown := label(name)
		for _, text := range stays[name] {
			shown += "<br/>► " + label(text)
		}
		d.line(`state "%s" as %s`, shown, ids[name])
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if s, _ := all[name].(map[string]any); s["category"] == "initial" {
			d.line("[*] --> %s", ids[name])
		}
	}
	for _, x := range transitions {
		tr, _ := x.(map[string]any)
		for _, from := range sources(tr["from"], all) {
			if to := ids[text(tr["to"])]; to != "" && ids[from] != "" {
				d.line("%s --> %s: %s", ids[from], to, transition(tr, all[from]))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if isFinal(all[name]) {
			d.line("%s --> [*]", ids[name])
		}
	}
	d.finish()
	return d.text.String()
}

// stateAt is the state that a pointer is in, or "".
func stateAt(pointer string, all map[string]any, transitions []any) string {
	keys := split(pointer)
	switch {
	case len(keys) >= 2 && keys[0] == "states" && all[keys[1]] != nil:
		return keys[1]
	case len(keys) >= 2 && keys[0] == "transitions":
		if i, err := strconv.Atoi(keys[1]); err == nil && i >= 0 && i < len(transitions) {
			tr, _ := transitions[i].(map[string]any)
			if from := sources(tr["from"], all); len(from) > 0 {
				return from[0]
			}
		}
	}
	return ""
}

// split takes a JSON pointer apart.
func split(pointer string) []string {
	keys := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	for i, k := range keys {
		keys[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(k)
	}
	return keys
}

// sources are the states that a transition leads out of.
func sources(from any, all map[string]any) []string {
	var names []string
	switch from := from.(type) {
	case string:
		if from != "*" {
			return []string{from}
		}
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if !isFinal(all[name]) {
				names = append(names, name)
			}
		}
	case []any:
		for _, x := range from {
			names = append(names, text(x))
		}
	}
	return names
}

func isFinal(state any) bool {
	s, _ := state.(map[string]any)
	return s["category"] == "final"
}

// transition is the label of an arrow.
func transition(tr map[string]any, from any) string {
	return colons.Replace(label(transitionText(tr, from)))
}

func sorted(all map[string]any) []string { return slices.Sorted(maps.Keys(all)) }

// transitionText says what takes an instance along it.
func transitionText(tr map[string]any, from any) string {
	s := text(tr["event"])
	if state, _ := from.(map[string]any); s != "" && state["timeoutEvent"] == s {
		s += " (after " + describe(state["timeout"]) + ")"
	}
	if when := bare(text(tr["when"])); when != "" {
		s += " [" + when + "]"
	}
	return s
}
