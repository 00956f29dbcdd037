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
	"github.com/aqueduct-engine/aqueduct/snapshot"
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
		e.LastError, e.NextAttemptAt = ack.Claimed(worker), time.Unix(300, 0)
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
