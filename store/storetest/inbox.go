package storetest

import (
	"fmt"
	"time"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

var inboxCases = map[string]func(*testCase){
	"an event is kept once until it expires": func(k *testCase) {
		event := backend.Event{Key: "k", Type: "t", ReceivedAt: at, ExpiresAt: at.Add(time.Hour), Body: []byte(`{"Ω":1}`)}
		k.ok(k.s.Inbox.KeepEvent(k.ctx, event))
		again := event
		again.Body = []byte("{}")
		k.ok(k.s.Inbox.KeepEvent(k.ctx, again))
		for eventType, want := range map[string]int{"t": 1, "": 1, "u": 0} {
			got, err := k.s.Inbox.KeptEvents(k.ctx, eventType, at, backend.Event{})
			k.ok(err)
			equal(k, len(got), want)
			if want == 1 {
				equal(k, got[0], event)
			}
		}
		got, err := k.s.Inbox.KeptEvents(k.ctx, "t", at.Add(time.Hour), backend.Event{})
		k.ok(err)
		equal(k, len(got), 0)
		n, err := k.s.Inbox.PurgeEvents(k.ctx, at.Add(time.Hour), 10)
		k.ok(err)
		equal(k, n, 0)
		n, err = k.s.Inbox.PurgeEvents(k.ctx, at.Add(2*time.Hour), 10)
		k.ok(err)
		equal(k, n, 1)
		k.ok(k.s.Inbox.DropEvent(k.ctx, "k"))
	},
	"kept events come a page at a time, the first received first": func(k *testCase) {
		const all = projections.MaxLimit + 3
		for i := range all {
			k.ok(k.s.Inbox.KeepEvent(k.ctx, backend.Event{
				Key: fmt.Sprintf("k-%03d", i), Type: "t", ReceivedAt: at.Add(time.Duration(i/2) * time.Second), ExpiresAt: at.Add(time.Hour), Body: []byte("{}"),
			}))
		}
		k.ok(k.s.Inbox.DropEvent(k.ctx, "k-001"))
		first, err := k.s.Inbox.KeptEvents(k.ctx, "t", at, backend.Event{})
		k.ok(err)
		equal(k, len(first), projections.MaxLimit)
		second, err := k.s.Inbox.KeptEvents(k.ctx, "t", at, first[len(first)-1])
		k.ok(err)
		equal(k, len(second), 2)
		equal(k, []string{first[0].Key, first[1].Key, second[1].Key}, []string{"k-000", "k-002", fmt.Sprintf("k-%03d", all-1)})
		n, err := k.s.Inbox.PurgeEvents(k.ctx, at.Add(2*time.Hour), 2)
		k.ok(err)
		equal(k, n, 2)
	},
}
