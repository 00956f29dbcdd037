package diagram

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// task is a task of a document.
type task struct {
	pointer string
	name    string
	kind    string
	body    map[string]any
}

// kinds are the fields that say what a task does, in the order in which they
// are looked for: a for task has a do as well. common are those of every task.
var (
	kinds  = []string{"for", "try", "call", "listen", "raise", "set", "switch", "wait", "fork", "emit", "run", "do"}
	common = []string{"if", "input", "output", "export", "timeout", "then", "metadata", "catch", "while", "with"}
)

// named reads a list of objects with one key each.
func named(v any) []task {
	var all []task
	items, _ := v.([]any)
	for i, x := range items {
		m, _ := x.(map[string]any)
		for name, v := range m {
			body, _ := v.(map[string]any)
			if len(m) == 1 {
				all = append(all, task{pointer: "/" + strconv.Itoa(i) + "/" + escaped(name), name: name, body: body})
			}
		}
	}
	return all
}

func escaped(key string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(key) }

// tasks reads a list of tasks at a pointer.
func tasks(at string, v any) []task {
	all := named(v)
	for i := range all {
		all[i].pointer = at + all[i].pointer
		all[i].kind = kindOf(all[i].body)
	}
	return all
}

func kindOf(body map[string]any) string {
	for _, k := range kinds {
		if _, ok := body[k]; ok {
			return k
		}
	}
	for _, k := range slices.Sorted(maps.Keys(body)) {
		if !slices.Contains(common, k) {
			return k
		}
	}
	return "task"
}

// part is a list of tasks inside a task.
type part struct {
	role string // do, try, catch, branches
	list []task
}

// parts lists what is inside a task. Of an unknown kind it is every field do.
func (t task) parts() []part {
	at := func(v any, keys ...string) (string, any) {
		p := t.pointer
		for _, k := range keys {
			m, _ := v.(map[string]any)
			p, v = p+"/"+escaped(k), m[k]
		}
		return p, v
	}
	var all []part
	add := func(role string, keys ...string) {
		p, v := at(t.body, keys...)
		if list := tasks(p, v); len(list) > 0 {
			all = append(all, part{role, list})
		}
	}
	switch t.kind {
	case "do", "for":
		add("do", "do")
	case "try":
		add("try", "try")
		add("catch", "catch", "do")
	case "fork":
		add("branches", "fork", "branches")
	case "listen":
		add("do", "foreach", "do")
	case "call", "raise", "set", "switch", "wait", "emit", "run":
	default:
		add("do", "do")
		for _, k := range slices.Sorted(maps.Keys(t.body)) {
			add("do", k, "do")
		}
	}
	return all
}

// walk visits a task and all inside it.
func (t task) walk(visit func(task)) {
	visit(t)
	for _, p := range t.parts() {
		for _, inner := range p.list {
			inner.walk(visit)
		}
	}
}

// shapes are the brackets of a node, by kind.
var shapes = map[string][2]string{
	"switch": {"{", "}"}, "raise": {"{{", "}}"}, "wait": {"(", ")"}, "listen": {"[/", "/]"}, "emit": {`[\`, `\]`},
	"run": {"[[", "]]"}, "person": {"[/", `\]`},
}

// task draws one task: a node, or a box with what is inside.
func (d *drawing) task(t task) {
	id, text := d.id(t), label(t.title())
	if v, ok := t.body["if"].(string); ok {
		text += "<br/>if " + label(bare(v))
	}
	if v, ok := t.body["timeout"]; ok {
		text += "<br/>timeout " + label(describe(v))
	}
	for _, m := range d.marks[t.pointer] {
		text += "<br/>► " + label(m.Text)
		d.class(id, m)
	}
	parts := t.parts()
	if len(parts) == 0 {
		shape, ok := shapes[t.kind]
		if t.kind == "call" && t.body["call"] == "humanTask" {
			shape, ok = shapes["person"], true
		}
		if !ok {
			shape = [2]string{"[", "]"}
		}
		d.line(`%s%s"%s"%s`, id, shape[0], text, shape[1])
		return
	}
	d.box(id, text, func() { d.inside(t, parts) })
}

func (d *drawing) box(id, text string, draw func()) {
	d.line(`subgraph %s["%s"]`, id, text)
	d.depth++
	draw()
	d.depth--
	d.line("end")
}

// inside draws the lists of a task.
func (d *drawing) inside(t task, parts []part) {
	switch t.kind {
	case "try":
		try := d.fresh()
		d.box(try, "try", func() { d.list(parts[0].list, "") })
		catch := d.fresh()
		if len(parts) > 1 {
			d.box(catch, label(t.caught()), func() { d.list(parts[1].list, "") })
		} else {
			d.line(`%s(["%s"])`, catch, label(t.caught()))
		}
		d.dotted(try, catch, "error")
	case "fork":
		for _, branch := range parts[0].list {
			d.task(branch)
		}
	case "for":
		d.list(parts[0].list, "")
		list := parts[0].list
		d.dotted(d.id(list[len(list)-1]), d.id(list[0]), "next")
	default:
		for _, p := range parts {
			d.list(p.list, "")
		}
	}
}

// caught says what a try catches.
func (t task) caught() string {
	catch, _ := t.body["catch"].(map[string]any)
	text := "catch"
	errors, _ := catch["errors"].(map[string]any)
	if with, ok := errors["with"].(map[string]any); ok {
		if kind, _ := with["type"].(string); kind != "" {
			text += " " + kind[strings.LastIndexByte(kind, '/')+1:]
		} else {
			text += " " + describe(with)
		}
	}
	if when, ok := catch["when"].(string); ok {
		text += " when " + bare(when)
	}
	if _, ok := catch["retry"]; ok {
		text += ", retry"
	}
	return text
}

// title says in a line what a task is and does.
func (t task) title() string {
	kind, what := t.kind, ""
	field := func(keys ...string) string {
		var v any = t.body
		for _, k := range keys {
			m, _ := v.(map[string]any)
			v = m[k]
		}
		if v == nil {
			return ""
		}
		return describe(v)
	}
	switch t.kind {
	case "call":
		kind, what = field("call"), field("with", "title")
		if kind == "http" || kind == "forEach" || kind == "acknowledged" {
			what = strings.TrimSpace(strings.ToUpper(field("with", "method")) + " " + endpoint(t.body["with"]))
		}
	case "for":
		what = "each " + or(field("for", "each"), "item") + " in " + field("for", "in")
	case "fork":
		if field("fork", "compete") == "true" {
			what = "the first wins"
		}
	case "wait":
		what = field("wait")
	case "listen":
		what = strings.Join(events(t.body["listen"]), ", ")
	case "emit":
		what = field("emit", "event", "with", "type")
	case "raise":
		kind := field("raise", "error", "type")
		what = or(kind[strings.LastIndexByte(kind, '/')+1:], field("raise", "error"))
	case "run":
		what = or(field("run", "workflow", "name"), describe(t.body["run"]))
	case "try", "do", "set", "switch":
	default:
		what = field(t.kind)
	}
	if what != "" {
		what = ": " + what
	}
	return t.name + " (" + kind + what + ")"
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func endpoint(with any) string {
	m, _ := with.(map[string]any)
	if inner, ok := m["with"].(map[string]any); ok {
		return strings.TrimSpace(or(text(m["call"]), "call") + " " + endpoint(inner))
	}
	e := m["endpoint"]
	if o, ok := e.(map[string]any); ok {
		e = o["uri"]
	}
	return bare(text(e))
}

// events are the types that a listen waits for.
func events(v any) []string {
	var all []string
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			all = append(all, events(x)...)
		}
	case map[string]any:
		if with, ok := v["with"].(map[string]any); ok {
			return []string{or(text(with["type"]), "any event")}
		}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if k != "correlate" && k != "foreach" && k != "read" {
				all = append(all, events(v[k])...)
			}
		}
	}
	return all
}

// describe shows a value in few words: the fields of an object, the text of an
// expression.
func describe(v any) string {
	switch v := v.(type) {
	case map[string]any:
		var all []string
		for _, k := range slices.Sorted(maps.Keys(v)) {
			all = append(all, k+" "+describe(v[k]))
		}
		return strings.Join(all, ", ")
	case []any:
		return fmt.Sprintf("%d items", len(v))
	}
	return bare(text(v))
}

func text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case json.Number:
		return v.String()
	}
	return fmt.Sprint(v)
}

// bare is an expression without its wrapping.
func bare(s string) string {
	s = strings.TrimSpace(s)
	if strings.HasPrefix(s, "${") && strings.HasSuffix(s, "}") {
		s = strings.TrimSpace(s[2 : len(s)-1])
	}
	return strings.Join(strings.Fields(s), " ")
}

// escapes are the characters that Mermaid, or the HTML that it makes, could
// take for its own.
var escapes = strings.NewReplacer("#", "#35;", `"`, "#quot;", "&", "#amp;", "<", "#lt;", ">", "#gt;", "`", "#96;", "\n", " ", "\r", " ")

// colons are for where Mermaid ends a label at one, or at a semicolon that is no
// part of an escape.
var colons = strings.NewReplacer(":", "#58;")

func label(s string) string {
	if r := []rune(s); len(r) > MaxLabel {
		s = string(r[:MaxLabel-1]) + "…"
	}
	return escapes.Replace(strings.ToValidUTF8(s, "?"))
}
