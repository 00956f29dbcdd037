package storetest

import (
	"slices"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// purgeKept deletes what is over of a kind, and counts it.
func (k *testCase) purgeKept(what backend.Kept, before time.Time, limit, want int) {
	k.Helper()
	n, err := k.s.Retention.PurgeKept(k.ctx, what, before, limit, func(target string) store.Audit {
		return store.Audit{ID: "purge-" + target, At: at, Action: "purge", Target: target, Kind: "node", Reason: "retention"}
	})
	k.ok(err)
	equal(k, n, want)
}

// purgedTargets are what the audit says was purged.
func (k *testCase) purgedTargets() (targets []string) {
	k.Helper()
	p, err := k.s.Audit.Audit(k.ctx, backend.AuditQuery{Action: "purge"})
	k.ok(err)
	for _, a := range p.Items {
		equal(k, a.Reason, "retention")
		targets = append(targets, a.Target)
	}
	slices.Sort(targets)
	return targets
}

var retentionCases = map[string]func(*testCase){
	"tokens are purged after their end, each with its audit": func(k *testCase) {
		ended := map[string]time.Time{"t-early": at.Add(time.Minute), "t-late": at.Add(time.Hour), "t-live": k.s.Clock.Now().Add(time.Hour), "t-revoked": k.s.Clock.Now().Add(time.Hour)}
		for id, expires := range ended {
			token := keyed(id, 0)
			token.ExpiresAt = expires
			k.ok(k.s.Tokens.MakeToken(k.ctx, token, store.Audit{ID: "make-" + id, At: at, Action: "create-token", Target: id}))
		}
		k.ok(k.s.Tokens.RevokeToken(k.ctx, "t-revoked", store.Audit{ID: "revoke", At: at.Add(2 * time.Minute), Action: "revoke-token", Target: "t-revoked", User: "root"}))
		k.purgeKept(backend.KeptTokens, at.Add(time.Minute), 10, 0) // a window ends behind it
		k.purgeKept(backend.KeptTokens, at.Add(10*time.Minute), 1, 1)
		k.purgeKept(backend.KeptTokens, at.Add(10*time.Minute), 10, 1)
		equal(k, k.purgedTargets(), []string{"t-early", "t-revoked"})
		// Nobody has what lives deleted, whatever moment they say.
		k.purgeKept(backend.KeptTokens, k.s.Clock.Now().Add(24*time.Hour), 10, 1)
		_, err := k.s.Tokens.Token(k.ctx, "t-live")
		k.ok(err)
		_, err = k.s.Tokens.Token(k.ctx, "t-late")
		k.is(err, store.ErrNotFound)
	},
	"rows of the audit are purged by who may, and a row says so": func(k *testCase) {
		for n := range 5 {
			k.commit(store.Change{Audit: []store.Audit{audited(n)}})
		}
		by := func(target string) store.Audit {
			return store.Audit{ID: "purge-" + target, At: k.s.Clock.Now(), Action: "purge", Target: target, Kind: "node", Reason: "retention"}
		}
		purge := func() (int, error) {
			return k.s.Retention.PurgeKept(k.ctx, backend.KeptAudit, at.Add(3*time.Second), 10, by)
		}
		n, err := purge()
		if problem.CodeOf(err) == "audit.append-only" { // of who is not the owner
			equal(k, len(k.auditOf(backend.AuditQuery{})), 5)
			return
		}
		k.ok(err)
		equal(k, n, 3)
		n, err = purge()
		k.ok(err)
		equal(k, n, 0)
		equal(k, k.auditOf(backend.AuditQuery{Action: "discard"}), []string{"a-04", "a-03"})
		p, err := k.s.Audit.Audit(k.ctx, backend.AuditQuery{Action: "purge"})
		k.ok(err)
		equal(k, len(p.Items), 1)
		equal(k, []string{p.Items[0].Target, p.Items[0].Reason}, []string{"audit", "3 rows: retention"})
	},
	"a policy is purged when no instance is kept that went by it": func(k *testCase) {
		repo := k.repository()
		const name = "policy:default/d"
		publish := func(name, version string, ordinal int, day int) {
			d := publication(name, version, ordinal)
			d.Kind, d.PublishedAt = "policy", at.Add(time.Duration(day)*24*time.Hour)
			k.commit(store.Change{Definition: d})
		}
		begin := func(id, definition string, day int) {
			c := turn(id, 1)
			c.Rows.Instance.Definition, c.Rows.Instance.StartedAt = definition, at.Add(time.Duration(day)*24*time.Hour)
			k.commit(c)
		}
		publish(name, "1.0.0", 1, 0)
		publish(name, "2.0.0", 2, 10)
		publish(name, "3.0.0", 3, 20)
		publish("policy:default/e", "1.0.0", 1, 0) // the only one of its lifecycle
		publish("default/d", "1.0.0", 1, 0)        // no policy
		publish("default/d", "2.0.0", 2, 1)
		begin("other", "default/e", 1)
		begin("second", "default/d", 15) // by 2.0.0, and later by 3.0.0
		ever := at.Add(1000 * 24 * time.Hour)
		k.purgeKept(backend.KeptPolicies, at.Add(10*24*time.Hour), 10, 0)
		k.purgeKept(backend.KeptPolicies, ever, 10, 1)
		equal(k, k.purgedTargets(), []string{name + "@1.0.0"})
		end := turn("second", 2)
		end.Rows.Instance.StartedAt, end.Rows.Instance.Status, end.Rows.Instance.EndedAt = at.Add(15*24*time.Hour), "completed", at.Add(16*24*time.Hour)
		k.commit(end)
		begin("near", "default/d", 20)
		k.purgeKept(backend.KeptPolicies, ever, 10, 0) // one has ended, and its stream says what it went by; the other may have begun by it
		n, err := k.s.Retention.Purge(k.ctx, at.Add(17*24*time.Hour), 10)
		k.ok(err)
		equal(k, n, 1)
		k.purgeKept(backend.KeptPolicies, ever, 10, 0)
		last := turn("near", 2)
		last.Rows.Instance.StartedAt, last.Rows.Instance.Status, last.Rows.Instance.EndedAt = at.Add(20*24*time.Hour), "completed", at.Add(20*24*time.Hour)
		k.commit(last)
		_, err = k.s.Retention.Purge(k.ctx, at.Add(21*24*time.Hour), 10)
		k.ok(err)
		begin("third", "default/d", 22)
		k.purgeKept(backend.KeptPolicies, ever, 10, 1)
		k.purgeKept(backend.KeptPolicies, ever, 10, 0)
		for _, left := range []string{name, "policy:default/e"} {
			versions, err := repo.Versions(k.ctx, left, 0)
			k.ok(err)
			equal(k, len(versions), 1)
		}
		versions, err := repo.Versions(k.ctx, "default/d", 0)
		k.ok(err)
		equal(k, len(versions), 2)
		publish(name, "4.0.0", 4, 30) // behind the one that is left
	},
	"an instance that kept a schedule is purged beside runs long after it": func(k *testCase) {
		const day = 24 * time.Hour
		run := func(id, parent string, begun time.Time) {
			c := turn(id, 1)
			c.Rows.Instance.Definition, c.Rows.Instance.ParentID, c.Rows.Instance.StartedAt = "d", parent, begun
			k.commit(c)
		}
		end := func(id string, version int64) {
			c := turn(id, version)
			c.Rows.Instance.Definition, c.Rows.Instance.Status, c.Rows.Instance.EndedAt = "d", "cancelled", at
			k.commit(c)
		}
		purge := func(want int) {
			k.Helper()
			n, err := k.s.Retention.Purge(k.ctx, at.Add(20*day), 10)
			k.ok(err)
			equal(k, n, want)
		}
		end("schedule.d.0", 1)
		end("schedule.d.1", 1)
		run("later", "schedule.d.2", at.Add(10*day))
		run("late", "schedule.d.1", at.Add(10*day)) // its start lay in the queue
		purge(1)
		end("schedule.d.0", 1)
		run("before", "schedule.d.2", at.Add(-day))
		purge(0)
		end("before", 2)
		end("late", 2)
		purge(4)
	},
	"old dead letters are found but those of what lives": func(k *testCase) {
		for id, status := range map[string]string{"i-ended": "completed", "i-live": "waiting", "i-faulted": "faulted"} {
			c := turn(id, 1)
			if c.Rows.Instance.Status = status; status == "completed" {
				c.Rows.Instance.EndedAt = at
			}
			k.commit(c)
		}
		for id, of := range map[string]string{"l-1": "i-ended", "l-2": "i-live", "l-3": "i-faulted", "l-4": "i-gone", "l-5": "", "l-6": "i-gone"} {
			died := at
			if id == "l-6" {
				died = at.Add(time.Minute)
			}
			k.commit(store.Change{DeadLetter: &projections.DeadLetter{ID: id, Queue: "signal", InstanceID: of, Reason: "r", DiedAt: died, Envelope: []byte(id)}})
		}
		find := func(before time.Time, after string, limit int, want ...string) {
			k.Helper()
			ids, err := k.s.Retention.OldDeadLetters(k.ctx, before, after, limit)
			k.ok(err)
			equal(k, append([]string{}, ids...), append([]string{}, want...))
		}
		find(at, "", 10)
		find(at.Add(time.Second), "", 10, "l-1", "l-4", "l-5")
		find(at.Add(time.Second), "", 2, "l-1", "l-4")
		find(at.Add(time.Second), "l-4", 2, "l-5")
		find(at.Add(time.Hour), "l-4", 10, "l-5", "l-6")
	},
}
