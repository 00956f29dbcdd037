package engine

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// A command is an effect on the outside, and the outside knows an effect by its
// key. The key says which effect it is, not which attempt:
//
//	incarnation/epoch/pointer/visit/branch/digest
//
// The incarnation is the instance's own and random, so that two instances never
// share a key, not even those of one id. The epoch is the database's: what a
// restored one does is another effect than what was done before. Pointer, visit
// and branch are the place: a visit counts the rounds and backward jumps of the
// loops and lists around a task, so that it is another one when the flow comes
// back by its own will, and the same one when a retry runs the task again. The
// digest is of the request, so that no key has two. A key is made with its
// command and kept with it, in the row and in the snapshot.

// MaxKeyBytes bounds an idempotency key. One that would be longer, or that an
// HTTP header could not carry as it is, has a digest of its place.
const MaxKeyBytes = 128

// MaxOwnKeyBytes bounds an idempotency key that the author gives.
const MaxOwnKeyBytes = 255

// place is where in a run of the program an effect is.
type place struct {
	pointer, visit string
	arm            int
}

// digest stands for what a command asks for.
func (c *Command) digest() string {
	h := sha256.New()
	h.Write([]byte(c.Target))
	h.Write([]byte{0})
	h.Write(c.Input)
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:9])
}

// key makes the key of an effect.
func (t *Turn) key(epoch int64, p place, digest string) string {
	head := t.Snap.Incarnation + "/" + strconv.FormatInt(epoch, 10)
	middle := p.pointer + "/" + p.visit + "/" + strconv.Itoa(p.arm)
	if len(head)+len(middle)+1+len(digest) > MaxKeyBytes || !plain(middle) {
		sum := sha256.Sum256([]byte(middle))
		middle = "/~" + base64.RawURLEncoding.EncodeToString(sum[:18])
	}
	return head + middle + "/" + digest
}

// plain reports whether s is visible ASCII, which a header carries.
func plain(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c > '~' })
}

// keyed gives a command without a key one that no other command has.
func (t *Turn) keyed(c *Command) {
	if c.Key == "" {
		t.ordinal++
		visit := strconv.FormatInt(t.Snap.Version, 10) + "." + strconv.Itoa(t.ordinal)
		c.Key = t.key(t.Snap.Epoch, place{pointer: c.Pointer + "/version", visit: visit}, c.digest())
	}
}

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
		n := p.nodes[f.Pointer]
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
	n := p.nodes[root.Pointer]
	if n == nil || root.Next < 0 || root.Next >= len(n.List) {
		return "", "", false
	}
	return n.List[root.Next].Pointer, itoa(root.Jumps), true
}

// at is the place of an effect of the task n.
func (r *run) at(n *Node, arm int) place {
	return place{n.Pointer, r.p.visit(line(r.t.Snap, r.b)), arm}
}

// key makes the key of an effect of the branch. The outermost task keeps the
// epoch under which it began, and the pointers that it began with.
func (r *run) key(p place, digest string) string {
	s := r.t.Snap
	if moved, ok := s.Moved[p.pointer]; ok {
		p.pointer = moved
	}
	return r.t.key(s.TaskEpoch(), p, digest)
}

// identify gives a command its key: that of the effect it repeats, when a retry
// has brought the flow here, else a new one. With newKey it may be another
// effect although nobody knows what became of the one before.
func (r *run) identify(c *Command, p place, newKey bool) error {
	if c.Key != "" {
		return nil // the author's own
	}
	digest := c.digest()
	past := r.t.past(p)
	if past != nil && strings.HasSuffix(past.Key, "/"+digest) {
		c.Key = past.Key
		return nil
	}
	if past != nil && past.Unknown && !newKey {
		switch old, ok := r.t.In.Requests[past.Command]; {
		case r.t.effect == RetrySame && ok:
			c.Target, c.Input, c.Key = old.Target, old.Input, past.Key
			return nil
		case r.t.effect != RetryNew:
			return &undecided{*past}
		}
	}
	c.Key = r.key(r.t.redone(p), digest)
	return nil
}

// TypeUndecided is the type of the error of an instance that waits for an
// operator, because a retry would send another request although nobody knows
// what became of the one before. No catch takes it, and nothing is compensated.
const TypeUndecided = "urn:aqueduct:error:effect-undecided"

// undecided says that an operator must choose between two requests.
type undecided struct{ past snapshot.Effect }

func (u *undecided) Error() string { return "effect undecided: " + u.past.Key }

// halt has the instance wait for an operator at the task n.
func (r *run) halt(n *Node, u *undecided) error {
	root := r
	if r.b.ID != 0 {
		root = r.w.branch(0)
	}
	if err := root.rewind(); err != nil {
		return err
	}
	r.t.halted(snapshot.Error{
		Type: TypeUndecided, Status: 409, Title: "Effect undecided", Instance: n.Pointer,
		Detail: fmt.Sprintf("command %d was sent with the key %s, and nobody knows whether it was done; the retry would send another request. "+
			"Retry it with the same request, or with the new one, or skip it", u.past.Command, u.past.Key),
	})
	return nil
}

// whole is the arm of what is remembered of a task as a whole.
const whole = -1

// redone is a place where the flow has been before, and what it did there has
// been compensated since: what it does there now is another effect.
func (t *Turn) redone(p place) place {
	times := 0
	for _, e := range t.Snap.Effects {
		same := e.Pointer == p.pointer && e.Visit == p.visit
		inside := strings.HasPrefix(p.pointer, e.Pointer+"/") && strings.HasPrefix(p.visit, e.Visit+".")
		if e.Arm == whole && (same || inside) {
			times += e.Undone
		}
	}
	if times > 0 {
		p.visit += "+" + strconv.Itoa(times)
	}
	return p
}

// past finds what is remembered of an effect.
func (t *Turn) past(p place) *snapshot.Effect {
	for i := range t.Snap.Effects {
		if e := &t.Snap.Effects[i]; e.Pointer == p.pointer && e.Visit == p.visit && e.Arm == p.arm {
			return e
		}
	}
	return nil
}

// remember keeps what became of the command of a wait, until nothing can
// repeat it.
func (t *Turn) remember(w snapshot.Wait, done, unknown bool) {
	if w.Effect == "" {
		return
	}
	p := place{w.Pointer, w.Visit, w.Arm}
	e := t.past(p)
	if e == nil {
		t.Snap.Effects = append(t.Snap.Effects, snapshot.Effect{Pointer: p.pointer, Visit: p.visit, Arm: p.arm})
		e = &t.Snap.Effects[len(t.Snap.Effects)-1]
	}
	// What one attempt left open, the failure of another does not settle.
	e.Unknown = !done && (unknown || e.Unknown && e.Key == w.Effect) && !t.newKeyAt(w.Pointer)
	e.Key, e.Command = w.Effect, w.Command
}

// newKeyAt reports whether the author has decided for the call at a pointer
// what an unknown outcome means.
func (t *Turn) newKeyAt(pointer string) bool {
	d, ok := t.def.(Repeater)
	return ok && d.NewKey(pointer)
}

// NewKey reports whether a call may be sent anew without a retry's key.
func (p *Program) NewKey(pointer string) bool {
	n := p.nodes[pointer]
	return n != nil && n.Call != nil && n.Call.NewKey
}

// undoneAt notes that the effect of a completed task has been compensated: a
// retry that runs the task again makes another effect.
func (t *Turn) undoneAt(c snapshot.Compensation) {
	if e := t.past(place{c.Pointer, c.Visit, whole}); e != nil {
		e.Undone++
		return
	}
	t.Snap.Effects = append(t.Snap.Effects, snapshot.Effect{Pointer: c.Pointer, Visit: c.Visit, Arm: whole, Undone: 1})
}

// opener tells which effects waits are for; it is asked so often.
func opener(waits []snapshot.Wait, often int) func(key string) bool {
	if often <= 8 { // for which an index of many waits does not pay
		return func(key string) bool {
			return key != "" && slices.ContainsFunc(waits, func(w snapshot.Wait) bool { return w.Effect == key })
		}
	}
	open := make(map[string]bool, len(waits))
	for _, w := range waits {
		if w.Effect != "" {
			open[w.Effect] = true
		}
	}
	return func(key string) bool { return open[key] }
}

// forgetEffects drops what no retry can repeat any more, and what a retry can
// tell by itself. Nothing is dropped while an operator may retry.
func (t *Turn) forgetEffects() {
	s := t.Snap
	if len(s.Effects) == 0 {
		return
	}
	d, repeats := t.def.(Repeater)
	switch {
	case s.Status.Closed() || s.Undo != nil:
		s.Effects = nil
		return
	case s.Status == snapshot.Faulted || !repeats:
		return
	}
	pointer, visit, ok := d.Outermost(s)
	over := func(e snapshot.Effect) bool {
		inside := ok && strings.HasPrefix(e.Pointer+"/", pointer+"/") && strings.HasPrefix(e.Visit+".", visit+".")
		return !inside || !e.Unknown && e.Undone == 0
	}
	some := 0 // mostly the one that has just ended
	for _, e := range s.Effects {
		if over(e) {
			some++
		}
	}
	open := opener(s.Waits, some)
	s.Effects = slices.DeleteFunc(s.Effects, func(e snapshot.Effect) bool { return over(e) && !open(e.Key) })
	if len(s.Effects) == 0 {
		s.Effects = nil
	}
}

// errIncarnation says that the caller of Begin gave the instance no incarnation.
func errIncarnation(id string) error {
	return fmt.Errorf("engine: %s: a first turn needs an incarnation", id)
}
