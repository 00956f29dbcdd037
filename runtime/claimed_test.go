package runtime_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/ack"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// claim has a worker claim the command of an instance.
func (n *testNode) claim(t *testing.T, id, worker string, lease time.Duration) projections.Entry {
	t.Helper()
	row, err := n.rt.ClaimCommand(t.Context(), id, 2, worker, lease)
	if err != nil {
		t.Fatal(err)
	}
	return row
}

// unannounced waits until no command is announced, now or for later.
func (n *testNode) unannounced(t *testing.T) {
	t.Helper()
	eventually(t, "announcements", func() bool {
		queues, err := n.store.Backlog.Queues(t.Context())
		return err == nil && !slices.ContainsFunc(queues, func(q backend.Queue) bool {
			return q.Name == string(store.Commands) && q.Ready+q.Delayed+q.Leased > 0
		})
	})
}

// claimant is who has claimed the command of a row.
func claimant(row projections.Entry) string {
	return ack.Claimant(row.LastError, row.NextAttemptAt, time.Now())
}

// What its consumer says of a command that a worker has claimed is kept, and takes the
// claim from nobody: only what ends the command, or the worker's own retry, does.
func TestAConsumerTakesNoClaimAway(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		c := &consumer{}
		n := start(t, fresh(), c.take, tellDoc)
		claimed := map[string]projections.Entry{} // with the deliveries until then
		for _, id := range []string{"kept", "own", "failed", "lapses"} {
			n.begin(t, id, "t/tell", map[string]any{"within": "PT1S"})
			n.delivered(t, id, 1)
			lease := time.Hour
			if id == "lapses" {
				lease = 2 * time.Second
			}
			eventually(t, "a claim", func() bool { // a node may be about to remind its consumer
				row, err := n.rt.ClaimCommand(t.Context(), id, 2, "press-7", lease)
				if err != nil && problem.CodeOf(err) != "command.taken" {
					t.Fatal(err)
				}
				claimed[id] = row
				return err == nil
			})
		}
		row, reminded := claimed["kept"], n.types(t, "kept")["AckReminderProcessedPending"]
		for _, a := range []ack.Ack{{Outcome: ack.Delivered}, {Outcome: ack.Retry}, {Outcome: ack.Retry, Delay: time.Hour, Actor: "shop"}, {Outcome: ack.Delivered, Actor: "press-7"}} {
			n.ack(t, "kept", engine.Applied, a)
			got := n.row(t, "kept")
			if claimant(got) != "press-7" || !got.NextAttemptAt.Equal(row.NextAttemptAt) || got.DeliveredAt.IsZero() != (a.Outcome == ack.Retry) || got.Unknown != row.Unknown {
				t.Errorf("%s of %q: %+v", a.Outcome, a.Actor, got)
			}
			if note := n.noteOf(t, "kept", "Ack"+map[ack.Outcome]string{ack.Delivered: "Delivered", ack.Retry: "Retry"}[a.Outcome]); note.NextAttempt == nil || !note.NextAttempt.Equal(row.NextAttemptAt) {
				t.Errorf("%s: its next attempt is at %v, the lease ends at %s", a.Outcome, note.NextAttempt, row.NextAttemptAt)
			}
			_, err := n.rt.ClaimCommand(t.Context(), "kept", 2, "press-8", time.Second)
			code(t, err, "command.taken")
		}
		if said := ack.Said(n.row(t, "kept").LastError); said != "AckRetryPending: the consumer asks for it once more" {
			t.Errorf("under the claim: %q", said)
		}
		n.claim(t, "kept", "press-7", 2*time.Hour) // for longer
		n.settle(t, "kept", engine.Applied, ack.Ack{Outcome: ack.Processed, Actor: "press-7"})

		n.ack(t, "own", engine.Applied, ack.Ack{Outcome: ack.Retry, Actor: "press-7"})
		if row := n.delivered(t, "own", claimed["own"].Deliveries+1); claimant(row) != "" {
			t.Errorf("%+v", row)
		}
		n.ack(t, "own", engine.Applied, ack.Ack{Outcome: ack.Processed})

		n.ack(t, "failed", engine.Applied, ack.Ack{Outcome: ack.Failed})
		if l := n.deadLetters(t, 1); l[0].Reason != "ack.failed" || len(l) > 1 {
			t.Errorf("%+v", l)
		}
		n.ack(t, "failed", engine.Applied, ack.Ack{Outcome: ack.Processed})

		n.ack(t, "lapses", engine.Applied, ack.Ack{Outcome: ack.Delivered})
		n.delivered(t, "lapses", claimed["lapses"].Deliveries+1) // when the lease ends
		n.ack(t, "lapses", engine.Applied, ack.Ack{Outcome: ack.Processed})
		n.settled(t)
		n.rested(t)
		got := map[string]int{}
		_, attempts := c.seen()
		for _, a := range attempts {
			got[a.Instance]++
		}
		for id, more := range map[string]int{"kept": 0, "own": 1, "lapses": 1} {
			if before := claimed[id].Deliveries; got[id] < before+more || more == 0 && got[id] > before {
				t.Errorf("%s: %d deliveries, then %d", id, before, got[id])
			}
		}
		if got := n.types(t, "kept"); got["AckReminderProcessedPending"] > reminded {
			t.Errorf("a node has tried it: %v", got)
		}
	})
}

// However many announcements of a command wait, it is given up once: each claim, and each
// retry, makes one that is due when the command is as old as may be.
func TestACommandIsGivenUpOnce(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		c := &consumer{}
		place := fresh()
		n := start(t, place, c.take, tellDoc)
		other := start(t, place, c.take)
		for _, node := range []*testNode{n, other} {
			node.rt.Config.AckAge = 50 * time.Second // what comes before, is to be done by then on a busy machine
		}
		ids := []string{"renewed", "said", "shorter"}
		for _, id := range ids {
			n.begin(t, id, "t/tell", map[string]any{"within": "PT1H"})
			n.delivered(t, id, 1)
		}
		for range 4 {
			n.claim(t, "renewed", "press-7", time.Hour)
		}
		n.claim(t, "said", "press-7", time.Hour)
		n.ack(t, "said", engine.Applied, ack.Ack{Outcome: ack.Delivered})
		n.claim(t, "shorter", "press-7", time.Hour)
		n.claim(t, "shorter", "press-7", time.Second)
		n.ack(t, "said", engine.Applied, ack.Ack{Outcome: ack.Retry, Actor: "press-7"})
		n.delivered(t, "said", 2)
		n.claim(t, "said", "press-8", time.Hour)
		n.claim(t, "said", "press-8", time.Hour)
		n.delivered(t, "shorter", 2)

		n.deadLetters(t, len(ids))
		n.unannounced(t)
		var dead []string
		for _, l := range n.deadLetters(t, len(ids)) {
			dead = append(dead, l.InstanceID+" "+l.Reason)
		}
		slices.Sort(dead)
		if got, want := strings.Join(dead, ", "), "renewed ack.missing, said ack.missing, shorter ack.missing"; got != want {
			t.Errorf("dead letters: %s, want %s", got, want)
		}
		for _, id := range ids {
			if row := n.row(t, id); !givenUp(row) || row.ClaimedBy != "" {
				t.Errorf("%s: %+v", id, row)
			}
		}
	})
}

// What need not be acknowledged is given up once, too: a worker who has claimed it fails it,
// and what their claim was announced by comes to nothing.
func TestWhatIsButToldIsGivenUpOnce(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		away := httptest.NewServer(nil)
		away.Close()
		n := start(t, fresh(), nil, policedDocument+"consumers: {b: {endpoint: '"+away.URL+"'}}\npolicies: [{states: Review, consumers: b, ackRequired: false}]\n")
		n.rt.Config.AckAge = 30 * time.Second // until it is failed, on a busy machine
		id, err := n.trigger(t, "t/policed", "k", "submit")
		if err != nil {
			t.Fatal(err)
		}
		var told projections.Entry
		eventually(t, "a claim", func() bool { // between two attempts
			if told = n.asked(t, id)["b"]; told.Attempts == 0 || told.ClaimedBy != "" {
				return false
			}
			_, err := n.rt.ClaimCommand(t.Context(), id, told.Position, "press-7", time.Hour)
			return err == nil
		})
		if _, err := n.rt.SettleCommand(t.Context(), id, told.Position, ack.Ack{Outcome: ack.Failed, Actor: "press-7"}); err != nil {
			t.Fatal(err)
		}
		n.isAnOperators(t, id, told.Position)
		n.unannounced(t)
		if l := n.deadLetters(t, 1); len(l) != 1 || l[0].Reason != "ack.failed" {
			t.Errorf("%+v", l)
		}
	})
}

// remembers is a consumer that remembers the key and the path of what it is told.
type remembers struct {
	mu    sync.Mutex
	keys  []string
	paths []string
}

func (r *remembers) ServeHTTP(_ http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keys, r.paths = append(r.keys, req.Header.Get("Idempotency-Key")), append(r.paths, req.Header.Get("Aqueduct-Ack"))
}

func (r *remembers) told() (keys, paths []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.keys), slices.Clone(r.paths)
}

// A consumer that has failed what an instance waits for is asked once more by the retries
// of the state: it is the same work, under the same key, and another question, at another
// path. What it says of the former one comes too late.
func TestARetryIsAnotherQuestionAboutTheSameWork(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		c := &remembers{}
		consumer := httptest.NewServer(c)
		defer consumer.Close()
		n := start(t, fresh(), nil, strings.Replace(policedDocument, "Review: {}", "Review: {retry: {delay: PT0.02S, limit: {attempt: {count: 1}}}}", 1)+
			"consumers: {a: {endpoint: '"+consumer.URL+"'}}\npolicies: [{states: Review, consumers: a, await: all}]\n")
		id, err := n.trigger(t, "t/policed", "k", "submit")
		if err != nil {
			t.Fatal(err)
		}
		say := func(path string, want engine.Disposition, a ack.Ack) {
			t.Helper()
			var position int64
			if _, err := fmt.Sscanf(path, "/v1/instances/"+id+"/commands/%d/ack", &position); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			if did, err := n.rt.Acknowledge(t.Context(), id, position, a); did != want || err != nil {
				t.Errorf("%s: %s, %v, want %s", path, did, err, want)
			}
		}
		asked := func(times int) (keys, paths []string) {
			t.Helper()
			eventually(t, "a delivery", func() bool { keys, paths = c.told(); return len(keys) >= times })
			return keys, paths
		}
		_, paths := asked(1)
		say(paths[0], engine.Applied, ack.Ack{Outcome: ack.Failed, Error: &snapshot.Error{Title: "Busy"}})
		keys, paths := asked(2)
		if len(keys) != 2 || keys[0] != keys[1] || keys[0] == "" || paths[0] == paths[1] {
			t.Errorf("keys %q, paths %q", keys, paths)
		}
		say(paths[0], engine.Duplicate, ack.Ack{Outcome: ack.Processed})
		say(paths[1], engine.Applied, ack.Ack{Outcome: ack.Processed})
		n.until(t, id, func(row projections.Instance) bool { return row.Position == "Review" && row.Status == "waiting" })
	})
}
