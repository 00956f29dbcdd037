package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
)

// While no node runs, or all stand still, nothing waits for a place: after that a command has its time anew.
func TestAnOutageIsNoWait(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		var ahead atomic.Int64
		hold := make(chan struct{})
		outside := func(r *http.Request) int {
			select {
			case <-hold:
			case <-r.Context().Done():
			}
			return 204
		}
		set := func(c *runtime.Config) {
			c.PerHost, c.DrainTimeout = 1, time.Nanosecond
			c.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		}
		place := fresh()
		n := sending(t, place, outside, set, getDoc("get", "/"))
		ids := []string{"a", "b", "c"}
		for _, id := range ids {
			n.begin(t, id, "t/get", nil)
		}
		waiting := func() (waits int) {
			for _, id := range ids {
				if n.rt.WaitsFor(id, n.row(t, id).Position) != "" {
					waits++
				}
			}
			return waits
		}
		eventually(t, "two to wait", func() bool { return waiting() == 2 })
		if err := n.close(); err != nil {
			t.Error(err)
		}
		n.stop = nil
		ahead.Store(int64(2 * runtime.DefaultGiveUpAfter))
		n = sending(t, place, outside, set, `
document: {dsl: '1.0.3', namespace: t, name: hasty, version: '1.0.0'}
do:
  - safe:
      try:
        - get: {call: http, with: {method: get, endpoint: 'http://h/'}, metadata: {giveUpAfter: PT0.05S}}
      catch: {do: [{told: {set: {error: '${ $error.title }'}}}]}
`)
		eventually(t, "two to wait again", func() bool { return waiting() == 2 })
		ahead.Add(int64(2 * runtime.DefaultGiveUpAfter)) // the node stands still
		n.begin(t, "hasty", "t/hasty", nil)              // with its alarm all that wait are looked at
		if got := n.output(t, "hasty"); got != `{"error":"Not sent"}` {
			t.Error(got)
		}
		eventually(t, "two to be given back", func() bool { // and announced for now, which is later by the store's clock
			back := 0
			for _, id := range ids {
				if row := n.row(t, id); row.ClaimedBy == "" && !*row.Processed && row.GivenUpAt.IsZero() {
					back++
				}
			}
			return back == 2
		})
		close(hold)
		if got := n.counted(t, "aqueduct_commands_given_up_total")[""]; got != 1 {
			t.Errorf("%d commands are given up", got)
		}
	})
}

// A node that seemed dead, and has lost its claim, does not say for who has the command now that it was refused.
func TestAFailureOfWhoLostTheClaimIsNotTold(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		for _, again := range []bool{false, true} {
			lostClaim(t, fresh(), again)
		}
	})
}

func lostClaim(t *testing.T, place string, again bool) {
	begun, refuse := make(chan struct{}, 1), make(chan struct{})
	var attempts atomic.Int64
	n := start(t, place, func(context.Context, json.RawMessage) (any, error) {
		if attempts.Add(1) == 1 {
			begun <- struct{}{}
			<-refuse
			return nil, activity.Permanent(errors.New("in progress"))
		}
		return "paid", nil
	}, callDoc)
	n.begin(t, "i", "t/call", nil)
	<-begun
	row := n.row(t, "i")
	body, err := signal.ForCommand("i", row.Position, 1, time.Now(), time.Time{}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	lost := store.Claim{InstanceID: "i", Position: row.Position, Expect: row.ClaimedBy, Attempts: row.Attempts, Unknown: true}
	if err := n.store.Writer.Commit(t.Context(), store.Change{Claims: []store.Claim{lost}}); err != nil { // as who adopts it does
		t.Fatal(err)
	}
	owner := ""
	if again { // as this node does, which is on its way with the second attempt
		owner = row.ClaimedBy
		second := store.Claim{InstanceID: "i", Position: row.Position, Owner: owner, Attempts: row.Attempts + 1, Unknown: true}
		if err := n.store.Writer.Commit(t.Context(), store.Change{Claims: []store.Claim{second}}); err != nil {
			t.Fatal(err)
		}
	}
	close(refuse)
	n.rested(t)
	if now := n.row(t, "i"); now.ClaimedBy != owner || *now.Processed {
		t.Errorf("%+v", now)
	}
	if again {
		return
	}
	if err := n.store.Writer.Commit(t.Context(), store.Change{Send: []store.Send{{Queue: store.Commands, Body: body}}}); err != nil {
		t.Fatal(err)
	}
	if got := n.output(t, "i"); got != `"paid"` {
		t.Error(got)
	}
}

// Who takes a call over is told by the other side that it is at the first request still: that is no refusal.
func TestAConflictWithOnesOwnKeyIsNoRefusal(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		begun, keys := make(chan struct{}, 1), make(chan string, 4)
		var requests atomic.Int64
		outside := func(r *http.Request) int {
			keys <- r.Header.Get("Idempotency-Key")
			switch requests.Add(1) {
			case 1:
				begun <- struct{}{}
				<-r.Context().Done()
				return 204
			case 2:
				return 409
			}
			return 204
		}
		place := fresh()
		n := sending(t, place, outside, func(c *runtime.Config) { c.DrainTimeout = time.Nanosecond }, getDoc("pay", "/"))
		n.begin(t, "i", "t/pay", nil)
		<-begun
		if err := n.close(); err != nil {
			t.Error(err)
		}
		n.stop = nil
		n = sending(t, place, outside, func(*runtime.Config) {})
		n.until(t, "i", status("completed"))
		first := <-keys
		for range requests.Load() - 1 {
			if again := <-keys; again != first {
				t.Errorf("asked under %q, then under %q", first, again)
			}
		}
		if got := requests.Load(); got != 3 {
			t.Errorf("%d requests", got)
		}
	})
}
