package service

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
)

// handOn leaves an operation to the nodes that have the code of the instance, by the
// signal queue. What the state of the instance refuses is refused at once. The same asked
// again of the same state is the same request, which is applied once.
func (o *Operator) handOn(ctx context.Context, env signal.Envelope, r request, by store.Audit) error {
	s, err := o.Snapshot(ctx, env.InstanceID)
	if err != nil {
		return err
	}
	if _, err := o.decision(ctx, r)(codeless{s.Definition}, &s, engine.Input{Signal: env, Now: env.OccurredAt}); slices.Contains(Refusals, problem.CodeOf(err)) {
		return err
	}
	env.Type = signal.OperatorRequest
	if env.Payload, err = json.Marshal(r); err != nil {
		return problem.Wrap(err, problem.Invalid, "signal.not-json", "the output is not JSON")
	}
	sum := sha256.Sum256(env.Payload)
	env.SignalID = signal.Bounded(fmt.Sprintf("%s.%d.%s", env.InstanceID, s.Version, hex.EncodeToString(sum[:8])))
	body, err := env.Encode()
	if err != nil {
		return err
	}
	return o.Writer.Commit(ctx, store.Change{Send: []store.Send{{Queue: store.Signals, Body: body}}, Audit: []store.Audit{by}})
}

// request is the payload of an OperatorRequest.
type request struct {
	Operation engine.Operation `json:"operation"`
	Output    json.RawMessage  `json:"output,omitempty"`
	Version   int64            `json:"version,omitempty"` // that the instance has; 0 = any
}

// codeless stands for a definition whose code another node has: by it an operation is
// tried, and what it decides is thrown away.
type codeless struct{ ref snapshot.Definition }

func (c codeless) Ref() snapshot.Definition                                    { return c.ref }
func (codeless) Begin(*engine.Turn, json.RawMessage) error                     { return nil }
func (codeless) Resume(*engine.Turn, snapshot.Wait, engine.Result) error       { return nil }
func (codeless) Recover(*engine.Turn, engine.Operation, json.RawMessage) error { return nil }
func (codeless) Compensate(*engine.Turn, bool) bool                            { return true }
func (codeless) Correlate(string, int, int, json.RawMessage) (string, bool, error) {
	return "", false, nil
}
func (codeless) Matches(*snapshot.Snapshot, snapshot.Wait, json.RawMessage) (bool, error) {
	return false, nil
}
