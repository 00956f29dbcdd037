package storetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
)

// large is a body that no queue of a database holds by itself.
func large(n int) []byte {
	b := bytes.Repeat([]byte("0123456789abcdef \x00\xff"), n/16+1)[:n]
	copy(b, fmt.Sprintf("%d bytes", n))
	return b
}

// same compares large bodies without printing them.
func (k *testCase) same(got, want []byte) {
	k.Helper()
	if !bytes.Equal(got, want) {
		k.Fatalf("got %d bytes %.40q, want %d bytes %.40q", len(got), got, len(want), want)
	}
}

func (k *testCase) takeLarge(q store.Queue, body []byte) store.Message {
	k.Helper()
	d := k.receive(k.s, q)
	k.same(d.Message().Body, body)
	k.ok(d.Commit(k.ctx, store.Change{}))
	return d.Message()
}

var largeCases = map[string]func(*testCase){
	"large bodies survive as they are": func(k *testCase) {
		for i, n := range []int{31_999, 32_000, 32_001, 32_767, 32_768, 100_000, store.MaxBody} {
			q := []store.Queue{store.Signals, store.Schedule, store.Commands}[i%3]
			k.send(store.Send{Queue: q, Body: large(n), Priority: 2, Attempts: i}, store.Send{Queue: q, Body: []byte("next")})
			m := k.takeLarge(q, large(n))
			equal(k, m.Priority, 2)
			equal(k, m.Attempts, i)
			k.take(q, "next")
		}
	},
	"a large body that comes later is not early": func(k *testCase) {
		due := time.Now().Add(1200 * time.Millisecond)
		k.send(store.Send{Queue: store.Schedule, Body: large(50_000), Due: due})
		m := k.takeLarge(store.Schedule, large(50_000))
		if time.Now().Before(due.Add(-200 * time.Millisecond)) {
			k.Fatalf("it was due at %v", m.DueAt)
		}
		equal(k, m.DueAt.Sub(due).Abs() < time.Millisecond, true)
	},
	"a large body survives releases": func(k *testCase) {
		body := large(60_000)
		k.send(store.Send{Queue: store.Signals, Body: body})
		first := k.receive(k.s, store.Signals)
		k.ok(first.Release(k.ctx, errors.New("because")))
		second := k.receive(k.s, store.Signals)
		k.same(second.Message().Body, body)
		equal(k, second.Message().ID, first.Message().ID)
		equal(k, second.Message().Attempts, 1)
		k.ok(second.Release(k.ctx, nil))
		equal(k, k.takeLarge(store.Signals, body).Attempts, 2)
		k.empty(store.Signals)
	},
	"a large body survives a crash": func(k *testCase) {
		body := large(60_000)
		b := k.open("node-b")
		k.send(store.Send{Queue: store.Signals, Body: body})
		d := k.receive(b, store.Signals)
		k.same(d.Message().Body, body)
		k.crash(b)
		k.takeLarge(store.Signals, body)
		k.empty(store.Signals)
	},
	"a stale commit leaves a large body where it is": func(k *testCase) {
		body := large(60_000)
		k.commit(turn("a", 1))
		k.send(store.Send{Queue: store.Signals, Body: body})
		d := k.receive(k.s, store.Signals)
		k.is(d.Commit(k.ctx, turn("a", 7)), store.ErrStale)
		k.ok(d.Release(k.ctx, nil))
		d = k.receive(k.s, store.Signals)
		k.same(d.Message().Body, body)
		c := turn("a", 2)
		c.Send = []store.Send{{Queue: store.Commands, Body: large(70_000)}, {Queue: store.Signals, Body: []byte("small")}}
		k.ok(d.Commit(k.ctx, c))
		k.takeLarge(store.Commands, large(70_000))
		k.take(store.Signals, "small")
	},
	"a dead letter of a large message has its bytes, and so has its replay": func(k *testCase) {
		body := large(90_000)
		k.send(store.Send{Queue: store.Schedule, Body: body})
		d := k.receive(k.s, store.Schedule)
		k.ok(d.Commit(k.ctx, store.Change{DeadLetter: &projections.DeadLetter{ID: "l", Reason: "r"}}))
		l, err := k.s.DeadLetters.DeadLetter(k.ctx, "l")
		k.ok(err)
		k.same(l.Envelope, body)
		k.empty(store.Schedule)
		k.ok(k.s.DeadLetters.Replay(k.ctx, "l", 0, nil))
		equal(k, k.takeLarge(store.Schedule, body).Attempts, 0)
	},
	"large data of a snapshot are what they were, whoever writes": largeData,
	"a refused turn leaves large data as they were": func(k *testCase) {
		k.commit(loop("a", 1, 0))
		k.commit(loop("a", 2, 1))
		for range 3 {
			k.is(k.s.Writer.Commit(k.ctx, loop("a", 2, 400)), store.ErrStale)
			c := loop("a", 3, 500)
			c.Rows.Settled = []engine.Settled{{Position: 7}} // there is no such command
			k.is(k.s.Writer.Commit(k.ctx, c), store.ErrTaken)
		}
		loads(k, k.s, loop("a", 2, 1))
		k.commit(loop("a", 3, 2))
		loads(k, k.s, loop("a", 3, 2))
	},
	"a body that looks like a store's own is a body": func(k *testCase) {
		for _, body := range []string{`{"claimCheck":{"id":"x","bytes":1}}`, `{"claimCheck":`, `{"claimCheck":{"id":"","bytes":0}} `} {
			k.send(sig(body))
			d := k.receive(k.s, store.Signals)
			equal(k, string(d.Message().Body), body)
			k.ok(d.Release(k.ctx, nil))
			k.take(store.Signals, body)
		}
	},
	"a body beyond the limit is refused and nothing written": func(k *testCase) {
		c := turn("a", 1)
		c.Send = []store.Send{sig("with it"), {Queue: store.Signals, Body: large(store.MaxBody + 1)}}
		if err := k.s.Writer.Commit(k.ctx, c); problem.CodeOf(err) != "signal.too-large" {
			k.Fatalf("got %v", err)
		}
		_, err := k.s.Writer.Load(k.ctx, "a")
		k.is(err, store.ErrNotFound)
		k.send(sig("go"))
		d := k.receive(k.s, store.Signals)
		equal(k, string(d.Message().Body), "go")
		if err := d.Commit(k.ctx, c); problem.CodeOf(err) != "signal.too-large" {
			k.Fatalf("got %v", err)
		}
		k.ok(d.Commit(k.ctx, store.Change{}))
		k.empty(store.Signals)
	},
}

// largeSnapshot is one at the limit of what is read back whole.
func largeSnapshot(k *testCase) {
	s := snap("a", 1)
	s.State.Context = json.RawMessage(`"` + strings.Repeat("é", 1<<19) + `"`)
	k.commit(store.Change{Snapshot: s, Encoded: encode(s)})
	got, err := k.s.Writer.Load(k.ctx, "a")
	k.ok(err)
	equal(k, got, *s)
}

// reusedBytes: a node encodes the next snapshot into the memory of the last one.
func reusedBytes(k *testCase) {
	buffer := make([]byte, 0, 4096)
	var want []snapshot.Snapshot
	for i := range 20 {
		s := snap(fmt.Sprint("r-", i), 1)
		encoded, err := s.EncodeTo(buffer)
		k.ok(err)
		k.commit(store.Change{Snapshot: s, Encoded: encoded})
		clear(encoded)
		want = append(want, *s)
	}
	for _, s := range want {
		got, err := k.s.Writer.Load(k.ctx, s.InstanceID)
		k.ok(err)
		equal(k, got, s)
	}
}

func largeEntry(k *testCase) {
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<14)
	c := turn("a", 1)
	c.Rows.Stream = []projections.Entry{{InstanceID: "a", Position: 1, Kind: "event", Data: data}}
	k.commit(c)
	got, err := k.s.Streams.Stream(k.ctx, "a", 0, 10)
	k.ok(err)
	equal(k, got, c.Rows.Stream)
}

// loop is a turn of an instance that goes through a large list, and is at an element.
func loop(id string, version int64, element int) store.Change {
	var items []json.RawMessage
	for i := range 1_000 {
		items = append(items, fmt.Appendf(nil, `{"n":%d,"text":"grün \\\"[{"}`, i))
	}
	list, _ := json.Marshal(map[string]any{"items": items}) // cannot fail
	c := turn(id, version)
	c.Snapshot.State.Input = list
	c.Snapshot.State.Context = fmt.Appendf(nil, `{"at":%d,"kept":%s}`, element, list)
	c.Snapshot.Branches = []*snapshot.Branch{{Data: list, Frames: []snapshot.Frame{{Pointer: "/do/0", Items: items[element:], Next: element}}}}
	c.Encoded = encode(c.Snapshot)
	return c
}

// loads fails unless a store has the snapshot of a change.
func loads(k *testCase, s *opened, c store.Change) {
	k.Helper()
	got, err := s.Writer.Load(k.ctx, c.Snapshot.InstanceID)
	k.ok(err)
	k.same(encode(&got), c.Encoded)
}

// largeData: two nodes write versions of an instance in turns, as they come to it.
func largeData(k *testCase) {
	b := k.open("node-b")
	first := loop("a", 1, 0)
	first.Rows.Stream = []projections.Entry{{InstanceID: "a", Position: 1, Kind: "event", Data: first.Snapshot.State.Input, IsInput: true}}
	k.commit(first)
	for i, s := range []*opened{k.s, k.s, b, k.s, b, b, b, k.s, k.s} {
		c := loop("a", int64(i+2), 100*(i+1))
		if i == 4 { // what is large goes, and comes again
			c = turn("a", int64(i+2))
			c.Snapshot.State.Input = first.Snapshot.State.Input
			c.Encoded = encode(c.Snapshot)
		}
		k.ok(s.Writer.Commit(k.ctx, c))
		loads(k, k.s, c)
		loads(k, b, c)
		entries, err := k.s.Streams.Stream(k.ctx, "a", 0, 10)
		k.ok(err)
		k.same(entries[0].Data, first.Snapshot.State.Input)
	}
	k.crash(b)
	last := loop("a", 11, 999)
	k.commit(last)
	loads(k, k.s, last)
}
