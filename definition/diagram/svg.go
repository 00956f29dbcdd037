package diagram

import (
	"fmt"
	"html"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// View is what is drawn on a definition.
type View struct {
	Marks  []Mark
	Path   map[string]bool // pointers of the tasks that ran, or names of the states that were entered
	Counts map[string]int  // instances that rest at a pointer
	Ended  bool            // the instance is completed
}

// Measures of a picture, in units of its own; a character of a label is taken to
// be charWidth wide, in whatever font the reader has.
const (
	charWidth  = 7
	lineHeight = 16
	padding    = 10
	gap        = 22
	maxShown   = 44 // characters of a line in a box
)

// SVG draws a document, as decoded from JSON, as a picture: boxes below each
// other in the order in which they run, boxes in boxes, branches beside each
// other; of a lifecycle the states, with arcs for its transitions. It is laid out
// by the tree of the document alone, so that the same document and view always
// give the same bytes. It has classes and no style: node, frame, done, here,
// fault. Each box is a link to the fragment of its pointer.
func SVG(document any, v View) string {
	root, _ := document.(map[string]any)
	if root["states"] != nil {
		return statesSVG(root, v)
	}
	list := tasks("/do", root["do"])
	p := &picture{view: v, marks: map[string][]Mark{}}
	known := map[string]bool{}
	for _, t := range list {
		t.walk(func(t task) { known[t.pointer] = true })
	}
	for _, m := range v.Marks {
		at := m.Pointer
		for at != "" && !known[at] {
			at = at[:max(0, strings.LastIndexByte(at, '/'))]
		}
		p.marks[at] = append(p.marks[at], m)
	}
	first := []string{"start"}
	if s, ok := root["schedule"].(map[string]any); ok {
		first = append(first, describe(s))
	}
	boxes := []box{p.leaf("", "end-point", p.marked("", first))}
	for _, t := range list {
		boxes = append(boxes, p.task(t))
	}
	last := p.leaf("", "end-point", []string{"end"})
	if v.Ended {
		last = p.leaf("", "end-point done", []string{"end"})
	}
	all := p.column(append(boxes, last))
	all.draw(padding, padding)
	return p.whole(all.w+2*padding, all.h+2*padding)
}

// style is what a picture looks like that stands alone, on light and dark paper.
const style = `<style>text{font:12px system-ui,sans-serif;fill:currentColor;text-anchor:middle}text.more{font-size:11px;opacity:.7}` +
	`svg{color-scheme:light dark}rect{fill:none;stroke:#7b8794}.done{fill:#4caf5033;stroke:#22713c}.here{fill:#ffd43b55;stroke:#b07500;stroke-width:2}` +
	`.fault{fill:#ff6b6b44;stroke:#c92a2a;stroke-width:2}.frame{stroke-dasharray:4 3}.none{stroke:none}.edge{fill:none;stroke:#7b8794}.tip{fill:#7b8794}</style>`

// Alone gives a picture the style that a file of its own needs; in a page the
// page's style sheet has it.
func Alone(svg string) string { return strings.Replace(svg, "<defs>", style+"<defs>", 1) }

// picture is an SVG in the making.
type picture struct {
	text  strings.Builder
	view  View
	marks map[string][]Mark
}

// box is something that is drawn where there is room for it. straight says that
// what follows it in the document follows it in time.
type box struct {
	w, h     int
	draw     func(x, y int)
	straight bool
}

func (p *picture) put(format string, args ...any) { fmt.Fprintf(&p.text, format+"\n", args...) }

func (p *picture) whole(w, h int) string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" class="diagram" role="group" aria-label="a picture of the definition" viewBox="0 0 %d %d" width="%d" height="%d">`+
		`<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse">`+
		`<path class="tip" d="M0 0L8 4L0 8z"/></marker></defs>`+"\n%s</svg>\n", w, h, w, h, p.text.String())
}

// marked adds what instances do at a pointer to the lines of its box.
func (p *picture) marked(pointer string, lines []string) []string {
	for _, m := range p.marks[pointer] {
		lines = append(lines, "► "+m.Text)
	}
	if n := p.view.Counts[pointer]; n > 0 {
		lines = append(lines, strconv.Itoa(n)+" here")
	}
	return lines
}

func (p *picture) class(pointer string) string {
	for _, m := range p.marks[pointer] {
		if m.Fault {
			return " fault"
		}
	}
	switch {
	case len(p.marks[pointer]) > 0:
		return " here"
	case p.view.Path[pointer]:
		return " done"
	}
	return ""
}

// leaf is a box with lines of text.
func (p *picture) leaf(pointer, class string, lines []string) box {
	w := 0
	for i, l := range lines {
		lines[i] = short(l)
		w = max(w, utf8.RuneCountInString(lines[i])*charWidth)
	}
	w, h := w+2*padding, len(lines)*lineHeight+padding
	return box{w, h, func(x, y int) {
		if pointer != "" {
			p.put(`<a href="#%s"><title>%s</title>`, html.EscapeString(legible(pointer)), html.EscapeString(legible(pointer)))
		}
		p.put(`<rect class="%s" x="%d" y="%d" width="%d" height="%d" rx="4"/>`, class, x, y, w, h)
		p.lines(lines, x+w/2, y)
		if pointer != "" {
			p.put(`</a>`)
		}
	}, true}
}

func (p *picture) lines(lines []string, middle, y int) {
	for i, l := range lines {
		kind := ""
		if i > 0 {
			kind = ` class="more"`
		}
		p.put(`<text%s x="%d" y="%d" text-anchor="middle">%s</text>`, kind, middle, y+(i+1)*lineHeight, html.EscapeString(l))
	}
}

// column is boxes below each other, with arrows between those that follow each
// other.
func (p *picture) column(boxes []box) box {
	w, h := 0, -gap
	for _, b := range boxes {
		w, h = max(w, b.w), h+b.h+gap
	}
	return box{w, max(h, 0), func(x, y int) {
		for i, b := range boxes {
			b.draw(x+(w-b.w)/2, y)
			y += b.h
			if i+1 < len(boxes) {
				if b.straight {
					p.put(`<path class="edge" d="M%d %dV%d" marker-end="url(#tip)"/>`, x+w/2, y, y+gap)
				}
				y += gap
			}
		}
	}, true}
}

// row is boxes beside each other.
func row(boxes []box) box {
	w, h := -gap, 0
	for _, b := range boxes {
		w, h = w+b.w+gap, max(h, b.h)
	}
	return box{max(w, 0), h, func(x, y int) {
		for _, b := range boxes {
			b.draw(x, y)
			x += b.w + gap
		}
	}, true}
}

// frame is a box around another, with lines of text at its top.
func (p *picture) frame(pointer, class string, lines []string, inner box) box {
	head := p.leaf(pointer, "none", lines)
	w, h := max(head.w, inner.w+2*padding), head.h+inner.h+padding
	return box{w, h, func(x, y int) {
		p.put(`<rect class="%s" x="%d" y="%d" width="%d" height="%d" rx="6"/>`, class, x, y, w, h)
		head.draw(x+(w-head.w)/2, y)
		inner.draw(x+(w-inner.w)/2, y+head.h)
	}, true}
}

// task is the box of a task, with what is inside.
func (p *picture) task(t task) box {
	lines := []string{t.title()}
	if v, ok := t.body["if"].(string); ok {
		lines = append(lines, "if "+bare(v))
	}
	if v, ok := t.body["timeout"]; ok {
		lines = append(lines, "timeout "+describe(v))
	}
	then := text(t.body["then"])
	if t.kind == "switch" {
		lines = append(lines, cases(t)...)
	}
	straight := then == "" || then == "continue"
	if !straight {
		lines = append(lines, "then → "+then)
	}
	lines = p.marked(t.pointer, lines)
	parts := t.parts()
	if len(parts) == 0 {
		class := "node" + p.class(t.pointer)
		if !strings.ContainsFunc(t.kind, func(r rune) bool { return r < 'a' || r > 'z' }) { // else none that we know
			class = "node " + t.kind + p.class(t.pointer)
		}
		b := p.leaf(t.pointer, class, lines)
		b.straight = straight && t.kind != "raise"
		return b
	}
	b := p.frame(t.pointer, "frame"+p.class(t.pointer), lines, p.inside(t, parts))
	b.straight = straight
	return b
}

// cases are the lines of a switch: where each case leads to.
func cases(t task) []string {
	var all []string
	for _, c := range named(t.body["switch"]) {
		when := bare(text(c.body["when"]))
		if when == "" {
			when = "else"
		}
		all = append(all, when+" → "+or(text(c.body["then"]), "continue"))
	}
	return all
}

func (p *picture) inside(t task, parts []part) box {
	list := func(list []task) box {
		var boxes []box
		for _, t := range list {
			boxes = append(boxes, p.task(t))
		}
		return p.column(boxes)
	}
	switch t.kind {
	case "try":
		boxes := []box{p.frame("", "frame part", []string{"try"}, list(parts[0].list))}
		if len(parts) > 1 {
			boxes = append(boxes, p.frame("", "frame part", []string{t.caught()}, list(parts[1].list)))
		} else {
			boxes = append(boxes, p.leaf("", "frame part", []string{t.caught()}))
		}
		return row(boxes)
	case "fork":
		var boxes []box
		for _, branch := range parts[0].list {
			boxes = append(boxes, p.task(branch))
		}
		return row(boxes)
	}
	var boxes []box
	for _, part := range parts {
		boxes = append(boxes, list(part.list))
	}
	return p.column(boxes)
}

// statesSVG draws a lifecycle: its states from the initial one on, each with its
// transitions as lines, and an arc for each of them: on the right those that lead
// on, on the left those that lead back.
func statesSVG(root map[string]any, v View) string {
	p := &picture{view: v, marks: map[string][]Mark{}}
	all, _ := root["states"].(map[string]any)
	transitions, _ := root["transitions"].([]any)
	for _, m := range v.Marks {
		if name := stateAt(m.Pointer, all, transitions); name != "" {
			p.marks[name] = append(p.marks[name], m)
		}
	}
	order, arcs := statesInOrder(all, transitions)
	if len(order) == 0 { // as while somebody writes it
		b := p.leaf("", "none", []string{"no states"})
		b.draw(padding, padding)
		return p.whole(b.w+2*padding, b.h+2*padding)
	}
	boxes, w := make([]box, len(order)), 0
	for i, name := range order {
		boxes[i] = p.state(name, all, arcs[name])
		w = max(w, boxes[i].w)
	}
	at, y := map[string]int{}, padding
	for i, name := range order {
		at[name] = y + boxes[i].h/2
		y += boxes[i].h + gap
	}
	left, right := 0, 0
	for _, from := range order {
		for _, a := range arcs[from] {
			if at[a.to] > at[from] {
				right++
			} else {
				left++
			}
		}
	}
	x := padding + 8*(left+1)
	p.arcs(order, arcs, at, x, x+w)
	y = padding
	for _, b := range boxes {
		b.draw(x+(w-b.w)/2, y)
		p.put(`<path class="edge" d="M%d %dH%dM%d %dH%d"/>`, x, y+b.h/2, x+(w-b.w)/2, x+(w+b.w)/2, y+b.h/2, x+w)
		y += b.h + gap
	}
	return p.whole(x+w+8*(right+1)+padding, y)
}

// arc is a transition out of a state.
type arc struct {
	to, text string
}

// state is the box of a state.
func (p *picture) state(name string, all map[string]any, arcs []arc) box {
	lines := []string{name}
	s, _ := all[name].(map[string]any)
	if c := text(s["category"]); c != "" {
		lines[0] += " (" + c + ")"
	}
	for _, a := range arcs {
		lines = append(lines, a.text+" → "+a.to)
	}
	class := "node state" + p.class(name)
	return p.leaf("/states/"+escaped(name), class, p.marked(name, lines))
}

// statesInOrder are the states as they are reached from the initial one, then
// those that nothing leads to, and their transitions.
func statesInOrder(all map[string]any, transitions []any) (order []string, arcs map[string][]arc) {
	arcs = map[string][]arc{}
	for _, x := range transitions {
		tr, _ := x.(map[string]any)
		to := text(tr["to"])
		if all[to] == nil {
			continue
		}
		for _, from := range sources(tr["from"], all) {
			arcs[from] = append(arcs[from], arc{to, transitionText(tr, all[from])})
		}
	}
	add := func(name string) {
		if all[name] != nil && !slices.Contains(order, name) {
			order = append(order, name)
		}
	}
	names := sorted(all)
	for _, name := range names {
		if s, _ := all[name].(map[string]any); s["category"] == "initial" {
			add(name)
		}
	}
	for i := 0; i < len(order); i++ {
		for _, a := range arcs[order[i]] {
			add(a.to)
		}
	}
	for _, name := range names {
		add(name)
	}
	return order, arcs
}

// arcs draws the transitions between the right and left edges of the states.
func (p *picture) arcs(order []string, arcs map[string][]arc, at map[string]int, left, right int) {
	outer := map[bool]int{}
	for _, from := range order {
		for _, a := range arcs[from] {
			on := at[a.to] > at[from]
			outer[on]++
			edge, reach := left, left-8*outer[on]
			if on {
				edge, reach = right, right+8*outer[on]
			}
			begin, end := at[from]+3, at[a.to]-3
			p.put(`<path class="edge" d="M%d %dH%dV%dH%d" marker-end="url(#tip)"/>`, edge, begin, reach, end, edge)
		}
	}
}

func short(s string) string {
	s = legible(strings.Join(strings.Fields(s), " "))
	if r := []rune(s); len(r) > maxShown {
		return string(r[:maxShown-1]) + "…"
	}
	return s
}

// legible replaces what no XML document may have.
func legible(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == utf8.RuneError || r == 0xfffe || r == 0xffff {
			return '?'
		}
		return r
	}, s)
}
