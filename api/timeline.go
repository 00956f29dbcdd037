package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/aqueduct-engine/aqueduct/ack"
	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

func (s activityAPI) timelineOperations(h huma.API) {
	op := operation("get-timeline", http.MethodGet, "/v1/timeline", "activities", "Tell what has happened to all instances of a business key, or to one, oldest first", http.StatusNotFound)
	op.Description = "Entries of streams, tasks, and activities that applications have noted. What nodes do are the kinds command and task, with how they stand."
	register(s.service, h, op, s.timeline)
}

type timelineInput struct {
	Paging
	BusinessKey string   `query:"businessKey" maxLength:"256" doc:"Of the instances. It, or instance, must be given."`
	InstanceID  string   `query:"instance" maxLength:"128" doc:"Only of this one."`
	Definition  string   `query:"definition" maxLength:"256" doc:"Only of instances of it."`
	Kinds       []string `query:"kind,explode" maxItems:"4" enum:"event,command,task,activity" doc:"Only of this kind; may be repeated."`
}

func (s activityAPI) timeline(ctx context.Context, in *timelineInput) (*answer[client.Page[client.Moment]], error) {
	if (in.BusinessKey == "") == (in.InstanceID == "") {
		return nil, invalid("query.businessKey", "give a business key, or an instance: one of the two")
	}
	p, err := s.Reader.Moments.Moments(ctx, backend.MomentQuery{
		BusinessKey: in.BusinessKey, InstanceID: in.InstanceID, Definition: in.Definition, Kinds: in.Kinds, After: in.After, Limit: in.Limit,
	})
	if err == nil {
		err = s.isThere(ctx, in.InstanceID, in.After, len(p.Items))
	}
	return ok(client.Page[client.Moment]{Items: convert(p.Items, toMoment), Next: p.Next}), err
}

func toMoment(m backend.Moment) client.Moment {
	out := client.Moment{
		At: m.At.UTC(), BusinessKey: m.BusinessKey, Definition: m.Definition, InstanceID: m.InstanceID, Kind: m.Kind, Direction: m.Direction, Position: m.Position,
		Name: m.Name, Status: m.Status, EndedAt: utc(m.EndedAt), Actor: m.Actor, Pointer: m.Pointer, Hook: m.Hook, CorrelationID: m.Correlation, Attempts: m.Attempts, LastError: strings.TrimPrefix(m.LastError, ack.Open),
	}
	switch m.Kind {
	case backend.MomentTask:
		out.TaskID = m.Ref
	case backend.MomentActivity:
		out.ActivityID = m.Ref
	}
	return out
}
