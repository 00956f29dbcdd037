package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/schedule"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

func (s definitionAPI) scheduleOperations(h huma.API) {
	list := operation("list-schedules", http.MethodGet, "/v1/schedules", "definitions", "List the schedules of definitions, the last set up first")
	list.Description = "A schedule is kept by an instance: suspend it to pause the schedule, resume it to go on, cancel it to end the schedule, until a newer version with one is published."
	register(s.service, h, list, s.listSchedules)
}

type listSchedulesInput struct {
	Paging
	Definition string `query:"definition" maxLength:"256"`
}

func (s definitionAPI) listSchedules(ctx context.Context, in *listSchedulesInput) (*answer[client.Page[client.Schedule]], error) {
	p, err := s.Reader.Instances.Instances(ctx, backend.InstanceQuery{
		Definition: in.Definition, BusinessKey: schedule.Key, After: in.After, Limit: in.Limit,
	})
	if err != nil {
		return nil, err
	}
	out := client.Page[client.Schedule]{Items: []client.Schedule{}, Next: p.Next}
	for _, row := range p.Items {
		if snapshot.Status(row.Status).Closed() {
			continue
		}
		snap, err := s.Operator.Snapshot(ctx, row.ID)
		if err != nil {
			return nil, unknownInstance(err, row.ID)
		}
		if x, ok := toSchedule(snap); ok {
			out.Items = append(out.Items, x)
		}
	}
	return ok(out), nil
}

// toSchedule makes a document of a schedule instance; ok is false for another.
func toSchedule(snap snapshot.Snapshot) (client.Schedule, bool) {
	if snap.Schedule == nil {
		return client.Schedule{}, false
	}
	x := client.Schedule{
		InstanceID: snap.InstanceID, Definition: snap.Definition.Name, Version: snap.Definition.Version,
		Status: string(snap.Status), Ticks: snap.Schedule.Generation*schedule.MaxGeneration + snap.Schedule.Ticks, Missed: snap.Schedule.Missed,
	}
	if w, waits := snap.Primary(); waits {
		kind, _, _ := strings.Cut(strings.TrimPrefix(w.Pointer, "/schedule/"), "/")
		x.Kind = kind
		if w.Kind == snapshot.WaitTimer {
			x.Next = utc(snap.Schedule.Due)
		}
	}
	return x, true
}
