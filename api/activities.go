package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// activityAPI is what applications note of instances.
type activityAPI struct{ instanceAPI }

func (s activityAPI) activityOperations(h huma.API) {
	s.timelineOperations(h)
	const path, tag = "/v1/instances/{id}/activities", "activities"
	attach := operation("attach-activity", http.MethodPost, path, tag, "Note something of an instance", http.StatusNotFound, http.StatusConflict)
	attach.Description = "What is noted is the application's own: no node reads it. Idempotent by id: a repeat answers 200 with what is there."
	attach.DefaultStatus = http.StatusCreated
	register(s.service, h, attach, s.attach)
	register(s.service, h, operation("list-activities", http.MethodGet, path, tag,
		"List what applications have noted of an instance, oldest first", http.StatusNotFound), s.listActivities)
	register(s.service, h, operation("get-activity", http.MethodGet, path+"/{activity}", tag,
		"Show an activity", http.StatusNotFound), s.getActivity)
	register(s.service, h, operation("update-activity", http.MethodPost, path+"/{activity}/update", tag,
		"Say how an activity stands now", http.StatusNotFound, http.StatusConflict), s.update)
	register(s.service, h, operation("freeze-activity", http.MethodPost, path+"/{activity}/freeze", tag,
		"Freeze an activity: nobody changes it any more", http.StatusNotFound, http.StatusConflict), s.freeze)
}

// ByActivity names an activity.
type ByActivity struct {
	ByID
	Activity string `path:"activity" maxLength:"128"`
}

type attachInput struct {
	ByID
	Caller
	Body client.AttachRequest
}

func (s activityAPI) attach(ctx context.Context, in *attachInput) (*answer[client.Activity], error) {
	a, isNew, err := s.Activities.Attach(ctx, backend.Activity{
		InstanceID: in.ID, ID: in.Body.ID, Name: in.Body.Name, Status: in.Body.Status, Data: in.Body.Data, UpdatedBy: in.Actor,
	})
	if err != nil {
		return nil, err
	}
	return created(toActivity(a), isNew), nil
}

type listActivitiesInput struct {
	ByID
	Paging
}

func (s activityAPI) listActivities(ctx context.Context, in *listActivitiesInput) (*answer[client.Page[client.Activity]], error) {
	p, err := s.Reader.Activities.Activities(ctx, in.ID, in.After, in.Limit)
	if err == nil && len(p.Items) == 0 {
		_, err = s.Reader.Instances.Instance(ctx, in.ID)
	}
	if err != nil {
		return nil, unknownInstance(err, in.ID)
	}
	return ok(client.Page[client.Activity]{Items: convert(p.Items, toActivity), Next: p.Next}), nil
}

func (s activityAPI) getActivity(ctx context.Context, in *ByActivity) (*answer[client.Activity], error) {
	a, err := s.Reader.Activities.Activity(ctx, in.ID, in.Activity)
	if err != nil {
		return nil, missing(err, "activity.unknown", "instance %s has no activity %s", clip(in.ID), clip(in.Activity))
	}
	return ok(toActivity(a)), nil
}

type updateActivityInput struct {
	ByActivity
	Caller
	Body client.UpdateActivityRequest
}

func (s activityAPI) update(ctx context.Context, in *updateActivityInput) (*answer[client.Activity], error) {
	a, err := s.Activities.Change(ctx, backend.ActivityChange{
		InstanceID: in.ID, ID: in.Activity, Version: in.Body.Version, Status: in.Body.Status, Data: in.Body.Data, Actor: in.Actor,
	})
	return ok(toActivity(a)), err
}

type freezeActivityInput struct {
	ByActivity
	Caller
	Body client.FreezeActivityRequest
}

func (s activityAPI) freeze(ctx context.Context, in *freezeActivityInput) (*answer[client.Activity], error) {
	a, err := s.Activities.Change(ctx, backend.ActivityChange{InstanceID: in.ID, ID: in.Activity, Version: in.Body.Version, Freeze: true, Actor: in.Actor})
	return ok(toActivity(a)), err
}

func toActivity(a backend.Activity) client.Activity {
	return client.Activity{
		InstanceID: a.InstanceID, ID: a.ID, Name: a.Name, Status: a.Status, Data: document(a.Data), Version: a.Version,
		CreatedAt: a.CreatedAt.UTC(), CreatedBy: a.CreatedBy, UpdatedAt: a.UpdatedAt.UTC(), UpdatedBy: a.UpdatedBy, FrozenAt: utc(a.FrozenAt),
	}
}
