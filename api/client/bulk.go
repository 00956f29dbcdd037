package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

// Bulk does to many instances or dead letters what an operator asks.
type Bulk struct{ c *Client }

// NewBulk is what a client does to many at once.
func NewBulk(c *Client) Bulk { return Bulk{c} }

const bulk = "/v1/bulk"

func bulkOf(id string) string { return bulk + "/" + url.PathEscape(id) }

// Plan finds what an operation is of, and does nothing to it.
func (b Bulk) Plan(ctx context.Context, r BulkRequest) (BulkPlan, error) {
	out, _, err := post[BulkPlan](ctx, b.c.caller, bulk, r)
	return out, err
}

// Get returns a plan, with how far it is.
func (b Bulk) Get(ctx context.Context, id string) (BulkPlan, error) {
	return get[BulkPlan](ctx, b.c.caller, bulkOf(id), nil)
}

// List lists plans, newest first.
func (b Bulk) List(ctx context.Context, l List) (Page[BulkPlan], error) {
	return get[Page[BulkPlan]](ctx, b.c.caller, bulk, l.in(url.Values{}))
}

// Items lists what a plan is of; outcome "" is any.
func (b Bulk) Items(ctx context.Context, id, outcome string, l List) (Page[BulkItem], error) {
	return get[Page[BulkItem]](ctx, b.c.caller, bulkOf(id)+"/items", l.in(values("outcome", outcome)))
}

// Run goes on with a plan for a while. With Begin it is begun, or begun again where it
// was stopped or nobody goes on with it; the same request without goes on until its
// status is done or stopped.
func (b Bulk) Run(ctx context.Context, id string, r BulkRunRequest) (BulkPlan, error) {
	out, _, err := post[BulkPlan](ctx, b.c.caller, bulkOf(id)+"/run", r)
	return out, err
}

// Stop ends a run: what is done stays done.
func (b Bulk) Stop(ctx context.Context, id string) (BulkPlan, error) {
	var out BulkPlan
	_, err := b.c.send(ctx, request{method: http.MethodPost, path: bulkOf(id) + "/stop", into: &out})
	return out, err
}

// BulkRequest asks for an operation on many: a plan of what fits its filter, all of which
// an item fits.
type BulkRequest struct {
	Operation string `json:"operation" enum:"retry,retry-same,retry-new,suspend,resume,run-now,cancel,compensate,migrate,replay,discard" doc:"Of instances; replay and discard of dead letters."`

	Definition string `json:"definition,omitempty" maxLength:"256"`
	ErrorCode  string `json:"errorCode,omitempty" maxLength:"512" doc:"Type of the error that instances stand at, or its part behind the last /; reason of dead letters."`
	Text       string `json:"text,omitempty" maxLength:"256" doc:"In the words of the error, or of the reason."`
	OlderThan  string `json:"olderThan,omitempty" maxLength:"32" doc:"Instances that have not visibly changed for so long; dead letters that died so long ago." example:"1h"`

	Version     string `json:"version,omitempty" maxLength:"256" doc:"Of instances: that they run."`
	Status      string `json:"status,omitempty" enum:"pending,running,waiting,suspended,faulted" doc:"Of instances. Of a retry faulted, of a resume suspended."`
	State       string `json:"state,omitempty" maxLength:"256" doc:"Of instances: where they are."`
	BusinessKey string `json:"businessKey,omitempty" maxLength:"256" doc:"Of instances."`
	Parent      string `json:"parent,omitempty" maxLength:"128" doc:"Of instances: that this one started."`
	Where       string `json:"where,omitempty" maxLength:"4096" doc:"Of instances: conditions on search attributes and fields, as in a list of them."`

	Queue    string `json:"queue,omitempty" enum:"signal,schedule,command" doc:"Of dead letters."`
	Instance string `json:"instance,omitempty" maxLength:"128" doc:"Of dead letters: of this instance."`

	Limit    int               `json:"limit,omitempty" minimum:"1" maximum:"100000" doc:"Items at most; absent: as many as a plan may have."`
	To       string            `json:"to,omitempty" maxLength:"256" doc:"Of a migration: the version to move to."`
	Pointers map[string]string `json:"pointers,omitempty" doc:"Of a migration: old JSON pointer to new one."`
}

// BulkRunRequest goes on with a plan.
type BulkRunRequest struct {
	Begin bool `json:"begin,omitempty" doc:"Begin it, or begin it again where it was stopped; absent: go on while it runs."`
}

// BulkPlan is what is to be done to many, and how far it is. Planned is Done, Skipped,
// Failed and Open together.
type BulkPlan struct {
	ID        string      `json:"id"`
	Operation string      `json:"operation"`
	Status    string      `json:"status" enum:"planning,planned,running,stopped,done"`
	Asked     BulkRequest `json:"asked" doc:"What was asked for. olderThan is the moment before."`
	Before    time.Time   `json:"before,omitzero" doc:"The moment that olderThan was."`
	Reason    string      `json:"reason,omitempty" doc:"Why it was made."`
	CreatedAt time.Time   `json:"createdAt"`
	CreatedBy string      `json:"createdBy,omitempty"`
	RunBy     string      `json:"runBy,omitempty" doc:"Who has it run last."`
	EndedAt   time.Time   `json:"endedAt,omitzero" doc:"Since when nothing of it is open."`
	More      bool        `json:"more,omitempty" doc:"More was found than it may have: the others are in no plan."`

	Planned int         `json:"planned" doc:"Items in it."`
	Done    int         `json:"done"`
	Skipped int         `json:"skipped" doc:"Not what they were when the plan was made."`
	Failed  int         `json:"failed" doc:"Refused."`
	Open    int         `json:"open" doc:"Not done yet."`
	Why     []BulkCount `json:"why,omitempty" doc:"Items that were skipped or failed, or done otherwise than at once, by code."`
	Kinds   []BulkKind  `json:"kinds,omitempty" doc:"Items by what they were when the plan was made, the most frequent kinds."`
}

// BulkCount is how many items have an outcome for a reason.
type BulkCount struct {
	Outcome string `json:"outcome"`
	Code    string `json:"code"`
	Items   int    `json:"items"`
}

// BulkKind is how many items were of a kind.
type BulkKind struct {
	Kind  string `json:"kind" doc:"Type of the error that instances stood at, else their status; reason of dead letters."`
	Items int    `json:"items"`
}

// BulkItem is one instance or dead letter of a plan.
type BulkItem struct {
	No      int64     `json:"no" doc:"Place in the plan, from 1."`
	ID      string    `json:"id" doc:"Of the instance or dead letter."`
	Version int64     `json:"version,omitempty" doc:"Of the instance when the plan was made: of another it is skipped."`
	Kind    string    `json:"kind,omitempty" doc:"Type of the error that the instance stood at, else its status; reason of the dead letter."`
	Outcome string    `json:"outcome" enum:"open,done,skipped,failed"`
	Code    string    `json:"code,omitempty" doc:"Why it was not done."`
	Detail  string    `json:"detail,omitempty"`
	EndedAt time.Time `json:"endedAt,omitzero"`
}
