package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

func paid(id string, order int) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"specversion":"1.0","id":"%s","source":"bank","type":"paid","data":{"order":%d}}`, id, order))
}

func (n *testNode) event(t *testing.T, event json.RawMessage, reaches int) {
	t.Helper()
	if got, err := n.rt.PublishEvent(t.Context(), event, nil); err != nil || got != reaches {
		t.Fatalf("the event reached %d, not %d: %v", got, reaches, err)
	}
}

// twiceDoc takes two events, one after the other.
var twiceDoc = doc("twice", `
  - first: {listen: {to: {one: {with: {type: paid}}}}}
  - second: {listen: {to: {one: {with: {type: paid}}}}}
`)

// TestEarlyEventIsKeptForAWhile is scenario 14, and 13: the same event counts
// once.
func TestEarlyEventIsKeptForAWhile(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := keeping(t, fresh(), time.Hour, nil, listenDoc, twiceDoc)
		n.event(t, paid("1", 7), 0)
		n.event(t, paid("1", 7), 0)
		n.begin(t, "other", "t/listen", map[string]any{"order": 8})
		n.begin(t, "i", "t/listen", map[string]any{"order": 7})
		if got := n.output(t, "i"); got != `{"order":7}` {
			t.Errorf("output %s", got)
		}
		n.begin(t, "twice", "t/twice", nil)
		n.settles(t)
		s, err := n.store.Writer.Load(t.Context(), "twice")
		if w, _ := s.Primary(); err != nil || w.Pointer != "/do/1/second" || len(s.Buffer) != 0 {
			t.Errorf("after one event, published twice: %+v, %v", s, err)
		}
		if row, err := n.store.Instances.Instance(t.Context(), "other"); err != nil || row.Status != "waiting" {
			t.Errorf("the listener for another order: %+v, %v", row, err)
		}
		// One that somebody waited for is not kept.
		n.event(t, paid("2", 8), 2)
		n.output(t, "other")
		n.output(t, "twice")
		n.begin(t, "late", "t/listen", map[string]any{"order": 8})
		n.settles(t)
		if row, err := n.store.Instances.Instance(t.Context(), "late"); err != nil || row.Status != "waiting" {
			t.Errorf("a listener after the event was heard: %+v, %v", row, err)
		}
	})
}

func TestEarlyEventExpires(t *testing.T) {
	t.Parallel()
	n := keeping(t, testdb.OnFile(t)(), 50*time.Millisecond, nil, listenDoc)
	n.event(t, paid("1", 7), 0)
	time.Sleep(100 * time.Millisecond)
	n.begin(t, "i", "t/listen", map[string]any{"order": 7})
	n.settles(t)
	if row, err := n.store.Instances.Instance(t.Context(), "i"); err != nil || row.Status != "waiting" {
		t.Errorf("%+v, %v", row, err)
	}
	if got, err := n.store.Inbox.PurgeEvents(t.Context(), time.Now(), 10); err != nil || got != 1 {
		t.Errorf("%d purged, %v", got, err)
	}
}

// TestEventAndListenNeverMissEachOther lets each begin while the other does.
func TestEventAndListenNeverMissEachOther(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		place := fresh()
		n := keeping(t, place, time.Hour, nil, listenDoc)
		other := keeping(t, place, time.Hour, nil, listenDoc)
		const pairs = 40
		var wg sync.WaitGroup
		for i := range pairs {
			wg.Go(func() { n.begin(t, fmt.Sprint("i-", i), "t/listen", map[string]any{"order": i}) })
			wg.Go(func() {
				time.Sleep(time.Duration(i%8) * 200 * time.Microsecond)
				if _, err := other.rt.PublishEvent(t.Context(), paid(fmt.Sprint(i), i), nil); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for i := range pairs {
			if got := n.output(t, fmt.Sprint("i-", i)); got != fmt.Sprintf(`{"order":%d}`, i) {
				t.Errorf("%d heard %s", i, got)
			}
		}
	})
}

// looked counts the events that a node is given of those that are kept.
type looked struct {
	backend.Inbox
	n *atomic.Int64
}

func (l looked) KeptEvents(ctx context.Context, those backend.KeptQuery, now time.Time, behind backend.Event) ([]backend.Event, error) {
	page, err := l.Inbox.KeptEvents(ctx, those, now, behind)
	l.n.Add(int64(len(page)))
	return page, err
}

// An early event is looked at once, not by each who begins to listen for its type; another
// version that tells its events alike finds it as it is.
func TestEarlyEventsAreFoundByTheirKey(t *testing.T) {
	t.Parallel()
	const kept, listeners = 300, 40
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		var n atomic.Int64
		node := startSet(t, fresh(), func(c *runtime.Config) {
			c.EventTTL, c.Store.Inbox = time.Hour, looked{c.Store.Inbox, &n}
		}, nil, listenDoc, strings.Replace(listenDoc, "version: '1.0.0'", "version: '2.0.0'", 1))
		for i := range kept {
			node.event(t, paid(fmt.Sprint("e-", i), i), 0)
		}
		for i := range listeners {
			id := fmt.Sprint("i-", i)
			start := signal.Start{Definition: "t/listen", Version: fmt.Sprintf("%d.0.0", 1+i%2), Input: fmt.Appendf(nil, `{"order":%d}`, 7*i)}
			if _, _, err := node.rt.Start(t.Context(), id, start, nil); err != nil {
				t.Fatal(err)
			}
			if got, want := node.output(t, id), fmt.Sprintf(`{"order":%d}`, 7*i); got != want {
				t.Errorf("%s has %s, not %s", id, got, want)
			}
		}
		// Each listener asks whether there is any, and any that is new, and gets its own.
		if most := int64(kept + 4*listeners); n.Load() > most {
			t.Errorf("%d listeners looked at %d events of %d, at most %d expected", listeners, n.Load(), kept, most)
		}
	})
}

// A listen that takes many early events is given each once, however many there are: it is a
// new wait after each, and looked at all of them then.
func TestOneListenTakesManyEarlyEvents(t *testing.T) {
	t.Parallel()
	many := doc("many", `
  - all:
      listen:
        to:
          any: [{with: {type: paid}, correlate: {k: {from: .source, expect: '${ .source }'}}}]
          until: {one: {with: {type: enough}}}
      output: {as: length}
`)
	take := func(t *testing.T, place string, kept int) {
		var n atomic.Int64
		node := startSet(t, place, func(c *runtime.Config) {
			c.EventTTL, c.Store.Inbox = time.Hour, looked{c.Store.Inbox, &n}
		}, nil, many)
		for i := range kept {
			node.event(t, paid(fmt.Sprint("e-", i), i), 0)
		}
		node.begin(t, "i", "t/many", map[string]any{"source": "bank"})
		takes := func(more int) {
			t.Helper()
			eventually(t, fmt.Sprint(more, " events"), func() bool {
				s, err := node.store.Writer.Load(t.Context(), "i")
				return err == nil && len(s.Branches) == 1 && len(s.Branches[0].Frames) == 2 && len(s.Branches[0].Frames[1].Items) == more
			})
		}
		takes(kept)
		node.event(t, paid("live", 1), 1)
		takes(kept + 1)
		node.event(t, json.RawMessage(`{"specversion":"1.0","id":"stop","source":"bank","type":"enough"}`), 1)
		if got, want := node.output(t, "i"), fmt.Sprint(kept+1); got != want {
			t.Errorf("it took %s, not %s", got, want)
		}
		// They are filed once, and given once for each look.
		if looks := int64(2 + kept/100); n.Load() > looks*int64(kept) {
			t.Errorf("%d events were looked at for %d, at most %d expected", n.Load(), kept, looks*int64(kept))
		}
	}
	testdb.Each(t, func(t *testing.T, fresh func() string) { take(t, fresh(), 150) })
	t.Run("more than it may buffer", func(t *testing.T) {
		t.Parallel()
		take(t, testdb.OnFile(t)(), snapshot.MaxBuffered+100)
	})
}

// Events of one type that two documents tell in two ways reach the listeners of both, in the
// order in which they came.
func TestEarlyEventsAreToldInTwoWays(t *testing.T) {
	t.Parallel()
	listens := func(name, key string) string {
		return doc(name, `
  - all: {listen: {to: {all: [{with: {type: paid}, correlate: {`+key+`: {from: '.data.order', expect: '${ .order }'}}}]}}}
`)
	}
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := keeping(t, fresh(), time.Hour, nil, listens("one", "order"), listens("two", "number"))
		n.event(t, paid("1", 7), 0)
		n.event(t, paid("2", 8), 0)
		for i, name := range []string{"one", "two", "one", "two"} {
			if i == 2 {
				n.event(t, paid("3", 9), 0)
			}
			id, order := fmt.Sprint("i-", i), 7+i%2+i/2
			n.begin(t, id, "t/"+name, map[string]any{"order": order})
			if got, want := n.output(t, id), fmt.Sprintf(`[{"order":%d}]`, order); got != want {
				t.Errorf("%s has %s, not %s", id, got, want)
			}
		}
	})
}

// What was kept for those who listen later stays kept, whoever waits when it is published again.
func TestARepetitionTakesNothingThatWasKept(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := keeping(t, fresh(), time.Hour, nil, listenDoc, twiceDoc)
		n.event(t, paid("1", 7), 0)
		n.begin(t, "first", "t/listen", map[string]any{"order": 7})
		n.output(t, "first")
		n.begin(t, "twice", "t/twice", nil)
		n.settles(t)
		n.event(t, paid("1", 7), 1) // who waits for the next had this one
		n.begin(t, "late", "t/listen", map[string]any{"order": 7})
		if got := n.output(t, "late"); got != `{"order":7}` {
			t.Errorf("output %s", got)
		}
		n.settles(t)
		if s, err := n.store.Writer.Load(t.Context(), "twice"); err != nil || len(s.Buffer) != 0 {
			t.Errorf("who had it got it again: %+v, %v", s, err)
		} else if w, _ := s.Primary(); w.Pointer != "/do/1/second" {
			t.Errorf("who had it took it again: %+v", w)
		}
	})
}

// unrouted fails to say who waits, once.
type unrouted struct {
	backend.WaitReader
	failed *atomic.Bool
}

func (u unrouted) WaitSpecs(ctx context.Context, eventType string) ([]string, error) {
	if u.failed.CompareAndSwap(false, true) {
		return nil, errors.New("the node dies")
	}
	return u.WaitReader.WaitSpecs(ctx, eventType)
}

// A node that ends between the keeping of an event and the look for its waits has told nobody.
// Published again it reaches each wait once, and stays for who listens later: what the first
// had found is not known.
func TestAnEventThatWasKeptAndNotRoutedComesAgain(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		var failed atomic.Bool
		n := startSet(t, fresh(), func(c *runtime.Config) {
			c.EventTTL, c.Store.Waits = time.Hour, unrouted{c.Store.Waits, &failed}
		}, nil, listenDoc, twiceDoc)
		n.begin(t, "twice", "t/twice", nil)
		n.settles(t)
		if _, err := n.rt.PublishEvent(t.Context(), paid("1", 7), nil); err == nil {
			t.Fatal("no error")
		}
		n.event(t, paid("1", 7), 1)
		n.settles(t)
		n.event(t, paid("1", 7), 1)
		n.begin(t, "late", "t/listen", map[string]any{"order": 7})
		if got := n.output(t, "late"); got != `{"order":7}` {
			t.Errorf("output %s", got)
		}
		n.settles(t)
		s, err := n.store.Writer.Load(t.Context(), "twice")
		if w, _ := s.Primary(); err != nil || w.Pointer != "/do/1/second" || len(s.Buffer) != 0 {
			t.Errorf("after one event, published three times: %+v, %v", s, err)
		}
	})
}

// A listen for events of several types is given those that came before it in the order in which
// they came, whatever the order of its filters, and over more than a page of each.
func TestEarlyEventsOfSeveralTypesComeInTheirOrder(t *testing.T) {
	t.Parallel()
	one := doc("one", `
  - all: {listen: {to: {any: [{with: {type: c}}, {with: {type: a}}, {with: {type: b}}]}}}
`)
	many := doc("many", `
  - all:
      listen:
        to:
          any: [{with: {type: c}}, {with: {type: a}}, {with: {type: b}}]
          until: {one: {with: {type: enough}}}
`)
	of := func(eventType string, no int) json.RawMessage {
		return json.RawMessage(fmt.Sprintf(`{"specversion":"1.0","id":"%d","source":"s","type":"%s","data":%d}`, no, eventType, no))
	}
	give := func(t *testing.T, place string, kept int) {
		n := keeping(t, place, time.Hour, nil, one, many)
		var want []int
		for i := range kept {
			n.event(t, of([]string{"a", "b", "c"}[i%3], i), 0)
			want = append(want, i)
		}
		n.begin(t, "one", "t/one", nil)
		if got := n.output(t, "one"); got != "[0]" {
			t.Errorf("the first that came is not %s", got)
		}
		n.begin(t, "many", "t/many", nil)
		eventually(t, "all", func() bool {
			s, err := n.store.Writer.Load(t.Context(), "many")
			return err == nil && len(s.Branches) == 1 && len(s.Branches[0].Frames) == 2 && len(s.Branches[0].Frames[1].Items) == kept
		})
		n.event(t, of("enough", kept), 1)
		all, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		if got := n.output(t, "many"); got != string(all) {
			t.Errorf("they came as %s", got)
		}
	}
	testdb.Each(t, func(t *testing.T, fresh func() string) { give(t, fresh(), 12) })
	t.Run("more than a page of each", func(t *testing.T) {
		t.Parallel()
		give(t, testdb.OnFile(t)(), projections.MaxLimit+100)
	})
}

// dropping has something happen right behind the moment from which an event is kept no more.
type dropping struct {
	backend.Inbox
	behind func()
}

func (d *dropping) DropEvent(ctx context.Context, key string) error {
	err := d.Inbox.DropEvent(ctx, key)
	if then := d.behind; then != nil {
		d.behind = nil
		then()
	}
	return err
}

// Who begins to listen while an event is given to others gets it, too: who looks for it when
// it is kept no more is found by a last look at who waits.
func TestWhoListensDuringAPublicationGetsTheEvent(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		inbox := &dropping{}
		n := startSet(t, fresh(), func(c *runtime.Config) {
			inbox.Inbox = c.Store.Inbox
			c.EventTTL, c.Store.Inbox = time.Hour, inbox
		}, nil, listenDoc)
		n.begin(t, "before", "t/listen", map[string]any{"order": 7})
		inbox.behind = func() { n.begin(t, "meanwhile", "t/listen", map[string]any{"order": 7}) }
		n.event(t, paid("1", 7), 2)
		for _, id := range []string{"before", "meanwhile"} {
			if got := n.output(t, id); got != `{"order":7}` {
				t.Errorf("%s: output %s", id, got)
			}
		}
	})
}

// moving has one wait of the second page on the first when that has been read, as one that
// takes an event in between and goes on waiting has.
type moving struct {
	backend.WaitReader
	moved atomic.Bool
}

func (m *moving) Waits(ctx context.Context, eventType, spec, keyHash string, after projections.Wait, limit int) ([]projections.Wait, error) {
	waits, err := m.WaitReader.Waits(ctx, eventType, spec, keyHash, after, limit)
	if after.Token != "" && len(waits) > 0 && m.moved.CompareAndSwap(false, true) {
		waits = waits[:len(waits)-1]
	}
	return waits, err
}

// An event for more instances than a page has reaches those, too, that go on to wait under
// another token meanwhile.
func TestAnEventForManyMissesNobodyWhoGoesOnWaiting(t *testing.T) {
	t.Parallel()
	const listeners = 502 // more than eventFanOut
	waits := &moving{}
	n := startSet(t, testdb.OnFile(t)(), func(c *runtime.Config) { waits.WaitReader, c.Store.Waits = c.Store.Waits, waits }, nil, listenDoc)
	for i := range listeners {
		n.begin(t, fmt.Sprint("i-", i), "t/listen", map[string]any{"order": 7})
	}
	n.event(t, paid("1", 7), listeners)
	if !waits.moved.Load() {
		t.Error("one page has them all")
	}
}
