package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// faulted commits an instance that stands at an error, changed so many seconds later.
func faulted(k *testCase, id, definition, errorType, detail string, n int) {
	k.Helper()
	c := turn(id, 1)
	r := c.Rows.Instance
	r.Definition, r.Status, r.ErrorType, r.ErrorDetail = definition, "faulted", errorType, detail
	r.StartedAt, r.UpdatedAt = at.Add(time.Duration(n)*time.Second), at.Add(time.Duration(n)*time.Second)
	k.commit(c)
}

// died commits a dead letter, so many seconds later.
func deadLetterOf(k *testCase, id, queue, instance, reason, detail string, n int) {
	k.Helper()
	k.commit(store.Change{DeadLetter: &projections.DeadLetter{ID: id, Queue: queue, InstanceID: instance, Envelope: []byte(id), Reason: reason, Detail: detail, DiedAt: at.Add(time.Duration(n) * time.Second)}})
}

func planOf(id string) backend.Bulk {
	return backend.Bulk{ID: id, Operation: "retry", Status: backend.BulkPlanning, Version: 1, Reason: "it's Ω", CreatedAt: at, CreatedBy: "änn", UpdatedAt: at, Asked: []byte(`{"operation":"retry"}`)}
}

// planned makes a plan, and returns its items: their targets and versions.
func planned(k *testCase, id string, s backend.BulkSelection, limit int, more bool) (items []string) {
	k.Helper()
	k.ok(k.s.Bulk.MakeBulk(k.ctx, planOf(id)))
	n, beyond, err := k.s.Bulk.SelectBulk(k.ctx, id, s, limit)
	k.ok(err)
	equal(k, beyond, more)
	for _, i := range bulkItems(k, id, "") {
		items = append(items, fmt.Sprintf("%d %s@%d", i.No, i.Target, i.Version))
	}
	equal(k, n, len(items))
	return items
}

// bulkItems are those of all pages.
func bulkItems(k *testCase, id, outcome string) (items []backend.BulkItem) {
	k.Helper()
	for q := (backend.BulkItemQuery{ID: id, Outcome: outcome, Limit: 2}); ; {
		p, err := k.s.Plans.BulkItems(k.ctx, q)
		k.ok(err)
		items = append(items, p.Items...)
		if q.After = p.Next; q.After == "" {
			return items
		}
	}
}

// bulkCases are about what operators do to many at once.
var bulkCases = map[string]func(*testCase){
	"a plan of instances is what was found, each at the version of its state": func(k *testCase) {
		faulted(k, "a", "default/d", "https://e/timeout", "no answer from Ω", 1)
		faulted(k, "b", "default/d", "https://e/timeout", "no answer from x", 2)
		faulted(k, "c", "default/d", "timeout", "no answer from Ω", 3)
		faulted(k, "d", "default/other", "https://e/timeout", "no answer from Ω", 4)
		faulted(k, "e", "default/d", "https://e/not-timeout", "no answer from Ω", 5)
		k.commit(turn("f", 1))
		quiet := turn("a", 2) // its row stays as it is, its state does not
		quiet.Rows.Instance = nil
		k.commit(quiet)
		q := func(q backend.InstanceQuery) backend.BulkSelection { return backend.BulkSelection{Instances: &q} }
		all := backend.InstanceQuery{Definition: "default/d", Status: "faulted", Live: true, ErrorCode: "timeout"}
		equal(k, planned(k, "p", q(all), 10, false), []string{"1 c@1", "2 b@1", "3 a@2"})
		equal(k, planned(k, "two", q(all), 2, true), []string{"1 c@1", "2 b@1"})
		equal(k, planned(k, "three", q(all), 3, false), []string{"1 c@1", "2 b@1", "3 a@2"})
		all.Text = "Ω"
		equal(k, planned(k, "words", q(all), 10, false), []string{"1 c@1", "2 a@2"})
		all.Before = at.Add(3 * time.Second)
		equal(k, planned(k, "old", q(all), 10, false), []string{"1 a@2"})
		equal(k, planned(k, "none", q(backend.InstanceQuery{ErrorCode: "%"}), 10, false), nil)
		equal(k, planned(k, "version", q(backend.InstanceQuery{Version: "1.0.1"}), 10, false), nil)
		equal(k, planned(k, "there", q(backend.InstanceQuery{Version: "1.0.0", State: "review", Status: "waiting"}), 10, false), []string{"1 f@1"})

		later := turn("c", 2) // what was found is what there was
		later.Rows.Instance.Status = "waiting"
		k.commit(later)
		b := k.open("node-b")
		kinds, err := b.Plans.BulkKinds(k.ctx, "p")
		k.ok(err)
		equal(k, kinds, []backend.BulkKind{{Kind: "https://e/timeout", Rows: 2}, {Kind: "timeout", Rows: 1}})
		equal(k, bulkItems(k, "p", backend.BulkItemOpen)[0], backend.BulkItem{No: 1, Target: "c", Version: 1, Kind: "timeout"})
		equal(k, bulkItems(k, "there", "")[0].Kind, "waiting")
	},
	"a plan of dead letters is what was found": func(k *testCase) {
		faulted(k, "a", "default/d", "x", "", 1)
		faulted(k, "b", "default/other", "x", "", 1)
		deadLetterOf(k, "l1", "signal", "a", "signal.stale", "too late, Ω", 1)
		deadLetterOf(k, "l2", "signal", "b", "signal.stale", "too late", 2)
		deadLetterOf(k, "l3", "command", "a", "signal.stale", "too late", 3)
		deadLetterOf(k, "l4", "signal", "a", "signal.not-json", "no JSON", 4)
		deadLetterOf(k, "l5", "signal", "", "signal.stale", "of nobody", 5)
		q := func(q backend.DeadLetterQuery) backend.BulkSelection { return backend.BulkSelection{DeadLetters: &q} }
		equal(k, planned(k, "all", q(backend.DeadLetterQuery{Reason: "signal.stale"}), 10, false), []string{"1 l1@0", "2 l2@0", "3 l3@0", "4 l5@0"})
		equal(k, planned(k, "of", q(backend.DeadLetterQuery{Reason: "signal.stale", Queue: "signal", Definition: "default/d"}), 10, false), []string{"1 l1@0"})
		equal(k, planned(k, "words", q(backend.DeadLetterQuery{Text: "too late", Before: at.Add(3 * time.Second)}), 1, true), []string{"1 l1@0"})
		p, err := k.s.DeadLetters.DeadLetters(k.ctx, backend.DeadLetterQuery{Text: "late, Ω", Definition: "default/d", Before: at.Add(time.Minute)})
		k.ok(err)
		equal(k, len(p.Items), 1)
		equal(k, p.Items[0].ID, "l1")
	},
	"instances are listed by the error that they stand at": func(k *testCase) {
		faulted(k, "a", "default/d", "https://e/timeout", "no answer, 100%", 1)
		faulted(k, "b", "default/d", "timeout", "no answer", 2)
		k.commit(turn("c", 1))
		for _, c := range []struct {
			q    backend.InstanceQuery
			want []string
		}{
			{backend.InstanceQuery{ErrorCode: "timeout"}, []string{"b", "a"}},
			{backend.InstanceQuery{ErrorCode: "https://e/timeout"}, []string{"a"}},
			{backend.InstanceQuery{Text: "0%"}, []string{"a"}},
			{backend.InstanceQuery{Text: "NO"}, nil},
			{backend.InstanceQuery{Before: at.Add(2 * time.Second), Status: "faulted"}, []string{"a"}},
			{backend.InstanceQuery{ErrorCode: "' or '1'='1"}, nil},
		} {
			p, err := k.s.Instances.Instances(k.ctx, c.q)
			k.ok(err)
			var ids []string
			for _, i := range p.Items {
				ids = append(ids, i.ID)
			}
			equal(k, ids, c.want)
		}
	},
	"a plan changes at its version, and its items are settled once": func(k *testCase) {
		for n := range 5 {
			faulted(k, string(rune('a'+n)), "default/d", "x", "", n)
		}
		planned(k, "p", backend.BulkSelection{Instances: &backend.InstanceQuery{Status: "faulted"}}, 10, false)
		k.is(k.s.Bulk.MakeBulk(k.ctx, planOf("p")), store.ErrDuplicate)
		b := planOf("p")
		b.Version, b.Status, b.More, b.RunBy, b.UpdatedAt = 2, backend.BulkRunning, 1, "bob", at.Add(time.Second)
		k.ok(k.s.Bulk.ChangeBulk(k.ctx, b, audited(1)))
		k.is(k.s.Bulk.ChangeBulk(k.ctx, b, audited(2)), store.ErrStale)
		equal(k, k.auditOf(backend.AuditQuery{}), []string{"a-01"})
		got, err := k.s.Plans.Bulk(k.ctx, "p")
		k.ok(err)
		equal(k, got, b)
		_, err = k.s.Plans.Bulk(k.ctx, "q")
		k.is(err, store.ErrNotFound)

		end := at.Add(time.Minute)
		settled := []backend.BulkItem{
			{No: 1, Outcome: backend.BulkItemDone, EndedAt: end},
			{No: 3, Outcome: backend.BulkItemSkipped, Code: "bulk.changed", Detail: "it's Ω", EndedAt: end},
			{No: 4, Outcome: backend.BulkItemFailed, Code: "instance.closed", Detail: "no", EndedAt: end},
		}
		k.ok(k.s.Bulk.SettleBulk(k.ctx, "p", settled, audited(3)))
		equal(k, k.auditOf(backend.AuditQuery{}), []string{"a-03", "a-01"})
		k.ok(k.s.Bulk.SettleBulk(k.ctx, "p", []backend.BulkItem{{No: 3, Outcome: backend.BulkItemDone, EndedAt: end}, {No: 5, Outcome: backend.BulkItemDone, EndedAt: end}}))
		equal(k, bulkItems(k, "p", backend.BulkItemSkipped), []backend.BulkItem{{No: 3, Target: "c", Version: 1, Kind: "x", Outcome: backend.BulkItemSkipped, Code: "bulk.changed", Detail: "it's Ω", EndedAt: end}})
		equal(k, len(bulkItems(k, "p", backend.BulkItemDone)), 2)
		counts, err := k.s.Plans.BulkCounts(k.ctx, "p")
		k.ok(err)
		equal(k, counts, []backend.BulkCount{{Outcome: "done", Rows: 2}, {Outcome: "failed", Code: "instance.closed", Rows: 1}, {Outcome: "open", Rows: 1}, {Outcome: "skipped", Code: "bulk.changed", Rows: 1}})
	},
	"plans are listed, the newest first, and purged with their items": func(k *testCase) {
		faulted(k, "a", "default/d", "x", "", 1)
		faulted(k, "b", "default/d", "x", "", 2)
		for n, id := range []string{"p1", "p2", "p3"} {
			b := planOf(id)
			b.CreatedAt, b.UpdatedAt = at.Add(time.Duration(n)*time.Hour), at.Add(time.Duration(n)*time.Hour)
			k.ok(k.s.Bulk.MakeBulk(k.ctx, b))
			_, _, err := k.s.Bulk.SelectBulk(k.ctx, id, backend.BulkSelection{Instances: &backend.InstanceQuery{Status: "faulted"}}, 10)
			k.ok(err)
		}
		var ids []string
		for after := ""; ; {
			p, err := k.s.Plans.Bulks(k.ctx, after, 2)
			k.ok(err)
			for _, b := range p.Items {
				ids = append(ids, b.ID)
			}
			if after = p.Next; after == "" {
				break
			}
		}
		equal(k, ids, []string{"p3", "p2", "p1"})
		total := 0
		for {
			n, err := k.s.Retention.PurgeKept(k.ctx, backend.KeptBulk, at.Add(90*time.Minute), 10, func(target string) store.Audit {
				return store.Audit{ID: "purge-" + target, At: at, Action: "purge", Target: target, Kind: "node", Reason: "retention"}
			})
			k.ok(err)
			if n == 0 {
				break
			}
			total += n
		}
		equal(k, total, 6) // two plans of two items
		equal(k, k.purgedTargets(), []string{"p1", "p2"})
		equal(k, len(bulkItems(k, "p1", "")), 0)
		equal(k, len(bulkItems(k, "p3", "")), 2)
		p, err := k.s.Plans.Bulks(k.ctx, "", 10)
		k.ok(err)
		equal(k, slices.IndexFunc(p.Items, func(b backend.Bulk) bool { return b.ID == "p3" }), 0)
		equal(k, len(p.Items), 1)
	},
}
