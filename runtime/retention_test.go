package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/internal/await"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// retaining starts a node that deletes at once what is over; its function never succeeds.
func retaining(t *testing.T, place string, set func(*runtime.Config), documents ...string) *testNode {
	t.Helper()
	return retainingOf(t, place, set, func(context.Context, json.RawMessage) (any, error) {
		return nil, activity.Permanent(errors.New("gone"))
	}, documents...)
}

// retainingOf has another function.
func retainingOf(t *testing.T, place string, set func(*runtime.Config), effect activity.Func, documents ...string) *testNode {
	t.Helper()
	n, err := openSet(context.Background(), place, func(c *runtime.Config) {
		c.RetentionEvery = 20 * time.Millisecond
		set(c)
	}, effect, documents...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// auditedAs waits for what the audit says of a target, and returns its reason.
func (n *testNode) auditedAs(t *testing.T, action, target string) (reason string) {
	t.Helper()
	eventually(t, action+" of "+target+" in the audit", func() bool {
		p, err := n.store.Audit.Audit(t.Context(), backend.AuditQuery{Action: action, Target: target})
		if err == nil && len(p.Items) == 1 {
			reason = p.Items[0].Reason
		}
		return reason != ""
	})
	return reason
}

// TestEachKindHasItsWindow: what is past it is gone, and the audit says why; what an
// instance that lives may need stays.
func TestEachKindHasItsWindow(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := retaining(t, fresh(), func(c *runtime.Config) {
			c.RetentionKeep = time.Millisecond
			c.Windows = runtime.Windows{DeadLetters: time.Millisecond, Tokens: time.Millisecond, Policies: time.Millisecond, Bulk: time.Millisecond}
		}, emitDoc, listenDoc, policedDocument)
		n.begin(t, "live", "t/listen", map[string]any{"order": 1})
		n.send(t, `{"signalId":"s","workflowInstanceId":"live","runtimeProvider":"aqueduct","signalType":"TaskCompleted","expectedVersion":0,"occurredAtUtc":"2026-01-01T00:00:00Z","payload":{}}`)
		live := n.deadLetter(t, "live")
		now := time.Now()
		token := backend.Token{ID: "k-1", Name: "ann", Roles: "[]", Hash: []byte("0123456789abcdef0123456789abcdef"), CreatedAt: now.Add(-time.Hour), ExpiresAt: now.Add(-time.Minute)}
		if err := n.store.Tokens.MakeToken(t.Context(), token, store.Audit{ID: "make", At: now, Action: "create-token", Target: "k-1"}); err != nil {
			t.Fatal(err)
		}
		done := backend.Bulk{ID: "b-1", Operation: "retry", Status: backend.BulkDone, Version: 1, CreatedAt: now.Add(-time.Hour), UpdatedAt: now.Add(-time.Minute), Asked: []byte(`{}`)}
		if err := n.store.Bulk.MakeBulk(t.Context(), done); err != nil {
			t.Fatal(err)
		}
		n.publish(t, policyOf("1.0.0", "{Review: {timeout: PT1H}}"))
		n.publish(t, policyOf("1.1.0", "{Review: {timeout: PT2H}}"))
		n.begin(t, "told", "t/emit", nil)
		eventually(t, "the instance whose event is a dead letter is gone", func() bool { // the letter kept the command, and the command the instance
			_, err := n.store.Writer.Load(t.Context(), "told")
			return errors.Is(err, store.ErrNotFound) && n.counted(t, "aqueduct_purged_total")["instances"] == 1
		})
		for target, setting := range map[string]string{"k-1": "tokens", "b-1": "bulk", "policy:t/policed@1.0.0": "policies"} {
			if got := n.auditedAs(t, "purge", target); got != "retention."+setting+": kept for 1ms" {
				t.Errorf("%s is gone because of %q", target, got)
			}
		}
		p, err := n.store.Audit.Audit(t.Context(), backend.AuditQuery{Action: "discard", InstanceID: "told"})
		if err != nil || len(p.Items) != 1 || p.Items[0].Kind != "node" || !strings.HasPrefix(p.Items[0].Reason, "retention.dead-letters: ") {
			t.Errorf("the dead letter is gone because of %+v, %v", p.Items, err)
		}
		eventually(t, "all is counted", func() bool {
			got := n.counted(t, "aqueduct_purged_total")
			return got["dead-letters"] == 1 && got["tokens"] == 1 && got["policies"] == 1 && got["bulk"] == 1
		})
		if _, err := n.store.DeadLetters.DeadLetter(t.Context(), live.ID); err != nil {
			t.Errorf("the dead letter of an instance that lives: %v", err)
		}
		left, err := n.store.Versions(t.Context(), definition.PolicyPrefix+"t/policed", 0)
		if err != nil || len(left) != 1 {
			t.Errorf("policies that are left: %+v, %v", left, err)
		}
	})
}

// TestTheAuditHasAWindow: what is past it is gone, and a row says how much that was.
func TestTheAuditHasAWindow(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := retaining(t, fresh(), func(c *runtime.Config) { c.Windows.Audit = time.Hour })
		now := time.Now()
		rows := []store.Audit{{ID: "young", At: now.Add(-time.Minute), Action: "discard", Target: "young"}}
		for _, id := range []string{"old-1", "old-2"} {
			rows = append(rows, store.Audit{ID: id, At: now.Add(-2 * time.Hour), Action: "discard", Target: id})
		}
		if err := n.store.Writer.Commit(t.Context(), store.Change{Audit: rows}); err != nil {
			t.Fatal(err)
		}
		if got := n.auditedAs(t, "purge", "audit"); got != "2 rows: retention.audit: kept for 1h0m0s" {
			t.Errorf("the purge is audited as %q", got)
		}
		p, err := n.store.Audit.Audit(t.Context(), backend.AuditQuery{Action: "discard"})
		if err != nil || len(p.Items) != 1 || p.Items[0].ID != "young" {
			t.Errorf("left are %+v, %v", p.Items, err)
		}
		eventually(t, "it is counted", func() bool { return n.counted(t, "aqueduct_purged_total")["audit"] == 2 })
	})
}

// TestFaultedInstancesHaveAWindow: those that nobody touches are cancelled, and go with
// all that they have, their dead letters too; what only a person can end stays.
func TestFaultedInstancesHaveAWindow(t *testing.T) {
	t.Parallel()
	lostDoc := doc("lost", "  - lost: {raise: {error: {type: 'urn:lost', status: 500}}}\n")
	stuckDoc := doc("stuck", `
  - one: {call: effect, with: {back: false}, metadata: {compensate: {call: effect, with: {back: true}}}}
  - two: {raise: {error: {type: 'urn:lost', status: 500}}}
`)
	typoDoc := doc("typo", `
  - one: {call: effect, with: {back: false}, metadata: {compensate: {call: effect, with: {back: true}}}}
  - two: {set: {n: '${ 1 + {} }'}}
`)
	waitingDoc := doc("waiting", "  - on: {run: {workflow: {namespace: t, name: stuck}}}\n")
	const window = 30 * time.Second // in which even a busy machine has made the dead letter of one
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		effect := func(_ context.Context, input json.RawMessage) (any, error) {
			if strings.Contains(string(input), `"back":true`) {
				return nil, activity.Permanent(errors.New("cannot be undone"))
			}
			return 1, nil
		}
		n := retainingOf(t, fresh(), func(c *runtime.Config) {
			c.RetentionKeep, c.Windows.Faulted = time.Millisecond, window
		}, effect, lostDoc, stuckDoc, typoDoc, waitingDoc, listenDoc, fmt.Sprintf(carefulDoc, "lost"))
		n.begin(t, "live", "t/listen", map[string]any{"order": 1})
		n.begin(t, "waiting", "t/waiting", nil)
		n.begin(t, "stuck", "t/stuck", nil)
		n.begin(t, "typo", "t/typo", nil)
		stuck := n.childOf(t, "waiting").ID
		for _, id := range []string{"stuck", stuck, "typo"} {
			n.until(t, id, status("faulted"))
		}
		n.begin(t, "lost", "t/lost", nil)
		n.send(t, `{"signalId":"s","workflowInstanceId":"lost","runtimeProvider":"aqueduct","signalType":"TaskCompleted","expectedVersion":0,"occurredAtUtc":"2026-01-01T00:00:00Z","payload":{}}`)
		n.begin(t, "parent", "t/careful", nil) // it has ended, and is gone, long before its child
		for _, definition := range []string{"t/lost", "t/careful"} {
			eventually(t, "all of "+definition+" are gone", func() bool {
				p, err := n.store.Instances.Instances(t.Context(), backend.InstanceQuery{Definition: definition})
				return err == nil && len(p.Items) == 0 && n.counted(t, "aqueduct_purged_total")["instances"] == 3
			})
		}
		if got := n.auditedAs(t, "cancel", "lost"); got != "retention.faulted: kept for "+window.String() {
			t.Errorf("it was cancelled because of %q", got)
		}
		p, err := n.store.Audit.Audit(t.Context(), backend.AuditQuery{Action: "discard", InstanceID: "lost"})
		if err != nil || len(p.Items) != 1 || p.Items[0].Reason != "retention.faulted: kept for "+window.String() {
			t.Errorf("its dead letter is discarded as %+v, %v", p.Items, err)
		}
		for id, want := range map[string]string{"live": "waiting", "stuck": "faulted", stuck: "faulted", "typo": "faulted", "waiting": "waiting"} {
			if row, err := n.store.Instances.Instance(t.Context(), id); err != nil || row.Status != want {
				t.Errorf("%s: %+v, %v", id, row, err)
			}
		}
		n.quiet(t)
		if got := n.counted(t, "aqueduct_purged_total")["faulted"]; got != 2 {
			t.Errorf("%d were given up", got)
		}
	})
}

// An id that begins anew after its instance was deleted is another instance, also for a node
// that knew the one before: it goes on with what it was given.
func TestADeletedInstanceIsForgottenByAllNodes(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		place := fresh()
		short := func(c *runtime.Config) { c.RetentionKeep, c.RetentionEvery = time.Millisecond, time.Hour }
		a, b := configured(t, place, short, listenDoc), configured(t, place, short)
		paidTo := func(n *testNode, id string, order int) {
			t.Helper()
			_, err := n.rt.Signal(t.Context(), signal.Envelope{
				SignalID: id, InstanceID: "i", RuntimeProvider: signal.Provider, Type: signal.ExternalSignal, OccurredAt: time.Now(),
				Payload: fmt.Appendf(nil, `{"type":"paid","data":{"order":%d}}`, order),
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		a.begin(t, "i", "t/listen", map[string]any{"order": 1})
		paidTo(b, "s1", 1)
		a.until(t, "i", status("completed"))
		await.Until(t, "it is deleted", func() (bool, any) {
			n, err := a.store.Retention.Purge(t.Context(), time.Now(), 10)
			return n == 1, err
		})
		b.begin(t, "i", "t/listen", map[string]any{"order": 2})
		paidTo(a, "s2", 2)
		a.until(t, "i", status("completed"))
		if s, err := a.store.Writer.Load(t.Context(), "i"); err != nil || string(s.State.Input) != `{"order":2}` {
			t.Errorf("%s, %v", s.State.Input, err)
		}
	})
}
