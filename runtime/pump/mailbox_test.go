package pump

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/signal"
)

func come(m *mailboxes, instance string, n int) {
	for range n {
		m.enter(&post{Signal: turn.Signal{Envelope: signal.Envelope{InstanceID: instance}}})
	}
}

// A turn of many signals that took 10 ms, with and without others' turns meanwhile.
func TestAfterATurnOfManyOthersGoFirst(t *testing.T) {
	t.Parallel()
	for others, want := range map[int]time.Duration{0: 0, 1: restFactor * 10 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			m := newMailboxes()
			come(m, "wide", manySignals+2)
			taken := m.take("wide")
			time.Sleep(10 * time.Millisecond)
			for range others {
				come(m, "small", 1)
				m.take("small")
				m.done("small")
			}
			come(m, "wide", 1)
			last := m.open["wide"].waiting[0]
			begun := time.Now()
			m.done("wide")
			if lead := <-last.wake; !lead || len(taken) != manySignals+2 {
				t.Fatalf("%d were taken; the next leads: %v", len(taken), lead)
			}
			if got := time.Since(begun); got != want {
				t.Errorf("with %d turns of others the next came after %v, want %v", others, got, want)
			}
			m.take("wide") // of one
			m.done("wide")
			if len(m.open) != 0 {
				t.Error("a mailbox is left")
			}
		})
	}
}

// While a message of an instance is in hand that the store cannot take, a call of the
// API is told so; the result of a command waits, and a message has its place.
func TestACallHasAnAnswerWhileAMessageIsInHand(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMailboxes()
		come(m, "i", 1)
		inHand := m.take("i")
		call := &post{Signal: turn.Signal{Envelope: signal.Envelope{InstanceID: "i"}}, call: true}
		result := &post{Signal: call.Signal}
		m.enter(call)
		m.enter(result)
		begun := time.Now()
		if m.woken(t.Context(), call) || problem.CodeOf(call.Err) != "instance.contended" || time.Since(begun) != CallMax {
			t.Errorf("after %s: %v", time.Since(begun), call.Err)
		}
		time.AfterFunc(time.Hour, func() { m.done("i") })
		if !m.woken(t.Context(), result) || time.Since(begun) < time.Hour || len(inHand) != 1 {
			t.Errorf("the result does not serve, after %s: %v", time.Since(begun), result.Err)
		}
	})
}
