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
// The incarnation is the instance's own and random, so that two instances never share a key, not even those of one id.
// The epoch is the database's: what a restored one does is another effect than what was done before. Pointer, visit and
// branch are the place: a visit counts the rounds and backward jumps of the loops and lists around a task, so that it
// is another one when the flow comes back by its own will, and the same one when a retry runs the task again. The
// digest is of the request, so that no key has two. A key is made with its command and kept with it, in the row and in
// the snapshot.

// MaxKeyBytes bounds an idempotency key. One that would be longer, or that an
// HTTP header could not carry as it is, has a digest of its place.
const MaxKeyBytes = 128

// MaxOwnKeyBytes bounds an idempotency key that the author gives.
const MaxOwnKeyBytes = 255

// Effect is where in the run of an instance the outside is asked for something.
type Effect struct {
	Pointer string // of the task
	Visit   string // counts how often the flow has come there by its own will; a retry is no visit
	Arm     int    // of a fan-out, from 0
}

// digest stands for what a command asks for.
func (c *Command) digest() string {
	h := sha256.New()
	h.Write([]byte(c.Target))
	h.Write([]byte{0})
	h.Write(c.Input)
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:9])
}

// ValidKey reports whether an author's text can be an idempotency key: 1 to [MaxOwnKeyBytes] visible ASCII characters.
func ValidKey(key string) bool { return len(key) > 0 && len(key) <= MaxOwnKeyBytes && plain(key) }

// Identify gives a command without a key that of the effect it repeats, when a retry has brought the flow to e again,
// else the key of a new one. An error says that this would be another request than the one before, of which nobody
// knows what became: the definition hands it to [Turn.Halt], for an operator to choose, and asks for nothing.
func (t Effects) Identify(c *Command, e Effect) *snapshot.Error {
	if c.Key != "" {
		return nil // the author's own
	}
	past := t.past(e)
	if past != nil && strings.HasSuffix(past.Key, "/"+c.digest()) {
		c.Key = past.Key
		return nil
	}
	if past != nil && past.Unknown && !t.newKeyAt(e.Pointer) {
		switch old, ok := t.In.Requests[past.Command]; {
		case t.Retry == RetrySame && ok:
			c.Target, c.Input, c.Key = old.Target, old.Input, past.Key
			return nil
		case t.Retry != RetryNew:
			return anotherRequest(e, past)
		}
	}
	c.Key = t.Key(e, c)
	return nil
}

// TypeUndecided is the type of the error of an instance that waits for an operator, because a retry would send
// another request although nobody knows what became of the one before. No catch takes it, and nothing is compensated.
const TypeUndecided = "urn:aqueduct:error:effect-undecided"

func anotherRequest(e Effect, past *snapshot.Effect) *snapshot.Error {
	return &snapshot.Error{
		Type: TypeUndecided, Status: 409, Title: "Effect undecided", Instance: e.Pointer,
		Detail: fmt.Sprintf("command %d was sent with the key %s, and nobody knows whether it was done; the retry would send another request. "+
			"Retry it with the same request, or with the new one, or skip it", past.Command, past.Key),
	}
}

// Key is the key of a command that has an effect for the first time: under the
// epoch in which the outermost task began, and the pointer that it began with.
func (t Effects) Key(e Effect, c *Command) string {
	e = t.redone(e)
	if moved, ok := t.Snap.Moved[e.Pointer]; ok {
		e.Pointer = moved
	}
	if c.Compensates {
		e.Pointer += "/compensate"
	}
	return t.KeyIn(t.Snap.TaskEpoch(), e, c)
}

// KeyIn is the key of a command that has an effect in an epoch.
func (t Effects) KeyIn(epoch int64, p Effect, c *Command) string {
	digest := c.digest()
	head := t.Snap.Incarnation + "/" + strconv.FormatInt(epoch, 10)
	middle := p.Pointer + "/" + p.Visit + "/" + strconv.Itoa(p.Arm)
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
func (t Effects) keyed(c *Command) {
	if c.Key == "" {
		t.ordinal++
		visit := strconv.FormatInt(t.Snap.Version, 10) + "." + strconv.Itoa(t.ordinal)
		c.Key = t.KeyIn(t.Snap.Epoch, Effect{Pointer: c.Pointer + "/version", Visit: visit}, c)
	}
}

// whole is the arm of what is remembered of a task as a whole.
const whole = -1

// redone is a place where the flow has been before, and what it did there has
// been compensated since: what it does there now is another effect.
func (t Effects) redone(p Effect) Effect {
	times := 0
	for _, e := range t.Snap.Effects {
		same := e.Pointer == p.Pointer && e.Visit == p.Visit
		inside := strings.HasPrefix(p.Pointer, e.Pointer+"/") && strings.HasPrefix(p.Visit, e.Visit+".")
		if e.Arm == whole && (same || inside) {
			times += e.Compensated
		}
	}
	if times > 0 {
		p.Visit += "+" + strconv.Itoa(times)
	}
	return p
}

// past finds what is remembered of an effect.
func (t Effects) past(p Effect) *snapshot.Effect {
	for i := range t.Snap.Effects {
		if e := &t.Snap.Effects[i]; e.Pointer == p.Pointer && e.Visit == p.Visit && e.Arm == p.Arm {
			return e
		}
	}
	return nil
}

// remember keeps what became of the command of a wait, until nothing can repeat it.
func (t Effects) remember(w snapshot.Wait, done, unknown bool) {
	if w.Effect == "" {
		return
	}
	p := Effect{w.Pointer, w.Visit, w.Arm}
	e := t.past(p)
	if e == nil {
		t.Snap.Effects = append(t.Snap.Effects, snapshot.Effect{Pointer: p.Pointer, Visit: p.Visit, Arm: p.Arm})
		e = &t.Snap.Effects[len(t.Snap.Effects)-1]
	}
	// What one attempt left open, the failure of another does not settle.
	e.Unknown = !done && (unknown || e.Unknown && e.Key == w.Effect) && !t.newKeyAt(w.Pointer)
	e.Key, e.Command = w.Effect, w.Command
}

// newKeyAt reports whether the author has decided for the call at a pointer what an unknown outcome means.
func (t Effects) newKeyAt(pointer string) bool {
	d, ok := t.def.(Repeater)
	return ok && d.NewKey(pointer)
}

// Compensated notes that the effect of a completed task has been compensated: a
// retry that runs the task again makes another effect.
func (t Effects) Compensated(c snapshot.Compensation) {
	if e := t.past(Effect{c.Pointer, c.Visit, whole}); e != nil {
		e.Compensated++
		return
	}
	t.Snap.Effects = append(t.Snap.Effects, snapshot.Effect{Pointer: c.Pointer, Visit: c.Visit, Arm: whole, Compensated: 1})
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
func (t Effects) forgetEffects() {
	s := t.Snap
	if len(s.Effects) == 0 {
		return
	}
	d, repeats := t.def.(Repeater)
	switch {
	case s.Status.Closed() || s.Compensating != nil && !s.Compensating.Children:
		s.Effects = nil
		return
	case s.Status == snapshot.Faulted || !repeats || s.Compensating != nil:
		return
	}
	pointer, visit, ok := d.Outermost(s)
	over := func(e snapshot.Effect) bool {
		inside := ok && strings.HasPrefix(e.Pointer+"/", pointer+"/") && strings.HasPrefix(e.Visit+".", visit+".")
		return !inside || !e.Unknown && e.Compensated == 0
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
