package pump

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
)

// inHand notes which messages are noted in the ledger, and goes on with one when it is let.
type inHand struct {
	mu    sync.Mutex
	noted []string
	goOn  map[string]chan struct{}
}

func (h *inHand) Enter(d store.Delivery) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.noted = append(h.noted, d.Message().ID)
}

func (h *inHand) Leave(d store.Delivery) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.noted = slices.DeleteFunc(h.noted, func(id string) bool { return id == d.Message().ID })
}

// held are the notes, in the order of their messages, when everybody waits.
func (h *inHand) held() []string {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Sorted(slices.Values(h.noted))
}

// slowly is a message whose turn loads its snapshot until it is let.
type slowly struct {
	*told
	hand *inHand
}

func (m slowly) Load(ctx context.Context, id string) (snapshot.Snapshot, error) {
	<-m.hand.goOn[m.message.ID]
	return m.told.Load(ctx, id)
}

// The death of a process is held against all that it has noted: what was noted when another died is noted by itself
// now, so that of many the one that is to blame collects deaths, and what comes beside them waits for none.
func TestSuspectsAreWorkedOnOneAtATime(t *testing.T) {
	t.Parallel()
	for name, typ := range map[string]signal.Type{"turns": signal.ExternalSignal, "alone": signal.StartRequest} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hand := &inHand{goOn: map[string]chan struct{}{}}
				table := map[signal.Type]*Handler{signal.StartRequest: {Alone: func(ctx context.Context, d store.Delivery, env signal.Envelope, _ time.Time) error {
					_, err := d.Load(ctx, env.InstanceID)
					return err
				}}}
				c := (&told{}).config(table, false)
				c.Ledger, c.AtOnce = hand, 4
				u := New(c)
				var all sync.WaitGroup
				for id, crashes := range map[string]int{"fresh": 0, "suspect-1": 1, "suspect-2": 2, "suspect-3": 1} {
					body, err := signal.Envelope{SignalID: id, InstanceID: id, Type: typ, OccurredAt: time.Now(), Payload: []byte(`{}`)}.Encode()
					if err != nil {
						t.Fatal(err)
					}
					hand.goOn[id] = make(chan struct{})
					m := slowly{&told{message: store.Message{ID: id, Queue: store.Signals, Body: body, Crashes: crashes, EnqueuedAt: time.Now()}}, hand}
					u.server.mail.arrived(m.message)
					all.Go(func() { u.handle(t.Context(), t.Context(), m) })
				}
				for left := 3; left > 0; left-- {
					noted := hand.held()
					if len(noted) != 2 || noted[0] != "fresh" {
						t.Fatalf("%d suspects are left, and noted are %q", left, noted)
					}
					close(hand.goOn[noted[1]])
				}
				if noted := hand.held(); len(noted) != 1 {
					t.Errorf("noted are %q", noted)
				}
				close(hand.goOn["fresh"])
				all.Wait()
				if noted := hand.held(); len(noted) != 0 || len(u.server.slots)+len(u.server.suspects) != 0 {
					t.Errorf("noted are %q, %d places are taken", noted, len(u.server.slots)+len(u.server.suspects))
				}
			})
		})
	}
}
