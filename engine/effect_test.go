package engine_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
)

// effects watches what a random program asks of the outside.
type effects struct {
	straight bool // each place is come to once, but for retries
	once     bool // nothing is retried

	bodies  map[string]string // by key: where it is asked for, and what
	keys    map[string]string // by where and what: the key
	undone  bool              // something has been compensated: a retry makes new effects
	repeats int               // commands under a key that was there before
}

// see holds that no key has two bodies, and no effect two keys.
func (e *effects) see(out engine.Outcome) error {
	if e == nil {
		return nil
	}
	for _, entry := range out.Entries {
		c := entry.Command
		if c == nil {
			continue
		}
		if c.Key == "" || len(c.Key) > engine.MaxKeyBytes {
			return fmt.Errorf("the command at %s has the key %q", c.Pointer, c.Key)
		}
		body := fmt.Sprintf("%s %v %s %s", c.Pointer, c.Compensates, c.Target, c.Input)
		if before, ok := e.bodies[c.Key]; ok && before != body {
			return fmt.Errorf("key %s has two bodies:\n%s\n%s", c.Key, before, body)
		} else if ok && e.once {
			return fmt.Errorf("key %s is of two effects: %s", c.Key, body)
		} else if ok {
			e.repeats++
		}
		e.bodies[c.Key] = body
		e.undone = e.undone || c.Compensates
		where := body + " " + arm(c.Key)
		if before, ok := e.keys[where]; ok && before != c.Key && e.straight && !e.undone {
			return fmt.Errorf("the effect %s has two keys:\n%s\n%s", where, before, c.Key)
		}
		e.keys[where] = c.Key
	}
	return nil
}

// arm is the branch that a key names.
func arm(key string) string {
	parts := strings.Split(key, "/")
	return parts[len(parts)-2]
}

// TestNoEffectHasTwoKeys runs random programs with random failures, retries of
// their own and of operators, compensations, and a database that is restored in
// between. No key has two bodies. Where the flow comes to each place once, no
// effect has two keys; where nothing is retried, no two effects have one.
func TestNoEffectHasTwoKeys(t *testing.T) {
	t.Parallel()
	first := *seed
	if first == 0 {
		first = uint64(time.Now().UnixNano())
	}
	repeats := 0
	for i := range *runs {
		s := first + uint64(i)
		rnd := rand.New(rand.NewPCG(s, 2))
		g := &generator{Rand: rnd, straight: i%2 == 0, once: i%2 == 1}
		e := &effects{straight: g.straight, once: g.once, bodies: map[string]string{}, keys: map[string]string{}}
		doc := g.document()
		if err := playWith(doc, &player{Rand: rnd, effects: e, once: g.once}); err != nil {
			t.Fatalf("seed %d: %v\n%s", s, err, doc)
		}
		repeats += e.repeats
	}
	if repeats == 0 {
		t.Error("no retry has repeated an effect: the property was not tested")
	}
}
