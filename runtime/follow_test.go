package runtime

import (
	"errors"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
)

// delivered is a message that does nothing.
type delivered struct{ store.Delivery }

func (delivered) Message() store.Message { return store.Message{Queue: store.Signals} }

// TestNoneOvertakesOneThatWaits: when the first of a line comes again between two
// new messages, the one that came before it waits, and so does the one behind.
func TestNoneOvertakesOneThatWaits(t *testing.T) {
	t.Parallel()
	now := time.Now()
	at := func(sid string) *post {
		return &post{env: signal.Envelope{InstanceID: "i", SignalID: sid}, d: delivered{}}
	}
	m := newMailboxes()
	m.hold(at("38"), now, holdGrace, errors.New("not now"), false)
	posts := []*post{at("39"), at("38"), at("40")}
	m.follow(posts, now)
	for i, waits := range []bool{true, false, true} {
		if p := posts[i]; (p.behind != nil) != waits {
			t.Errorf("%s waits: %t, want %t", p.env.SignalID, !waits, waits)
		}
	}
}
