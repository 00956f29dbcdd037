// Package diagram draws a definition in the Open Workflow DSL as a Mermaid
// flowchart, a lifecycle as a state diagram, and an instance on it.
//
// It reads the canonical document and not what the engine compiles of it: a
// task of a kind that it does not know becomes a plain box with the name of
// the kind, and the tasks inside are drawn. The same document and marks always
// give the same text.
//
// Nothing is laid out: Mermaid does that. Labels are cut at MaxLabel
// characters, and whatever Mermaid could take for its own is escaped.
package diagram

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// MaxLabel is how many characters of a text a label shows.
const MaxLabel = 60

// Mark is what an instance does at a task.
type Mark struct {
	Pointer string // of the task, or of a list inside it
	Fault   bool   // it failed here; else it rests here
	Text    string // such as "waits for an event"
}

// Mermaid draws a document, as decoded from JSON. A mark at a pointer without
// a task of its own is drawn at the nearest task around it. ended marks the
// end: the instance is completed.
func Mermaid(document any, marks []Mark, ended bool) string {
	d := &drawing{marks: map[string][]Mark{}, classes: map[string]string{}}
	root, _ := document.(map[string]any)
	if root["states"] != nil {
		return states(root, marks)
	}
	if root["workflow"] != nil {
		return coded(root, marks, ended)
	}
	list := tasks("/do", root["do"])
	known := map[string]bool{}
	for _, t := range list {
		t.walk(func(t task) { known[t.pointer] = true })
	}
	for _, m := range marks {
		at := m.Pointer
		for at != "" && !known[at] {
			at = at[:strings.LastIndexByte(at, '/')]
		}
		d.marks[at] = append(d.marks[at], m)
	}
	d.line("flowchart TD")
	d.depth++
	start := "start"
	if s, ok := root["schedule"].(map[string]any); ok {
		start += "<br/>" + label(describe(s))
	}
	for _, m := range d.marks[""] {
		d.class("S", m)
		start += "<br/>► " + label(m.Text)
	}
	d.line(`S(["%s"])`, start)
	d.list(list, "E")
	d.line(`E(["end"])`)
	d.edge("S", d.first(list, "E"), "")
	if ended {
		d.classes["E"] = "here"
	}
	d.finish()
	return d.text.String()
}

// drawing is a flowchart in the making.
type drawing struct {
	text    strings.Builder
	depth   int
	next    int
	marks   map[string][]Mark
	classes map[string]string // of nodes
	ids     map[string]string // of tasks, by pointer
	edges   []string
}

func (d *drawing) line(format string, args ...any) {
	d.text.WriteString(strings.Repeat("  ", d.depth))
	fmt.Fprintf(&d.text, format+"\n", args...)
}

// id is the name of a task's node.
func (d *drawing) id(t task) string {
	if d.ids == nil {
		d.ids = map[string]string{}
	}
	if d.ids[t.pointer] == "" {
		d.ids[t.pointer] = d.fresh()
	}
	return d.ids[t.pointer]
}

func (d *drawing) fresh() string {
	d.next++
	return "t" + strconv.Itoa(d.next)
}

func (d *drawing) class(id string, m Mark) {
	switch {
	case m.Fault:
		d.classes[id] = "fault"
	case d.classes[id] == "":
		d.classes[id] = "here"
	}
}

// edge keeps an arrow for the end of the text: a node belongs to the box in
// which it is named first.
func (d *drawing) edge(from, to, text string) {
	if text != "" {
		text = `|"` + label(text) + `"|`
	}
	d.edges = append(d.edges, fmt.Sprintf("%s -->%s %s", from, text, to))
}

func (d *drawing) dotted(from, to, text string) {
	d.edges = append(d.edges, fmt.Sprintf(`%s -.->|"%s"| %s`, from, label(text), to))
}

func (d *drawing) finish() {
	for _, e := range d.edges {
		d.line("%s", e)
	}
	if len(d.classes) == 0 {
		return
	}
	d.line("classDef here fill:#fff3bf,stroke:#e67700,stroke-width:3px")
	d.line("classDef fault fill:#ffe3e3,stroke:#c92a2a,stroke-width:3px")
	for _, id := range slices.Sorted(maps.Keys(d.classes)) {
		d.line("class %s %s", id, d.classes[id])
	}
}

// first is where a list begins.
func (d *drawing) first(list []task, otherwise string) string {
	if len(list) == 0 {
		return otherwise
	}
	return d.id(list[0])
}

// list draws tasks that follow each other. after is where their end leads to,
// "" inside a box, whose own arrow says it.
func (d *drawing) list(list []task, after string) {
	exit := after
	byName := map[string]string{}
	for _, t := range list {
		byName[t.name] = d.id(t)
	}
	for i, t := range list {
		d.task(t)
		next := after
		if i+1 < len(list) {
			next = d.id(list[i+1])
		}
		to := func(then any) string {
			switch name, _ := then.(string); name {
			case "", "continue":
				return next
			case "end":
				return "E"
			case "exit":
				if exit == "" {
					exit = d.fresh()
					d.line(`%s((" "))`, exit)
				}
				return exit
			default:
				return byName[name]
			}
		}
		d.flow(t, to)
	}
}

// flow draws the arrows that leave a task.
func (d *drawing) flow(t task, to func(any) string) {
	arrow := func(then any, text string) {
		if target := to(then); target != "" {
			d.edge(d.id(t), target, text)
		}
	}
	switch t.kind {
	case "raise":
		return // an error goes to whoever catches it
	case "switch":
		otherwise := true
		for _, c := range named(t.body["switch"]) {
			text := c.name
			if when, ok := c.body["when"].(string); ok {
				text += ": " + bare(when)
			} else {
				otherwise = false
			}
			arrow(c.body["then"], text)
		}
		if otherwise {
			arrow(t.body["then"], "else")
		}
		return
	case "try":
		if catch, _ := t.body["catch"].(map[string]any); catch["then"] != nil {
			if target := to(catch["then"]); target != "" && target != to(t.body["then"]) {
				d.edge(d.id(t), target, "caught")
			}
		}
	}
	arrow(t.body["then"], "")
}
