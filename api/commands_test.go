package api

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/ack"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/storetest"
)

func (b *node) ClaimCommand(_ context.Context, id string, position int64, worker string, lease time.Duration) (projections.Entry, error) {
	b.ack = map[string]any{"claim": fmt.Sprint(id, "/", position, " ", worker, " ", lease)}
	return pendingCommand(worker, b.err == nil), b.err
}
func (b *node) RetryCommand(_ context.Context, id string, position int64, actor string) (projections.Entry, error) {
	b.ack = map[string]any{"retry": fmt.Sprint(id, "/", position, " ", actor)}
	return pendingCommand("", true), b.err
}
func (b *node) SettleCommand(_ context.Context, id string, position int64, a ack.Ack) (engine.Disposition, error) {
	b.ack = map[string]any{"settle " + id + "/" + strconv.FormatInt(position, 10): a}
	return engine.Applied, b.err
}

// pendingCommand is a command as a store has it, claimed by a worker outside.
func pendingCommand(worker string, there bool) projections.Entry {
	e := projections.Entry{
		InstanceID: "i", Position: 2, Kind: "command", Type: "Call", Processed: new(bool), Key: "k",
		Data: []byte(`{"target":"ship","token":"secret","input":{"order":7},"ptr":"/do/0/ship","key":"k"}`),
	}
	if there && worker != "" {
		e.LastError, e.NextAttemptAt = ack.Claimed(worker, time.Unix(300, 0), "it was away", true), time.Unix(300, 0)
	}
	return e
}

func TestCommandsAreClaimedAndEnded(t *testing.T) {
	t.Parallel()
	b := &node{}
	h := handler(t, b)
	const at = "/v1/instances/i/commands/2/"
	for _, c := range []struct {
		verb, body string
		status     int
		did        map[string]any
		says       string
	}{
		{"claim", `{}`, 200, map[string]any{"claim": "i/2 shop 5m0s"}, `"claimedBy":"shop"`},
		{"claim", `{"lease":"PT2H"}`, 200, map[string]any{"claim": "i/2 shop 2h0m0s"}, `"input":{"order":7}`},
		{"retry", ``, 200, map[string]any{"retry": "i/2 shop"}, `"target":"ship"`},
		{"complete", `{"output":{"n":1}}`, 202, map[string]any{"settle i/2": ack.Ack{Outcome: ack.Processed, Output: json.RawMessage(`{"n":1}`), Actor: "shop"}}, `"applied"`},
		{"fail", `{"error":{"status":409,"title":"T"}}`, 202, map[string]any{"settle i/2": ack.Ack{Outcome: ack.Failed, Error: &snapshot.Error{Status: 409, Title: "T"}, Actor: "shop"}}, `"applied"`},
		{"claim", `{"lease":"soon"}`, 400, nil, `request.invalid`},
	} {
		b.ack = nil
		w := call(h, "POST", at+c.verb, c.body, "Content-Type", "application/json", "X-Aqueduct-Actor", "shop")
		if w.Code != c.status || !reflect.DeepEqual(b.ack, c.did) && c.did != nil || !strings.Contains(w.Body.String(), c.says) || strings.Contains(w.Body.String(), "secret") {
			t.Errorf("%s %s: %d %s, %+v", c.verb, c.body, w.Code, w.Body, b.ack)
		}
	}
}

// What the views of stores say of the same entries.
func TestEntriesHaveTheNamesOfTheirAuthors(t *testing.T) {
	t.Parallel()
	var names []string
	for _, e := range storetest.Named("i", 1, time.Unix(0, 0)) {
		names = append(names, toEntry(e).Name)
	}
	if got := strings.Join(names, " "); got != "told paid submit a/b ask" {
		t.Errorf("names %s", got)
	}
}

// repeating has a signal with a key, which comes again.
type repeating struct{ *node }

func (repeating) Received(_ context.Context, id, signalID string) (projections.Entry, error) {
	if signalID != "key:order-7" {
		return projections.Entry{}, store.ErrNotFound
	}
	return projections.Entry{InstanceID: id, Position: 4, Kind: "event", Type: "ExternalSignal", Metadata: []byte(`{"disposition":"buffered"}`)}, nil
}

func (repeating) Signal(context.Context, signal.Envelope) (engine.Disposition, error) {
	return engine.Duplicate, nil
}

func (repeating) StartOrSignal(context.Context, string, signal.Start, map[string]string) (string, bool, engine.Disposition, error) {
	return "i", false, engine.Duplicate, nil
}

// A repeat gets the verdict of the first, by its key, whatever id it has.
func TestARepeatGetsTheFirstVerdict(t *testing.T) {
	t.Parallel()
	b := &node{snap: waiting}
	x := repeating{b}
	h := handlerWith(t, b, func(c *Config) { c.Starter, c.Signaller, c.Reader.Streams = x, x, x })
	const first = `"first":{"position":4,"disposition":"buffered"`
	for path, body := range map[string]string{
		"/v1/instances/i/signals":           `{"type":"paid","signalId":"m-2","dedupeKey":"order-7"}`,
		"/v1/lifecycles/shop/loan/L/events": `{"event":"pay","requestId":"r-2","dedupeKey":"order-7"}`,
	} {
		w := call(h, "POST", path, body, "Content-Type", "application/json")
		if w.Code > 202 || !strings.Contains(w.Body.String(), first) || !strings.Contains(w.Body.String(), `"duplicate"`) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
		w = call(h, "POST", path, strings.Replace(body, "order-7", "order-8", 1), "Content-Type", "application/json")
		if w.Code > 202 || strings.Contains(w.Body.String(), `"first"`) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}
