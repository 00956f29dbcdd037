package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/aqueduct-engine/aqueduct/api/client"
)

// pastAPI is what instances were.
type pastAPI struct{ instanceAPI }

func (s pastAPI) pastOperations(h huma.API) {
	op := operation("get-past-instance", http.MethodGet, "/v1/instances/{id}/at/{position}", "instances",
		"Show an instance as it was after a turn", http.StatusNotFound, http.StatusConflict, http.StatusRequestEntityTooLarge)
	op.Description = "It is made again from its stream, through the turn of a position, which is bounded. " +
		"Search attributes and commands that were pending are not shown."
	register(s.service, h, op, s.at)
}

type atInput struct {
	ByID
	Position int64 `path:"position" minimum:"1" doc:"Of an entry in the instance's stream."`
}

func (s pastAPI) at(ctx context.Context, in *atInput) (*answer[client.InstanceDetail], error) {
	row, err := s.Reader.Instances.Instance(ctx, in.ID)
	if err != nil {
		return nil, unknownInstance(err, in.ID)
	}
	snap, err := s.Past.At(ctx, in.ID, in.Position)
	if err != nil {
		return nil, err
	}
	row.DefVersion = snap.Definition.Version // it may have been migrated since
	return ok(s.shown(ctx, row, &snap, nil)), nil
}
