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
func (b *node) Unserved(_ context.Context, target string) bool { return target == "nobodys" }
func (b *node) Retries(context.Context, projections.Entry) ack.Retries {
	return ack.Retries{Delay: time.Second, DelayMax: 15 * time.Minute, For: 36 * time.Hour}
}

func (b *node) RetryCommand(_ context.Context, id string, position int64, actor string) (projections.Entry, error) {
	b.ack = map[string]any{"retry": fmt.Sprint(id, "/", position, " ", actor)}
	return pendingCommand("", true), b.err
}
func (b *node) RunNow(_ context.Context, id, wait string, _ int64, actor string) (engine.Disposition, error) {
	b.ack = map[string]any{"run-now": fmt.Sprint(id, " ", wait, " ", actor)}
	return engine.Applied, b.err
}
func (b *node) Rewind(_ context.Context, s, past *snapshot.Snapshot, newKeys, dryRun bool, actor string) error {
	if !dryRun {
		b.acts++
	}
	b.ack = map[string]any{"rewind": fmt.Sprint(s.InstanceID, " ", s.Version, " to ", past.Position, " ", newKeys, dryRun, " ", actor)}
	return b.err
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

// TestOnlyRunNowTakesAWait: what is to run now is said by the pointer of its task.
func TestOnlyRunNowTakesAWait(t *testing.T) {
	t.Parallel()
	b := &node{}
	const path = "/v1/instances/i/operations"
	call(handler(t, b), "POST", path, `{"operation":"run-now","wait":"/do/0/a"}`, "X-Aqueduct-Actor", "ann")
	if got := b.ack["run-now"]; got != "i /do/0/a ann" {
		t.Errorf("asked for %q", got)
	}
	for body, want := range map[string]string{
		`{"operation":"retry","wait":"/do/0/a"}`: "only run-now takes a wait", `{"operation":"run-now","output":1}`: "only skip takes an output",
	} {
		if w := call(handler(t, b), "POST", path, body); w.Code != 400 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
}

// TestARewindIsOfTheVersionThatWasShown: else it is refused, and a dry run does nothing.
func TestARewindIsOfTheVersionThatWasShown(t *testing.T) {
	t.Parallel()
	b := &node{snap: snapshot.Snapshot{Position: 1}}
	const path = "/v1/instances/i/rewind"
	for _, c := range []struct {
		body, says string
		status     int
	}{
		{`{"to":1,"stateVersion":99}`, "rewind.stale", 409},
		{`{"to":0}`, "request.invalid", 422},
		{`{"to":20000}`, "stream.position", 404},
		{`{"to":1,"dryRun":true}`, `"dryRun":true`, 200},
		{`{"to":1,"newKeys":true}`, `"newKeys":true`, 200},
	} {
		b.ack = nil
		w := call(handler(t, b), "POST", path, c.body, "X-Aqueduct-Actor", "ann")
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.says) || (b.ack != nil) != (c.status == 200) {
			t.Errorf("%s: %d %s, %v", c.body, w.Code, w.Body, b.ack)
		}
	}
}
