package program

import (
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/aqueduct-engine/aqueduct/attribute"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/migration"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// mapping says where the tasks of one program are in another.
type mapping struct {
	from, to *Program
	pointers map[string]string
}

// tree is a definition with the tasks of a program: it, or what embeds one.
type tree interface{ program() *Program }

func (p *Program) program() *Program { return p }

// Document is the canonical source document.
func (p *Program) Document() any { return p.Info.Document }

// MigrateTo takes instances along by the pointers of their tasks.
func (p *Program) MigrateTo(to engine.Definition, pointers map[string]string) (migration.Move, error) {
	other, ok := to.(tree)
	if !ok {
		return nil, nil
	}
	m := &mapping{from: p, to: other.program(), pointers: pointers}
	var wrong []problem.Place
	for _, old := range slices.Sorted(maps.Keys(pointers)) {
		if why := m.checkEntry(old, pointers[old]); why != "" {
			wrong = append(wrong, problem.Place{Pointer: old, Code: "migration.invalid", Detail: why})
		}
	}
	if len(wrong) > 0 {
		p := problem.New(problem.Invalid, "migration.invalid", "the map has %d wrong pointers", len(wrong))
		p.Where = wrong
		return nil, p
	}
	return m.rewrite, nil
}

// rewrite is the [migration.Move] of a mapping.
func (m *mapping) rewrite(s *snapshot.Snapshot) (list []migration.Position) {
	w := &move{m: m, all: map[string]migration.Position{}}
	w.snapshot(s)
	for _, at := range slices.Sorted(maps.Keys(w.all)) {
		list = append(list, w.all[at])
	}
	for _, b := range s.Branches {
		for _, f := range b.Frames {
			if n := m.to.nodes[f.Pointer]; n != nil && n.State != nil {
				s.State.Name = m.stateName(s.State.Name, n.Name)
			}
		}
	}
	if _, err := attribute.Of(s, m.to.Attributes); err != nil {
		for i := range list { // it could not be written
			list[i].Problem = cmp.Or(list[i].Problem, err.Error())
		}
	}
	return list
}

// stateName is the name of the state that an instance is in, or enters, as it is called
// while it is between two.
func (m *mapping) stateName(old, name string) string {
	from, _, between := strings.Cut(old, betweenStates)
	if !between {
		return name
	}
	if left := m.from.nodes["/states/"+from]; left != nil {
		if n := m.to.nodes[m.translate(left)]; n != nil && n.State != nil {
			from = n.Name
		}
	}
	return from + betweenStates + name
}

func (m *mapping) checkEntry(old, target string) string {
	a, b := m.from.nodes[old], m.to.nodes[target]
	switch {
	case a == nil || a.isList():
		return "is no task of version " + m.from.ID.Version
	case b == nil || b.isList():
		return target + " is no task of version " + m.to.ID.Version
	case a.Kind != b.Kind:
		return "is a " + string(a.Kind) + ", and " + target + " is a " + string(b.Kind)
	}
	return ""
}

// isList reports whether the node only holds tasks: it is no task of a list
// itself.
func (n *Node) isList() bool { return n.parent == nil || !slices.Contains(n.parent.List, n) }

// move rewrites the pointers of one snapshot.
type move struct {
	m   *mapping
	all map[string]migration.Position
}

func (w *move) snapshot(s *snapshot.Snapshot) {
	s.Moved = w.m.moved(s)
	for i := range s.Effects {
		w.past(&s.Effects[i].Pointer)
	}
	for i := range s.Branches {
		frames := s.Branches[i].Frames
		for j := range frames {
			inner := ""
			if j+1 < len(frames) {
				inner = frames[j+1].Pointer
			}
			w.frame(&frames[j], inner, stored(s, s.Branches[i]))
		}
	}
	for i := range s.Waits {
		wait := &s.Waits[i]
		if s.Compensating != nil || wait.Left > 0 {
			w.past(&wait.Pointer) // nothing runs any more but compensations
			continue
		}
		if target := w.live(wait.Pointer); target != nil {
			wait.Pointer = target.Pointer
		}
	}
	for i := range s.Buffer {
		s.Buffer[i].For = slices.Clone(s.Buffer[i].For)
		for j := range s.Buffer[i].For {
			w.past(&s.Buffer[i].For[j]) // the listen may be over
		}
	}
	for i := range s.SubFrames {
		if of, _ := s.Wait(s.SubFrames[i].Token); s.Compensating != nil || of.Left > 0 {
			w.past(&s.SubFrames[i].Pointer)
		} else if target := w.live(s.SubFrames[i].Pointer); target != nil {
			s.SubFrames[i].Pointer = target.Pointer
		}
	}
	// An error and a compensation say where something was; what is live there is
	// in the frames and the waits.
	if s.Error != nil {
		w.past(&s.Error.Instance)
	}
	if s.Compensating != nil {
		compensating := *s.Compensating
		w.past(&compensating.Error.Instance)
		s.Compensating = &compensating
	}
	s.Compensations = slices.Clone(s.Compensations)
	for i := range s.Compensations {
		w.past(&s.Compensations[i].Pointer)
	}
}

// moved says under which pointers keys know the tasks that may run again: those
// that they had when the outermost task began. A new task does not take the
// pointer under which another is known.
func (m *mapping) moved(s *snapshot.Snapshot) map[string]string {
	outermost, _, ok := m.from.Outermost(s)
	if !ok {
		return nil
	}
	moved, origins, images := map[string]string{}, map[string]bool{}, map[string]bool{}
	for pointer, n := range m.from.nodes {
		if n.isList() || !strings.HasPrefix(pointer+"/", outermost+"/") {
			continue
		}
		to := m.translate(n)
		origin := pointer
		if before, ok := s.Moved[pointer]; ok {
			origin = before
		}
		origins[origin], images[to] = true, true
		if origin != to {
			moved[to] = origin
		}
	}
	for pointer := range m.to.nodes {
		if origins[pointer] && !images[pointer] {
			moved[pointer] = pointer + "@" + m.to.ID.Version
		}
	}
	if len(moved) == 0 {
		return nil
	}
	return moved
}

// past rewrites a pointer to what is over. The new version need not have the
// task: a compensation belongs to the tasks around it also without its own.
func (w *move) past(pointer *string) {
	if old := w.m.from.nodes[*pointer]; old != nil {
		*pointer = w.m.translate(old)
	}
}

// frame rewrites a frame; inner is the pointer of the frame inside it, and data are those
// of its branch.
func (w *move) frame(f *snapshot.Frame, inner string, data json.RawMessage) {
	old := w.m.from.nodes[f.Pointer]
	target := w.live(f.Pointer)
	if target == nil {
		return
	}
	if old.isList() {
		w.list(f, old, target, inner)
	} else if why := fitsFrame(old, target, f); why != "" {
		w.refuse(f.Pointer, why)
	} else if old.Kind == KindListen && !w.m.listensAlike(old, target) {
		w.refuse(f.Pointer, "it listens for something else in the new version, and an event may be under way")
	} else if f.Input == nil && target.keepsInput() { // it would have been refused, were its input not these
		f.Input = data
	}
	if old.Kind == KindFork && f.Open > 0 {
		w.arms(old.Body, target.Body)
	}
	f.Pointer = target.Pointer
}

// list moves the place in a list: to where its task now is.
func (w *move) list(f *snapshot.Frame, old, target *Node, inner string) {
	if f.Next < 0 || f.Next >= len(old.List) {
		f.Next = len(target.List) // all is done
		return
	}
	child := old.List[f.Next]
	if inner != "" && inner != child.Pointer {
		w.refuse(inner, "it is not the task that its list runs")
		return
	}
	next := w.live(child.Pointer)
	switch {
	case next == nil:
		return
	case next.parent != target:
		w.refuse(child.Pointer, "in the new version it is in another list than the tasks around it: "+target.Pointer)
	case old.Kind != KindList && (len(old.List) != len(target.List) || next.index != child.index):
		w.refuse(child.Pointer, otherBranches)
	}
	f.Next = next.index
}

const otherBranches = "the branches around it are others in the new version"

// arms holds every branch of a fork to its place, also those that are done: what they have come
// to is known by that, and no frame of theirs is left to say so.
func (w *move) arms(old, target *Node) {
	for i, arm := range old.List {
		if i < len(target.List) && w.m.translate(arm) == target.List[i].Pointer {
			continue
		}
		_, why := w.m.place(arm.Pointer)
		w.refuse(arm.Pointer, cmp.Or(why, otherBranches))
	}
}

// listensAlike reports whether a listen is the same in both versions, but for what is
// done with an event.
func (m *mapping) listensAlike(old, target *Node) bool {
	if m.from.definition(old.Pointer) == nil || m.to.definition(target.Pointer) == nil { // of a function or an extension
		a, b := old.Listen.says(), target.Listen.says()
		return a != "" && a == b && (old.Body == nil) == (target.Body == nil)
	}
	same := func(field string) bool {
		return reflect.DeepEqual(m.from.definition(old.Pointer+field), m.to.definition(target.Pointer+field))
	}
	return same("/listen") && same("/foreach/item") && same("/foreach/at") && (old.Body == nil) == (target.Body == nil)
}

// live notes that an instance is at a pointer, and returns where that is now.
func (w *move) live(pointer string) *Node {
	target, why := w.m.place(pointer)
	if why != "" {
		if n := w.m.from.nodes[pointer]; n == nil || !n.isList() || n.parent == nil || w.all[n.parent.Pointer].Problem == "" {
			w.refuse(pointer, why) // else the task around the list has been refused
		}
		return nil
	}
	if _, ok := w.all[pointer]; !ok && !target.isList() {
		w.all[pointer] = migration.Position{Pointer: pointer, To: target.Pointer}
	}
	return target
}

func (w *move) refuse(pointer, why string) {
	if p := w.all[pointer]; p.Problem == "" {
		w.all[pointer] = migration.Position{Pointer: pointer, Problem: why}
	}
}

// place finds where a task or a list is in the new version, or says why it is
// nowhere.
func (m *mapping) place(pointer string) (*Node, string) {
	old := m.from.nodes[pointer]
	if old == nil {
		return nil, "version " + m.from.ID.Version + " has no such task"
	}
	to := m.translate(old)
	target := m.to.nodes[to]
	switch {
	case target == nil && to == pointer:
		return nil, "version " + m.to.ID.Version + " has no such task, and the map does not say where it is"
	case target == nil:
		return nil, "version " + m.to.ID.Version + " has no task at " + to
	case target.Kind != old.Kind:
		return nil, "it is a " + string(old.Kind) + ", and " + to + " is a " + string(target.Kind)
	}
	return target, ""
}

// translate applies the map: to the task itself, or to the innermost one
// around it that is in the map.
func (m *mapping) translate(old *Node) string {
	for n := old; n != nil; n = n.parent {
		if to, ok := m.pointers[n.Pointer]; ok && (n == old || strings.HasPrefix(old.Pointer, n.Pointer+"/")) {
			return to + old.Pointer[len(n.Pointer):]
		}
	}
	return old.Pointer
}

// fitsFrame says why a task that has begun cannot go on as another.
func fitsFrame(old, target *Node, f *snapshot.Frame) string {
	composite := target.Body != nil && target.Kind != KindFork // else the branch's data are its input still
	switch {
	case old.For != nil && (old.For.Each != target.For.Each || old.For.At != target.For.At):
		return "the variables of its loop have other names in the new version"
	case old.Call != nil && old.Call.Each != target.Call.Each:
		return "the variable of its items has another name in the new version"
	case old.Catch != nil && f.Phase == phaseCatch && old.Catch.name() != target.Catch.name():
		return "the variable of its error has another name in the new version"
	case old.State != nil && f.Phase == "" && target.State.Final:
		return "it is a final state in the new version, which is completed on entering: map it to one that leads there"
	case old.State != nil && (f.Phase == phaseExit || f.Phase == phaseHooks):
		return "it is being left: wait until the instance rests in the next state"
	case composite && !old.keepsInput() && target.keepsInput():
		return "the new version asks for its input, which the old one did not keep"
	case composite && f.Input == nil && !old.keepsRaw() && target.keepsRaw():
		return "the new version may begin it again from its input, which the old one did not keep"
	}
	return ""
}
