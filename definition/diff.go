package definition

import (
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// ChangeKind says what became of a task between two versions.
type ChangeKind string

const (
	Added   ChangeKind = "added"
	Removed ChangeKind = "removed"
	Changed ChangeKind = "changed" // its own fields; what is inside it is a task of its own
	Moved   ChangeKind = "moved"   // the same name and content elsewhere, with all that is inside
)

// Change is a difference between two versions of a definition. Pointers are
// JSON pointers; the workflow itself has the pointer "".
type Change struct {
	Kind   ChangeKind
	Old    string   // pointer in the old version
	New    string   // pointer in the new version
	Task   string   // its name
	Fields []string // of a change: which differ
}

// Migration asks for instances of one version to go on under another (E8).
type Migration struct {
	Name, From, To string
	Pointers       map[string]string // old pointer to new; equal ones of one kind need no entry
	DryRun         bool
	Actor          string
}

// MigrationReport says what a migration does, or would do.
type MigrationReport struct {
	From, To  snapshot.Definition
	Changes   []Change
	Pointers  map[string]string // the map that Positions are told by
	Live      int               // instances that run the old version and are not closed
	Positions []LivePosition
	Moved     int  // by this call
	Left      int  // live and not moved yet: call again
	Waiting   int  // of those left: they are in hooks of a policy, and can be moved when they rest
	More      bool // may be live than could be looked at in time: what is counted is of those that were
}

// LivePosition counts the instances that are at a task.
type LivePosition struct {
	Pointer   string
	To        string // where they go on; "" = nowhere
	Problem   string // why they cannot
	Passing   bool   // the problem ends by itself, and holds up no other instance
	Instances int
}

// Diff compares two documents in the Open Workflow DSL, or two lifecycles, as
// decoded from JSON. What names a version is not compared; states count as
// tasks.
func Diff(old, now any) []Change {
	var all []Change
	if fields := differing(header(old), header(now)); len(fields) > 0 {
		all = append(all, Change{Kind: Changed, Fields: fields})
	}
	d := &differ{old: outline(old), now: outline(now), to: map[string]string{}, from: map[string]string{}}
	d.pair(func(a, b *outlined) bool { return a.pointer == b.pointer })
	d.pair(func(a, b *outlined) bool {
		return a.name == b.name && a.place == b.place && reflect.DeepEqual(a.body, b.body)
	})
	d.pair(func(a, b *outlined) bool { return a.name == b.name && reflect.DeepEqual(a.body, b.body) })
	d.pair(func(a, b *outlined) bool { return a.place == b.place })
	return append(all, d.changes()...)
}

// Moves is the map of pointers that changes suggest for a migration: tasks
// that are elsewhere now and still of their kind.
func Moves(changes []Change) map[string]string {
	m := map[string]string{}
	for _, c := range changes {
		if c.Old != "" && c.New != "" && c.Old != c.New && !slices.Contains(c.Fields, kindField) {
			m[c.Old] = c.New
		}
	}
	return m
}

// kindField stands among the fields of a task that became one of another kind.
const kindField = "(kind)"

// outlined is a task of a document.
type outlined struct {
	pointer, name string
	place         string // the pointer without the indices
	parent        string // pointer of the task around it
	body          map[string]any
	own           map[string]any // body without the tasks inside
}

func header(v any) map[string]any {
	m, _ := v.(map[string]any)
	m = maps.Clone(m)
	for _, k := range []string{"document", "do", "lifecycle", "environment", "definition", "version", "states"} {
		delete(m, k)
	}
	return m
}

// outline lists the tasks of a document in its order.
func outline(v any) []*outlined {
	m, _ := v.(map[string]any)
	all := inside("/do", "/do", "", m["do"])
	states, _ := m["states"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(states)) {
		body, _ := states[name].(map[string]any)
		all = append(all, outlinedTask("/states", "/states", "", name, body)...)
	}
	return all
}

func inside(at, place, parent string, v any) []*outlined {
	var all []*outlined
	items, _ := v.([]any)
	for i, x := range items {
		m, _ := x.(map[string]any)
		for name, v := range m {
			body, _ := v.(map[string]any)
			if len(m) != 1 || body == nil {
				continue
			}
			all = append(all, outlinedTask(at+"/"+strconv.Itoa(i), place, parent, name, body)...)
		}
	}
	return all
}

// outlinedTask is a task and the tasks inside it.
func outlinedTask(at, place, parent, name string, body map[string]any) []*outlined {
	key := "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
	t := &outlined{pointer: at + key, name: name, place: place + key, parent: parent, body: body}
	own, inner := t.split(t.pointer, t.place, body)
	t.own = own
	return append([]*outlined{t}, inner...)
}

// lists are the fields that hold tasks; data are those that may hold anything.
var (
	lists = []string{"do", "try", "branches", "onEnter", "onExit"}
	data  = []string{"set", "with", "input", "output", "export", "metadata"}
)

// split takes the tasks inside a task out of it.
func (t *outlined) split(at, place string, m map[string]any) (own map[string]any, inner []*outlined) {
	own = maps.Clone(m)
	for _, k := range slices.Sorted(maps.Keys(m)) {
		v := m[k]
		_, isList := v.([]any)
		object, isObject := v.(map[string]any)
		switch {
		case slices.Contains(data, k):
		case isList && slices.Contains(lists, k):
			delete(own, k)
			inner = append(inner, inside(at+"/"+k, place+"/"+k, t.pointer, v)...)
		case isObject:
			rest, found := t.split(at+"/"+k, place+"/"+k, object)
			own[k] = rest
			inner = append(inner, found...)
		}
	}
	return own, inner
}

// differ pairs the tasks of two versions.
type differ struct {
	old, now []*outlined
	to, from map[string]string // pairs, by pointer
}

// pair joins tasks that are not paired yet and fit, in the order of the
// documents.
func (d *differ) pair(fit func(a, b *outlined) bool) {
	for _, a := range d.old {
		if _, done := d.to[a.pointer]; done {
			continue
		}
		for _, b := range d.now {
			if _, done := d.from[b.pointer]; !done && fit(a, b) {
				d.to[a.pointer], d.from[b.pointer] = b.pointer, a.pointer
				break
			}
		}
	}
}

func (d *differ) changes() []Change {
	now := map[string]*outlined{}
	for _, b := range d.now {
		now[b.pointer] = b
	}
	var all []Change
	for _, a := range d.old {
		to, ok := d.to[a.pointer]
		if !ok {
			if _, kept := d.to[a.parent]; a.parent == "" || kept { // else it went with what was around it
				all = append(all, Change{Kind: Removed, Old: a.pointer, Task: a.name})
			}
			continue
		}
		fields := differing(a.own, now[to].own)
		if x, y := keyword(a.own), keyword(now[to].own); x != y {
			fields = append(fields, kindField)
		}
		switch {
		case len(fields) > 0:
			all = append(all, Change{Kind: Changed, Old: a.pointer, New: to, Task: a.name, Fields: fields})
		case to != a.pointer && !(a.parent != "" && to == d.to[a.parent]+a.pointer[len(a.parent):]):
			all = append(all, Change{Kind: Moved, Old: a.pointer, New: to, Task: a.name})
		}
	}
	for _, b := range d.now {
		if _, ok := d.from[b.pointer]; !ok {
			if _, kept := d.from[b.parent]; b.parent == "" || kept {
				all = append(all, Change{Kind: Added, New: b.pointer, Task: b.name})
			}
		}
	}
	return all
}

// differing names the fields that are not equal.
func differing(a, b map[string]any) []string {
	var names []string
	for k, v := range a {
		if w, ok := b[k]; !ok || !reflect.DeepEqual(v, w) {
			names = append(names, k)
		}
	}
	for k := range b {
		if _, ok := a[k]; !ok {
			names = append(names, k)
		}
	}
	slices.Sort(names)
	return names
}

// keyword says of what kind a task is. The tasks inside are taken out of own,
// so that a do or a try is what has nothing else.
func keyword(own map[string]any) string {
	for _, k := range []string{"for", "catch", "call", "listen", "raise", "set", "switch", "wait", "fork", "emit", "run"} {
		if v, ok := own[k]; ok {
			if name, _ := v.(string); k == "call" && (name == "humanTask" || name == "forEach" || name == "acknowledged") {
				return name
			}
			return k
		}
	}
	return ""
}
