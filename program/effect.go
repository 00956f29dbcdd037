package program

import (
	"strconv"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// line are the frames around the branch's work, outermost first, those of the
// branches that forked it included.
func line(s *snapshot.Snapshot, b *snapshot.Branch) []*snapshot.Frame {
	var frames []*snapshot.Frame
	for b != nil {
		own := make([]*snapshot.Frame, len(b.Frames), len(b.Frames)+len(frames))
		for i := range b.Frames {
			own[i] = &b.Frames[i]
		}
		frames = append(own, frames...)
		if b.ID == 0 {
			break
		}
		b = s.Branch(b.Parent)
	}
	return frames
}

// visit counts what the flow has done by its own will in the frames: the
// rounds of loops, and the backward jumps of lists.
func (p *Program) visit(frames []*snapshot.Frame) string {
	var b []byte
	for _, f := range frames {
		n := p.node(f.Pointer)
		count := f.Jumps
		switch {
		case n == nil:
			continue
		case n.Kind == KindFor, n.Kind == KindListen:
			count = f.Next
		case n.Kind != KindList:
			continue
		}
		if len(b) > 0 {
			b = append(b, '.')
		}
		b = strconv.AppendInt(b, int64(count), 10)
	}
	return string(b)
}

// Outermost is the task of the root list that the instance is at: whatever is
// inside it may run again, by a retry or by an operator's; what came before it
// may not. The visit is the task's.
func (p *Program) Outermost(s *snapshot.Snapshot) (pointer, visit string, ok bool) {
	b := s.Branch(0)
	if b == nil || len(b.Frames) == 0 {
		return "", "", false
	}
	root := &b.Frames[0]
	n := p.node(root.Pointer)
	if n == nil || root.Next < 0 || root.Next >= len(n.List) {
		return "", "", false
	}
	return n.List[root.Next].Pointer, itoa(root.Jumps), true
}

// at is an effect of the task n.
func (r *run) at(n *Node, arm int) engine.Effect {
	return engine.Effect{Pointer: n.Pointer, Visit: r.p.visit(line(r.t.Snap, r.b)), Arm: arm}
}

// undecided is an error that an operator must decide about, see [engine.Effects.Identify].
type undecided struct{ e snapshot.Error }

func (u *undecided) Error() string { return u.e.Title + ": " + u.e.Detail }

// identify gives a command its key.
func (r *run) identify(c *engine.Command, at engine.Effect) error {
	if e := r.t.Effects.Identify(c, at); e != nil {
		return &undecided{*e}
	}
	return nil
}

// halt has the instance wait for an operator.
func (r *run) halt(u *undecided) error {
	root := r
	if r.b.ID != 0 {
		root = r.w.branch(0)
	}
	if err := root.tries.rewind(); err != nil {
		return err
	}
	r.t.Halt(u.e)
	return nil
}

// NewKey reports whether a call may be sent anew without a retry's key.
func (p *Program) NewKey(pointer string) bool {
	n := p.node(pointer)
	return n != nil && n.Call != nil && n.Call.NewKey
}
