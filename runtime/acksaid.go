package runtime

import (
	"context"
	"encoding/json"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/aqueduct-engine/aqueduct/ack"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
)

// ackSaid is the payload of an AckRequest: what a consumer says of a command of the
// instance, in its own transaction or as an envelope on the queue. It is held to the rules
// of the API; its sender cannot be told, and what is refused is a dead letter with the code
// that the API gives.
type ackSaid struct {
	Command      int64           `json:"command"`
	Outcome      ack.Outcome     `json:"outcome"`
	Consumer     string          `json:"consumer"`
	Output       json.RawMessage `json:"output"`
	DelaySeconds float64         `json:"delaySeconds"`
	Error        *struct {
		Type   string `json:"type"`
		Status int    `json:"status"`
		Title  string `json:"title"`
		Detail string `json:"detail"`
	} `json:"error"`
}

// onAck takes an acknowledgement from the queue. What it commits has the id of the message,
// so that one which comes again finds it.
func (a *acknowledger) onAck(ctx context.Context, d store.Delivery, env signal.Envelope) error {
	var p ackSaid
	if err := jsonv2.Unmarshal(env.Payload, &p, jsonv2.RejectUnknownMembers(true)); err != nil {
		return problem.Wrap(err, problem.Invalid, "ack.invalid", "the payload is not {command, outcome, consumer, output, error, delaySeconds}")
	}
	if p.Command < 1 || p.DelaySeconds < 0 || p.DelaySeconds > ack.MaxDelay.Seconds() {
		return problem.New(problem.Invalid, "ack.invalid", "command %d and delaySeconds %g are not a position and a delay of up to %s", p.Command, p.DelaySeconds, ack.MaxDelay)
	}
	known, err := a.dispatcher.Streams.Recorded(ctx, env.InstanceID, env.SignalID)
	if err != nil {
		return err
	}
	if !known {
		said := ack.Ack{
			Outcome: p.Outcome, Output: p.Output, Delay: time.Duration(p.DelaySeconds * float64(time.Second)), Consumer: p.Consumer,
			Actor: env.Headers[signal.HeaderActor], Signal: env.SignalID,
		}
		if e := p.Error; e != nil {
			said.Error = &snapshot.Error{Type: e.Type, Status: e.Status, Title: e.Title, Detail: e.Detail}
		}
		if _, err := a.Acknowledge(ctx, env.InstanceID, p.Command, said); err != nil {
			return err
		}
	} else {
		a.acks.WithLabelValues(string(engine.Duplicate)).Inc()
	}
	return d.Commit(ctx, store.Change{})
}
