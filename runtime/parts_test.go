package runtime_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/definition/openworkflow"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// A part of the store that a node needs and that is nil is named when the node is
// made, not when somebody asks for it.
func TestAMissingPartIsNamed(t *testing.T) {
	t.Parallel()
	st, err := testdb.Open(t.Context(), testdb.OnFile(t)())
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for part, without := range map[string]func(*runtime.Config){
		"Queue":       func(c *runtime.Config) { c.Store.Queue = nil },
		"Writer":      func(c *runtime.Config) { c.Store.Writer = nil },
		"Instances":   func(c *runtime.Config) { c.Store.Instances = nil },
		"Streams":     func(c *runtime.Config) { c.Store.Streams = nil },
		"Waits":       func(c *runtime.Config) { c.Store.Waits = nil },
		"Tasks":       func(c *runtime.Config) { c.Store.Tasks = nil },
		"DeadLetters": func(c *runtime.Config) { c.Store.DeadLetters = nil },
		"Identity":    func(c *runtime.Config) { c.Store.Identity = nil },
		"Nodes":       func(c *runtime.Config) { c.Store.Nodes = nil },
		"Clock":       func(c *runtime.Config) { c.Store.Clock = nil },
		"Retention":   func(c *runtime.Config) { c.Store.Retention, c.RetentionKeep = nil, time.Hour },
		"and Locks":   func(c *runtime.Config) { c.Store.Locks, c.RetentionKeep = nil, time.Hour },
		"Inbox":       func(c *runtime.Config) { c.Store.Inbox, c.EventTTL = nil, time.Hour },
	} {
		c := runtime.Config{
			Store: st.Parts, Definitions: definition.New(st, openworkflow.Parsers(), time.Now), Performer: activity.New(activity.Config{}),
		}
		without(&c)
		if _, err := runtime.New(t.Context(), c); err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("without %s: %v", part, err)
		}
	}
}

// Without the parts that a store may lack, and without its clock, a node does
// everything else.
func TestANodeDoesWithoutWhatItsStoreLacks(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		bare := func(p backend.Parts) backend.Parts {
			p.Clock, p.Joins, p.Ledger, p.Locks, p.Retention, p.Inbox, p.Backlog, p.Prober = nil, false, nil, nil, nil, nil, nil, nil
			return p
		}
		n, err := open(t.Context(), fresh(), bare, func(context.Context, json.RawMessage) (any, error) { return 1, nil }, callDoc, listenDoc)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := n.close(); err != nil {
				t.Error(err)
			}
		}()
		n.begin(t, "c", "t/call", map[string]any{"n": 1})
		n.begin(t, "l", "t/listen", map[string]any{"order": 1})
		n.send(t, `{"signalId":"s","workflowInstanceId":"l","runtimeProvider":"aqueduct","signalType":"ExternalSignal","expectedVersion":0,"occurredAtUtc":"2026-01-01T00:00:00Z","payload":{"type":"paid","data":{"order":1}}}`)
		n.output(t, "c")
		n.output(t, "l")
		if _, err := n.metrics.Gather(); err != nil {
			t.Error(err)
		}
	})
}
