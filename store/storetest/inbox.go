package storetest

import (
	"fmt"
	"time"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// keeps keeps an event, and is told whether it was kept.
func keeps(k *testCase, e backend.Event, want bool) {
	k.Helper()
	got, err := k.s.Inbox.KeepEvent(k.ctx, e)
	k.ok(err)
	equal(k, got, want)
}

var inboxCases = map[string]func(*testCase){
	"an event is kept once until it expires": func(k *testCase) {
		event := backend.Event{Key: "k", Type: "t", ReceivedAt: at, ExpiresAt: at.Add(time.Hour), Body: []byte(`{"Ω":1}`)}
		keeps(k, event, true)
		again := event
		again.Body = []byte("{}")
		keeps(k, again, false)
		for eventType, want := range map[string]int{"t": 1, "": 1, "u": 0} {
			got, err := k.s.Inbox.KeptEvents(k.ctx, backend.KeptQuery{Type: eventType}, at, backend.Event{})
			k.ok(err)
			equal(k, len(got), want)
			if want == 1 {
				equal(k, got[0], event)
			}
		}
		got, err := k.s.Inbox.KeptEvents(k.ctx, backend.KeptQuery{Type: "t"}, at.Add(time.Hour), backend.Event{})
		k.ok(err)
		equal(k, len(got), 0)
		n, err := k.s.Inbox.PurgeEvents(k.ctx, at.Add(time.Hour), 10)
		k.ok(err)
		equal(k, n, 0)
		n, err = k.s.Inbox.PurgeEvents(k.ctx, at.Add(2*time.Hour), 10)
		k.ok(err)
		equal(k, n, 1)
		k.ok(k.s.Inbox.DropEvent(k.ctx, "k"))
		keeps(k, again, true)
		k.ok(k.s.Inbox.DropEvent(k.ctx, "k"))
		keeps(k, again, true)
	},
	"an event that has expired and is still there is kept anew": func(k *testCase) {
		event := backend.Event{Key: "k", Type: "t", ReceivedAt: at, ExpiresAt: at.Add(time.Hour), Body: []byte(`{"a":1}`)}
		keeps(k, event, true)
		k.ok(k.s.Inbox.FileEvents(k.ctx, "r", []backend.Filed{{Event: "k", Key: "1"}}))
		kept := func(those backend.KeptQuery, now time.Time, want ...backend.Event) {
			k.Helper()
			got, err := k.s.Inbox.KeptEvents(k.ctx, those, now, backend.Event{})
			k.ok(err)
			equal(k, got, append([]backend.Event{}, want...))
		}
		// Before it expires a repetition neither takes its place nor extends it.
		again := backend.Event{Key: "k", Type: "u", ReceivedAt: at.Add(time.Hour - time.Microsecond), ExpiresAt: at.Add(2 * time.Hour), Body: []byte(`{"b":2}`)}
		keeps(k, again, false)
		filed := event
		filed.Rule, filed.Found = "r", "1"
		kept(backend.KeptQuery{}, at, filed)
		kept(backend.KeptQuery{}, at.Add(time.Hour))
		// Nobody is given it from then on, and nobody has filed what comes.
		again.ReceivedAt = at.Add(time.Hour)
		keeps(k, again, true)
		kept(backend.KeptQuery{Type: "t"}, at)
		kept(backend.KeptQuery{Type: "u", Unfiled: true}, at.Add(time.Hour), again)
		n, err := k.s.Inbox.PurgeEvents(k.ctx, at.Add(2*time.Hour), 10)
		k.ok(err)
		equal(k, n, 0)
	},
	"an event is filed once, and found by its key": func(k *testCase) {
		keep := func(key, eventType string, after time.Duration, want bool) {
			k.Helper()
			keeps(k, backend.Event{Key: key, Type: eventType, ReceivedAt: at.Add(after), ExpiresAt: at.Add(time.Hour), Body: []byte("{}")}, want)
		}
		keys := func(those backend.KeptQuery) (keys []string) {
			got, err := k.s.Inbox.KeptEvents(k.ctx, those, at, backend.Event{})
			k.ok(err)
			for _, e := range got {
				keys = append(keys, e.Key+" "+e.Rule+" "+e.Found)
			}
			return keys
		}
		otherwise := func(eventType, rule string, want bool) {
			k.Helper()
			got, err := k.s.Inbox.FiledOtherwise(k.ctx, eventType, rule)
			k.ok(err)
			equal(k, got, want)
		}
		for i, key := range []string{"c", "a", "b", "d"} {
			keep(key, "t", time.Duration(i)*time.Second, true)
		}
		keep("e", "u", 0, true)
		otherwise("t", "r", false)
		k.ok(k.s.Inbox.FileEvents(k.ctx, "r", nil))
		k.ok(k.s.Inbox.FileEvents(k.ctx, "r", []backend.Filed{{Event: "b", Key: "1"}, {Event: "c", Key: "1"}, {Event: "gone", Key: "1"}, {Event: "a", Key: "2"}}))
		k.ok(k.s.Inbox.FileEvents(k.ctx, "s", []backend.Filed{{Event: "a", Key: "1"}}))
		equal(k, keys(backend.KeptQuery{Type: "t", Rule: "r", Key: "1"}), []string{"c r 1", "b r 1"})
		equal(k, keys(backend.KeptQuery{Type: "t", Rule: "r", Key: "2"}), []string{"a r 2"})
		equal(k, keys(backend.KeptQuery{Type: "t", Unfiled: true}), []string{"d  "})
		equal(k, keys(backend.KeptQuery{Type: "t", Limit: 2}), []string{"c r 1", "a r 2"})
		equal(k, keys(backend.KeptQuery{Type: "t"}), []string{"c r 1", "a r 2", "b r 1", "d  "})
		otherwise("t", "r", false)
		otherwise("t", "q", true)
		otherwise("t", "s", true)
		otherwise("u", "s", false)
		keep("a", "t", time.Minute, false) // it is kept already
		equal(k, len(keys(backend.KeptQuery{Type: "t", Rule: "r", Key: "2"})), 1)
	},
	"kept events come a page at a time, the first received first": func(k *testCase) {
		const all = projections.MaxLimit + 3
		for i := range all {
			keeps(k, backend.Event{
				Key: fmt.Sprintf("k-%03d", i), Type: "t", ReceivedAt: at.Add(time.Duration(i/2) * time.Second), ExpiresAt: at.Add(time.Hour), Body: []byte("{}"),
			}, true)
		}
		k.ok(k.s.Inbox.DropEvent(k.ctx, "k-001"))
		first, err := k.s.Inbox.KeptEvents(k.ctx, backend.KeptQuery{Type: "t"}, at, backend.Event{})
		k.ok(err)
		equal(k, len(first), projections.MaxLimit)
		second, err := k.s.Inbox.KeptEvents(k.ctx, backend.KeptQuery{Type: "t"}, at, first[len(first)-1])
		k.ok(err)
		equal(k, len(second), 2)
		equal(k, []string{first[0].Key, first[1].Key, second[1].Key}, []string{"k-000", "k-002", fmt.Sprintf("k-%03d", all-1)})
		n, err := k.s.Inbox.PurgeEvents(k.ctx, at.Add(2*time.Hour), 2)
		k.ok(err)
		equal(k, n, 2)
	},
}
