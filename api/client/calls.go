package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const instances, tasks, deadLetters, definitions = "/v1/instances", "/v1/tasks", "/v1/dead-letters", "/v1/definitions"

// Publish publishes a definition's source; file names it in findings. created
// is false when the same one was published before.
func (c definitionCalls) Publish(ctx context.Context, file string, source []byte) (d Definition, created bool, err error) {
	status, err := c.send(ctx, request{
		method: http.MethodPost, path: definitions, query: values("file", file), body: source, into: &d,
		headers: map[string]string{"Content-Type": "application/yaml"},
	})
	return d, status == http.StatusCreated, err
}

// Definitions lists what is published, in order of name and version.
func (c definitionCalls) Definitions(ctx context.Context, l List) (Page[Definition], error) {
	return get[Page[Definition]](ctx, c.caller, definitions, l.in(url.Values{}))
}

// Versions lists the versions of a definition, at least one, the last published last; name is
// namespace/name. Problem: definition.unknown.
func (c definitionCalls) Versions(ctx context.Context, name string) ([]Definition, error) {
	p, err := get[Page[Definition]](ctx, c.caller, definitions+"/"+named(name), nil)
	return p.Items, err
}

// named is a name, namespace/name, as parts of a path, of which no letter is one of an address.
func named(name string) string {
	namespace, rest, ok := strings.Cut(name, "/")
	if !ok {
		return url.PathEscape(name)
	}
	return url.PathEscape(namespace) + "/" + url.PathEscape(rest)
}

// Schedules lists the schedules of definitions, the last set up first;
// definition "" lists all.
func (c definitionCalls) Schedules(ctx context.Context, definition string, l List) (Page[Schedule], error) {
	return get[Page[Schedule]](ctx, c.caller, "/v1/schedules", l.in(values("definition", definition)))
}

// Source returns what the author of a definition wrote; name is
// namespace/name.
func (c definitionCalls) Source(ctx context.Context, name, version string) ([]byte, error) {
	return get[[]byte](ctx, c.caller, definitions+"/"+named(name)+"/"+url.PathEscape(version)+"/source", nil)
}

// Start begins an instance, and waits up to d until it is closed or faulted.
// created is false when the same request began it before.
func (c instanceCalls) Start(ctx context.Context, s StartRequest, d time.Duration) (i InstanceDetail, created bool, err error) {
	r, err := jsonRequest(instances, s, &i)
	if err != nil {
		return i, false, err
	}
	r.query = wait(d)
	status, err := c.send(ctx, r)
	return i, status == http.StatusCreated, err
}

// InstanceQuery selects instances. Empty fields do not restrict.
type InstanceQuery struct {
	Definition, Version string
	Status, BusinessKey string
	Parent              string // the instance that started them
	ErrorCode, Text     string // type of the error that they stand at, or its part behind the last /; in its words
	OlderThan           string // a duration: that have not visibly changed for so long
	Where               string // a filter: amount > 1000 and state = "Review"
	OrderBy             string // a search attribute, with - before it the largest value first; "" = newest start first
	List
}

// Instances lists instances.
func (c instanceCalls) Instances(ctx context.Context, q InstanceQuery) (Page[Instance], error) {
	return get[Page[Instance]](ctx, c.caller, instances, q.in(values("definition", q.Definition, "version", q.Version, "status", q.Status, "businessKey", q.BusinessKey,
		"parent", q.Parent, "errorCode", q.ErrorCode, "text", q.Text, "olderThan", q.OlderThan, "where", q.Where, "orderBy", q.OrderBy)))
}

// Instance returns one instance.
func (c instanceCalls) Instance(ctx context.Context, id string) (InstanceDetail, error) {
	return get[InstanceDetail](ctx, c.caller, instances+"/"+url.PathEscape(id), nil)
}

// InstanceAt returns an instance as it was after the turn of a position of its stream,
// without what was pending then.
func (c instanceCalls) InstanceAt(ctx context.Context, id string, position int64) (InstanceDetail, error) {
	return get[InstanceDetail](ctx, c.caller, instances+"/"+url.PathEscape(id)+"/at/"+strconv.FormatInt(position, 10), nil)
}

// Why says why an instance does not move, and what would move it.
func (c instanceCalls) Why(ctx context.Context, id string) (Why, error) {
	return get[Why](ctx, c.caller, instances+"/"+url.PathEscape(id)+"/why", nil)
}

// Stream returns the messages of an instance behind a position, in order.
func (c instanceCalls) Stream(ctx context.Context, id string, after int64, limit int) (Page[Entry], error) {
	l := List{Limit: limit}
	if after > 0 {
		l.After = strconv.FormatInt(after, 10)
	}
	return get[Page[Entry]](ctx, c.caller, instances+"/"+url.PathEscape(id)+"/stream", l.in(url.Values{}))
}

// Signal says something to one instance; it is durable when Signal returns.
func (c instanceCalls) Signal(ctx context.Context, id string, s SignalRequest) (Accepted, error) {
	out, _, err := post[Accepted](ctx, c.caller, instances+"/"+url.PathEscape(id)+"/signals", s)
	return out, err
}

// Trigger tells what a reference names of an event, and begins its instance
// when there is none. definition is environment/definition. A request without a
// RequestID is not repeated safely.
func (c instanceCalls) Trigger(ctx context.Context, definition, reference string, t TriggerRequest) (Triggered, error) {
	out, _, err := post[Triggered](ctx, c.caller, lifecycle(definition, reference)+"/events", t)
	return out, err
}

// Lifecycle returns in which state the instance of a reference is.
func (c instanceCalls) Lifecycle(ctx context.Context, definition, reference string) (Lifecycle, error) {
	return get[Lifecycle](ctx, c.caller, lifecycle(definition, reference), nil)
}

func lifecycle(definition, reference string) string {
	return "/v1/lifecycles/" + named(definition) + "/" + url.PathEscape(reference)
}

// Acknowledge says what became of a command that a consumer got, by its place
// in the stream of an instance; it is durable when Acknowledge returns.
func (c instanceCalls) Acknowledge(ctx context.Context, id string, position int64, a AckRequest) (Acknowledged, error) {
	out, _, err := post[Acknowledged](ctx, c.caller, command(id, position)+"/ack", a)
	return out, err
}

func command(id string, position int64) string {
	return instances + "/" + url.PathEscape(id) + "/commands/" + strconv.FormatInt(position, 10)
}

// Operate does what an operator asks. Where the Disposition is queued, a node with the
// code of the instance has yet to do it.
func (c instanceCalls) Operate(ctx context.Context, id string, o OperationRequest) (InstanceDetail, error) {
	out, _, err := post[InstanceDetail](ctx, c.caller, instances+"/"+url.PathEscape(id)+"/operations", o)
	return out, err
}

// Event publishes a CloudEvent in structured JSON, and returns how many
// instances it reached.
func (c instanceCalls) Event(ctx context.Context, event []byte) (int, error) {
	var out Reached
	_, err := c.send(ctx, request{
		method: http.MethodPost, path: "/v1/events", body: event, into: &out,
		headers: map[string]string{"Content-Type": "application/cloudevents+json"},
	})
	return out.Reached, err
}

// TaskQuery selects tasks. Empty fields do not restrict; User and Groups select
// what that person may see.
type TaskQuery struct {
	Status     string // "" = open: ready or reserved; all: those that have ended, too
	InstanceID string
	Assignee   string
	User       string   // the user's list: assigned to them, or theirs or their groups' to claim
	Groups     []string // without a user: what a member of one may claim
	List
}

// Tasks lists tasks, most urgent first.
func (c taskCalls) Tasks(ctx context.Context, q TaskQuery) (Page[Task], error) {
	v := values("status", q.Status, "instance", q.InstanceID, "assignee", q.Assignee, "user", q.User)
	for _, g := range q.Groups {
		v.Add("group", g)
	}
	return get[Page[Task]](ctx, c.caller, tasks, q.in(v))
}

// Task returns one task.
func (c taskCalls) Task(ctx context.Context, id string) (TaskDetail, error) {
	return get[TaskDetail](ctx, c.caller, tasks+"/"+url.PathEscape(id), nil)
}

// Claim reserves a task for a user.
func (c taskCalls) Claim(ctx context.Context, id string, r ClaimRequest) (TaskDetail, error) {
	out, _, err := post[TaskDetail](ctx, c.caller, tasks+"/"+url.PathEscape(id)+"/claim", r)
	return out, err
}

// Release gives a task back to its candidates.
func (c taskCalls) Release(ctx context.Context, id string, r ReleaseRequest) (TaskDetail, error) {
	out, _, err := post[TaskDetail](ctx, c.caller, tasks+"/"+url.PathEscape(id)+"/release", r)
	return out, err
}

// Delegate hands a task on to another user.
func (c taskCalls) Delegate(ctx context.Context, id string, r DelegateRequest) (TaskDetail, error) {
	out, _, err := post[TaskDetail](ctx, c.caller, tasks+"/"+url.PathEscape(id)+"/delegate", r)
	return out, err
}

// Reassign gives a task to a user, whoever has it; it is an administrator's.
func (c taskCalls) Reassign(ctx context.Context, id string, r ReassignRequest) (TaskDetail, error) {
	out, _, err := post[TaskDetail](ctx, c.caller, tasks+"/"+url.PathEscape(id)+"/reassign", r)
	return out, err
}

// ClaimNext reserves the most urgent tasks that a user may do, and returns
// them; none when there is nothing to do.
func (c taskCalls) ClaimNext(ctx context.Context, r ClaimNextRequest) (Page[Task], error) {
	out, _, err := post[Page[Task]](ctx, c.caller, tasks+"/claim-next", r)
	return out, err
}

// Complete answers a task. A second completion is the problem task.completed,
// and changes nothing.
func (c taskCalls) Complete(ctx context.Context, id string, r CompleteRequest) (TaskDetail, error) {
	out, _, err := post[TaskDetail](ctx, c.caller, tasks+"/"+url.PathEscape(id)+"/complete", r)
	return out, err
}

// Queues says how full the queues are.
func (c operatorCalls) Queues(ctx context.Context) ([]Queue, error) {
	p, err := get[Page[Queue]](ctx, c.caller, "/v1/queues", nil)
	return p.Items, err
}

// Targets says where the node sends commands, with circuit breakers and what
// waits.
func (c operatorCalls) Targets(ctx context.Context) ([]Target, error) {
	p, err := get[Page[Target]](ctx, c.caller, "/v1/targets", nil)
	return p.Items, err
}

// ResetTarget closes the circuit breaker of a target on the node.
func (c operatorCalls) ResetTarget(ctx context.Context, name string) error {
	r, err := jsonRequest("/v1/targets/reset", ResetTargetRequest{Target: name}, nil)
	if err == nil {
		_, err = c.send(ctx, r)
	}
	return err
}
