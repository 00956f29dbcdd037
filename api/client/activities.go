package client

import (
	"context"
	"encoding/json"
	"net/url"
	"time"
)

// Activities is what an application notes of instances.
type Activities struct{ c *Client }

// NewActivities is what a client notes.
func NewActivities(c *Client) Activities { return Activities{c} }

func activitiesOf(instance string) string {
	return instances + "/" + url.PathEscape(instance) + "/activities"
}

// Attach notes something of an instance. A repeat with the same id changes nothing, and
// gives what is there.
func (a Activities) Attach(ctx context.Context, instance string, r AttachRequest) (Activity, error) {
	out, _, err := post[Activity](ctx, a.c.caller, activitiesOf(instance), r)
	return out, err
}

// List lists what was noted of an instance, oldest first.
func (a Activities) List(ctx context.Context, instance string, l List) (Page[Activity], error) {
	return get[Page[Activity]](ctx, a.c.caller, activitiesOf(instance), l.in(url.Values{}))
}

// Get returns one activity.
func (a Activities) Get(ctx context.Context, instance, id string) (Activity, error) {
	return get[Activity](ctx, a.c.caller, activitiesOf(instance)+"/"+url.PathEscape(id), nil)
}

// Update says how an activity stands now. One that another has changed meanwhile is the
// problem activity.version, and a frozen one activity.frozen.
func (a Activities) Update(ctx context.Context, instance, id string, r UpdateActivityRequest) (Activity, error) {
	out, _, err := post[Activity](ctx, a.c.caller, activitiesOf(instance)+"/"+url.PathEscape(id)+"/update", r)
	return out, err
}

// Freeze ends the changes of an activity.
func (a Activities) Freeze(ctx context.Context, instance, id string, r FreezeActivityRequest) (Activity, error) {
	out, _, err := post[Activity](ctx, a.c.caller, activitiesOf(instance)+"/"+url.PathEscape(id)+"/freeze", r)
	return out, err
}

// Activity is something that an application has noted of an instance. Nothing that a
// node decides depends on it.
type Activity struct {
	InstanceID string          `json:"instanceId"`
	ID         string          `json:"id"`
	Name       string          `json:"name"`
	Status     string          `json:"status,omitempty"`
	Data       json.RawMessage `json:"data,omitempty"`
	Version    int64           `json:"version" doc:"Counts its changes, from 1."`
	CreatedAt  time.Time       `json:"createdAt"`
	CreatedBy  string          `json:"createdBy,omitempty"`
	UpdatedAt  time.Time       `json:"updatedAt"`
	UpdatedBy  string          `json:"updatedBy,omitempty"`
	FrozenAt   time.Time       `json:"frozenAt,omitzero" doc:"Since when nobody can change it."`
}

// AttachRequest notes something of an instance.
type AttachRequest struct {
	ID     string          `json:"id" minLength:"1" maxLength:"128" doc:"The application's own, within the instance: a repeat changes nothing."`
	Name   string          `json:"name" minLength:"1" maxLength:"256" doc:"What it is."`
	Status string          `json:"status,omitempty" maxLength:"64" doc:"How it stands, in words of the application."`
	Data   json.RawMessage `json:"data,omitempty" doc:"Any JSON, 16 KiB at most."`
}

// UpdateActivityRequest says how an activity stands now.
type UpdateActivityRequest struct {
	Version int64           `json:"version" minimum:"1" doc:"That it has: of another the update is refused."`
	Status  *string         `json:"status,omitempty" maxLength:"64" doc:"Absent: as it is."`
	Data    json.RawMessage `json:"data,omitempty" doc:"In the place of what it has; null: none. Absent: as they are."`
}

// FreezeActivityRequest ends the changes of an activity.
type FreezeActivityRequest struct {
	Version int64 `json:"version" minimum:"1" doc:"That it has: of another the freeze is refused."`
}

// TimelineQuery selects what has happened to all instances of a business key, or to one:
// one of the two is given. Other empty fields do not restrict.
type TimelineQuery struct {
	BusinessKey, InstanceID string
	Definition              string
	Kinds                   []string // event, command, task, activity
	List
}

// Timeline tells what has happened, oldest first.
func (a Activities) Timeline(ctx context.Context, q TimelineQuery) (Page[Moment], error) {
	v := values("businessKey", q.BusinessKey, "instance", q.InstanceID, "definition", q.Definition)
	for _, kind := range q.Kinds {
		v.Add("kind", kind)
	}
	return get[Page[Moment]](ctx, a.c.caller, "/v1/timeline", q.in(v))
}

// Moment is something that has happened to an instance: an entry of its stream, a task, or
// an activity that an application has noted.
type Moment struct {
	At            time.Time `json:"at" doc:"When; of a task or an activity: when it was made."`
	BusinessKey   string    `json:"businessKey,omitempty"`
	Definition    string    `json:"definition"`
	InstanceID    string    `json:"instanceId"`
	Kind          string    `json:"kind" doc:"event or command: of the stream; task; activity: of an application."`
	Direction     string    `json:"direction,omitempty" doc:"Of the stream: in or out."`
	Position      int64     `json:"position,omitempty" doc:"In the stream."`
	TaskID        string    `json:"taskId,omitempty"`
	ActivityID    string    `json:"activityId,omitempty"`
	Name          string    `json:"name" doc:"Type of the entry, name of the task or activity."`
	Status        string    `json:"status,omitempty" doc:"How it stands now: of a command open, claimed, delivered or processed."`
	EndedAt       time.Time `json:"endedAt,omitzero" doc:"Of a command: when its result was applied; of a task: its end; of an activity: since when it is frozen."`
	Actor         string    `json:"actor,omitempty" doc:"Who did it; of a task who has or ended it, of an activity who changed it last."`
	Pointer       string    `json:"pointer,omitempty" doc:"Place in the definition."`
	Hook          string    `json:"hook,omitempty" enum:"onEnter,onExit,hooks" doc:"Of the stream: a hook did it, and in which field of its state or transition that stands."`
	CorrelationID string    `json:"correlationId,omitempty"`
	Attempts      int       `json:"attempts,omitempty"`
	LastError     string    `json:"lastError,omitempty"`
}
