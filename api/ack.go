package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/aqueduct-engine/aqueduct/ack"
	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

func (s instanceAPI) ackOperations(h huma.API) {
	ack := operation("acknowledge-command", http.MethodPost, "/v1/instances/{id}/commands/{position}/ack", "instances",
		"Acknowledge a command", http.StatusNotFound, http.StatusConflict)
	ack.Description = "For the consumer of a command that asks for it; the path is in the header Aqueduct-Ack of its delivery. " +
		"Durable when the answer comes; of a command that is settled, a duplicate that changes nothing."
	ack.DefaultStatus = http.StatusAccepted
	register(s.service, h, ack, s.acknowledge)
}

type ackInput struct {
	ByID
	Caller
	Position int64 `path:"position" minimum:"1" doc:"Of the command in the instance's stream."`
	Body     client.AckRequest
}

func (s instanceAPI) acknowledge(ctx context.Context, in *ackInput) (*answer[client.Acknowledged], error) {
	b := &in.Body
	a := ack.Ack{Outcome: ack.Outcome(b.Outcome), Output: b.Output, Error: toAckError(b.Error), Actor: in.Actor, Consumer: b.Consumer}
	if b.Delay != "" {
		var err error
		if a.Delay, err = parseDuration("/delay", b.Delay); err != nil {
			return nil, err
		}
	}
	did, err := s.Acknowledger.Acknowledge(ctx, in.ID, in.Position, a)
	if err != nil {
		return nil, err
	}
	return &answer[client.Acknowledged]{http.StatusAccepted, client.Acknowledged{
		InstanceID: in.ID, Position: in.Position, Disposition: string(did),
	}}, nil
}

func toAckError(e *client.AckError) *snapshot.Error {
	if e == nil {
		return nil
	}
	return &snapshot.Error{Type: e.Type, Status: e.Status, Title: e.Title, Detail: e.Detail}
}
