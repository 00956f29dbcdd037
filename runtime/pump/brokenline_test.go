package pump

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/store"
)

// serveBroken makes a turn of posts of an instance that takes its signals only in
// their order. When the session is broken, nobody knows what became of the first; the
// queue has all of them again, and a little later that one.
func (c *scene) serveBroken(t *testing.T, s *server, posts []*post, broken bool) {
	s.follow(t.Context(), posts)
	for i, p := range posts {
		m := p.Delivery.(*sent)
		c.now = c.now.Add(sceneApply)
		switch {
		case broken && i == 0:
			p.Err, m.visible = store.ErrUnknown, c.now.Add(3*time.Second)
			c.queue = append([]*sent{m}, c.queue...)
		case broken:
			p.Err, m.visible = problem.New(problem.Unavailable, "store.unreachable", "x"), c.now.Add(time.Second)
			c.queue = append(c.queue, m)
		case p.Behind != nil:
			p.Err = p.Behind
		case m.n != len(c.applied)+1:
			p.Err = problem.New(problem.Invalid, "x.early", "x")
		default:
			c.applied, c.recorded[p.Envelope.SignalID] = append(c.applied, m.n), true
		}
	}
	s.sendAgain(t.Context(), posts)
}

// When sessions break while many signals of an instance are ready, they are tried
// again in their order, and few of them often: that of the machine is for the first
// (three hundred came each second, so that the first came late, was overtaken and
// waited a second anew: six minutes for 250 signals).
func TestALineBehindBrokenSessionsIsSoonDone(t *testing.T) {
	t.Parallel()
	for _, sending := range []time.Duration{2 * time.Millisecond, 8 * time.Millisecond, 20 * time.Millisecond} {
		t.Run(fmt.Sprint(sending), func(t *testing.T) {
			t.Parallel()
			const signals = 300
			c := newScene(1, 0)
			c.sending = sending
			s := c.nodes[0]
			s.Retries.OrderGrace = 15 * time.Minute
			s.Retries.Blame = func(*problem.Error) Blame { return Blame{Sender: true, Overtaken: true} }
			stop, cancel := context.WithCancel(t.Context())
			cancel() // nobody waits before he gives back
			for n := range signals {
				c.send(n+1, time.Time{})
			}
			for turn := 0; len(c.applied) < signals; turn++ {
				if c.now.Sub(c.begun) > time.Hour {
					t.Fatalf("%d are applied after an hour", len(c.applied))
				}
				posts := c.receive(c.now.Add(time.Minute), 8)
				for _, p := range posts {
					p.stop = stop
				}
				if len(posts) > 0 {
					c.serveBroken(t, s, posts, turn == 3 || turn == 5 || turn == 9)
				}
			}
			again := 0
			for _, n := range c.resends {
				again += n
			}
			took := c.now.Sub(c.begun)
			t.Logf("after %s all are applied; sent again %d times", took, again)
			if took > time.Minute {
				t.Errorf("all are applied after %s, sent again %d times", took, again)
			}
		})
	}
}
