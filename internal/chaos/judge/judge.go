// Package judge says what is wrong with a history: what clients asked for and
// were told, what the outside world was made to do, and what is left at the
// end. It shares no code with the engine, so that a mistake of the engine is not
// repeated here. Its own tests plant every anomaly it knows.
package judge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Work is one instance, as the client knows it who asked for it, and as it is
// found at the end.
type Work struct {
	ID    string
	Kind  string
	Asked time.Time // when the client began to ask
	Acked time.Time // when its start was acknowledged; zero = never
	Wants []string  // names of the effects that it must have had at the end, each once
	Sent  []int     // numbers of the signals that were acknowledged, in the order of sending
	Event bool      // an event began it, or should have
	Void  bool      // a restored backup has forgotten some of it, or may have

	Status string // at the end; "" = it is not there
	Seen   []int  // signals in its output, in order
}

// Call is one request that the outside world has got.
type Call struct {
	Key      string
	Of       string // the work it is for
	Effect   string // its name within the work
	Body     string // a digest of the bytes
	Applied  bool   // it was performed; else it was refused or dropped before
	At       time.Time
	Answered bool // the caller was told
}

// History is everything that is judged.
type History struct {
	Works       []Work
	Calls       []Call
	DeadLetters []string // dead letters that are left, each with reason and instance
	// StarvedAfter bounds the time from the acknowledged start of a work of the
	// kind Small to its last effect.
	Small        string
	StarvedAfter time.Duration
}

// Kinds of anomalies.
const (
	Lost       = "lost"       // acknowledged, and not there or without its effect
	Doubled    = "doubled"    // a signal is applied twice
	Keys       = "keys"       // one effect under two keys
	Bodies     = "bodies"     // one key with two bodies, or of two effects
	Order      = "order"      // signals of one sender are applied in another order
	Starved    = "starved"    // a small work took too long
	Unfinished = "unfinished" // not completed when the faults had ended
	Phantom    = "phantom"    // nobody asked for it
	DeadLetter = "letter"     // a dead letter that nothing explains
	Deaf       = "deaf"       // an acknowledged event began nothing
	Twice      = "twice"      // an event began several instances
)

// all are all kinds, in the order of a report.
var all = []string{Lost, Doubled, Keys, Bodies, Order, Starved, Unfinished, Phantom, DeadLetter, Deaf, Twice}

// Anomaly is something that must not be.
type Anomaly struct {
	Kind, Work, Text string
}

func (a Anomaly) String() string { return a.Kind + ": " + a.Work + ": " + a.Text }

// Latency is how long the small works took, from their acknowledged start to
// their last effect, in ascending order.
func (h *History) Latency() []time.Duration {
	var all []time.Duration
	last := h.lastEffects()
	for _, w := range h.Works {
		if end, ok := last[w.ID]; ok && w.Kind == h.Small && !w.Void && !w.Acked.IsZero() {
			all = append(all, max(end.Sub(w.Acked), 0))
		}
	}
	slices.Sort(all)
	return all
}

// lastEffects is when the last effect of each work was first performed.
func (h *History) lastEffects() map[string]time.Time {
	first := map[[2]string]time.Time{}
	for _, c := range h.Calls {
		at, ok := first[[2]string{c.Of, c.Effect}]
		if c.Applied && (!ok || c.At.Before(at)) {
			first[[2]string{c.Of, c.Effect}] = c.At
		}
	}
	last := map[string]time.Time{}
	for k, at := range first {
		if at.After(last[k[0]]) {
			last[k[0]] = at
		}
	}
	return last
}

// Check compares everything. Nothing may be running any more.
func Check(h History) []Anomaly {
	c := &checker{h: h, works: map[string]*Work{}, keys: map[[2]string]map[string]bool{}}
	for i := range h.Works {
		c.works[h.Works[i].ID] = &h.Works[i]
	}
	c.calls()
	last := h.lastEffects()
	for i := range h.Works {
		c.work(&h.Works[i], last)
	}
	for _, l := range h.DeadLetters {
		c.add(DeadLetter, "", "%s", l)
	}
	slices.SortStableFunc(c.found, func(a, b Anomaly) int {
		return cmp.Compare(slices.Index(all, a.Kind), slices.Index(all, b.Kind))
	})
	return c.found
}

type checker struct {
	h     History
	works map[string]*Work
	keys  map[[2]string]map[string]bool // of each effect of each work, where it was performed
	found []Anomaly
}

func (c *checker) add(kind, work, text string, args ...any) {
	c.found = append(c.found, Anomaly{kind, work, fmt.Sprintf(text, args...)})
}

// calls looks at the keys: none has two bodies, and none names two effects,
// whatever was restored; no effect was performed under two.
func (c *checker) calls() {
	first := map[string]Call{}
	for _, call := range c.h.Calls {
		at := [2]string{call.Of, call.Effect}
		if call.Key == "" {
			c.add(Keys, call.Of, "effect %s came without a key", call.Effect)
		}
		if f, ok := first[call.Key]; !ok {
			first[call.Key] = call
		} else if f.Body != call.Body || f.Of != call.Of || f.Effect != call.Effect {
			c.add(Bodies, call.Of, "key %s is that of %s of %s (body %.8s) and of %s of %s (body %.8s)",
				call.Key, f.Effect, f.Of, f.Body, call.Effect, call.Of, call.Body)
		}
		if !call.Applied {
			continue
		}
		if c.keys[at] == nil {
			c.keys[at] = map[string]bool{}
			if c.works[call.Of] == nil {
				c.add(Phantom, call.Of, "effect %s of a work that nobody asked for", call.Effect)
			}
		}
		c.keys[at][call.Key] = true
	}
	for at, keys := range c.keys {
		if w := c.works[at[0]]; len(keys) > 1 && (w == nil || !w.Void && !w.Event) {
			c.add(Keys, at[0], "effect %s was performed under %d keys: %q", at[1], len(keys), slices.Sorted(maps.Keys(keys)))
		}
	}
}

// work looks at one work that was acknowledged.
func (c *checker) work(w *Work, last map[string]time.Time) {
	if w.Void || w.Acked.IsZero() {
		return
	}
	if w.Event {
		c.begun(w)
		return
	}
	if w.Status == "" {
		c.add(Lost, w.ID, "its start was acknowledged, and it is not there")
		return
	}
	if w.Status != "completed" {
		c.add(Unfinished, w.ID, "it is %s", w.Status)
	} else {
		c.complete(w)
	}
	if took := last[w.ID].Sub(w.Acked); w.Kind == c.h.Small && took > c.h.StarvedAfter {
		c.add(Starved, w.ID, "it took %s", took.Round(time.Millisecond))
	}
}

// begun looks at the work of an event, which has one instance.
func (c *checker) begun(w *Work) {
	for _, e := range w.Wants {
		switch n := len(c.keys[[2]string{w.ID, e}]); {
		case n == 0:
			c.add(Deaf, w.ID, "its event was acknowledged, and effect %s was never performed", e)
		case n > 1:
			c.add(Twice, w.ID, "its event was acknowledged, and effect %s was performed under %d keys", e, n)
		}
	}
}

// complete looks at what a completed work must have come to.
func (c *checker) complete(w *Work) {
	wanted := map[string]bool{}
	for _, e := range w.Wants {
		wanted[e] = true
		if len(c.keys[[2]string{w.ID, e}]) == 0 {
			c.add(Lost, w.ID, "it is completed, and effect %s was never performed", e)
		}
	}
	for at := range c.keys {
		if at[0] == w.ID && !wanted[at[1]] {
			c.add(Phantom, w.ID, "nobody asked for effect %s", at[1])
		}
	}
	times := map[int]int{}
	for _, n := range w.Seen {
		times[n]++
	}
	for _, n := range w.Sent {
		if times[n] == 0 {
			c.add(Lost, w.ID, "signal %d was acknowledged and is not in its output %v", n, w.Seen)
		}
	}
	for n, k := range times {
		if k > 1 {
			c.add(Doubled, w.ID, "signal %d was applied %d times: %v", n, k, w.Seen)
		}
	}
	if !slices.IsSorted(w.Seen) {
		c.add(Order, w.ID, "signals were applied in the order %v", w.Seen)
	}
}
