package api

import (
	"context"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/principal"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// Who may do something in some namespaces alone hears of others what they would hear of
// what is not there. Two things see to it: what an operation is about, by its path, is
// looked up first, and rows are read by readers that know the scope of who asks. An
// operation for which both are not enough is refused by package access.

// scopeOf is to which namespaces who asks is limited.
func scopeOf(ctx context.Context) backend.Scope { return principal.Of(ctx).Scope }

// within refuses what is about something outside of the scope of who asks as what is not
// there, and what is about a task that they may not read.
func (e *endpoint) within(ctx huma.Context) error {
	asks, who, id := ctx.Context(), principal.Of(ctx.Context()), ctx.Param("id")
	scope := backend.Scope(who.Scope)
	isTask := strings.HasPrefix(e.op.Path, "/v1/tasks/{id}")
	if scope == nil && !(isTask && onlyTheirs(who)) {
		return nil
	}
	var err error
	name := strings.TrimPrefix(ctx.Param("namespace"), definition.PolicyPrefix) + ctx.Param("environment") + "/" + ctx.Param("name") + ctx.Param("definition")
	switch path := e.op.Path; {
	case isTask:
		_, err = e.readable(asks, id)
	case strings.HasPrefix(path, "/v1/instances/{id}"):
		_, err = e.Reader.Instances.Instance(asks, id)
		err = unknownInstance(err, id)
	case strings.HasPrefix(path, "/v1/dead-letters/{id}"):
		_, err = e.Reader.DeadLetters.DeadLetter(asks, id)
		err = unknownDeadLetter(err, id)
	case !strings.Contains(path, "{") || scope.Has(name): // what a list shows, its reader says
	case strings.HasPrefix(path, "/v1/policies/"):
		err = problem.New(problem.NotFound, "policy.unknown", "%s has no policy", clip(name))
	default:
		err = unknownDefinition(name)
	}
	if err != nil {
		err = e.refuse(asks, e.op.OperationID, err)
	}
	return err
}

func unknownDefinition(name string) error {
	return problem.New(problem.NotFound, "definition.unknown", "no definition is named %s", clip(name))
}

// scoped are readers that know the scope of who asks.
func (r Reader) scoped(s seal) Reader {
	in := &scopedInstances{r.Instances, s}
	r.Instances, r.Tasks, r.Moments = in, &scopedTasks{r.Tasks, s}, &scopedMoments{r.Moments}
	r.Streams, r.DeadLetters, r.Activities = &scopedStreams{r.Streams, in}, &scopedDeadLetters{r.DeadLetters, in, s}, &scopedActivities{r.Activities, in}
	return r
}

type scopedInstances struct {
	backend.InstanceReader
	seal seal
}

func (s *scopedInstances) Instance(ctx context.Context, id string) (projections.Instance, error) {
	i, err := s.InstanceReader.Instance(ctx, id)
	return i, inScope(ctx, i.Definition, err)
}

func (s *scopedInstances) Started(ctx context.Context, definition, businessKey, startKey string) (projections.Instance, error) {
	i, err := s.InstanceReader.Started(ctx, definition, businessKey, startKey)
	return i, inScope(ctx, i.Definition, err)
}

// inScope says that what is of a definition is not there for who asks; a caller that gets
// an error looks at nothing else.
func inScope(ctx context.Context, definition string, err error) error {
	if err == nil && !scopeOf(ctx).Has(definition) {
		return store.ErrNotFound
	}
	return err
}

func (s *scopedInstances) Instances(ctx context.Context, q backend.InstanceQuery) (backend.Page[projections.Instance], error) {
	q.Scope = scopeOf(ctx)
	return sealed(ctx, s.seal, "instances", &q.After, func() (backend.Page[projections.Instance], error) { return s.InstanceReader.Instances(ctx, q) })
}

func (s *scopedInstances) Attributes(ctx context.Context, id string) ([]projections.Attribute, error) {
	if err := s.there(ctx, id); err != nil {
		return nil, err
	}
	return s.InstanceReader.Attributes(ctx, id)
}

// there says that an instance is not there for who asks.
func (s *scopedInstances) there(ctx context.Context, id string) error {
	if scopeOf(ctx) == nil {
		return nil
	}
	_, err := s.Instance(ctx, id)
	return err
}

type scopedTasks struct {
	backend.TaskReader
	seal seal
}

func (s *scopedTasks) Task(ctx context.Context, id string) (projections.Task, error) {
	t, err := s.TaskReader.Task(ctx, id)
	return t, inScope(ctx, t.Definition, err)
}

func (s *scopedTasks) Tasks(ctx context.Context, q backend.TaskQuery) (backend.Page[projections.Task], error) {
	q.Scope = scopeOf(ctx)
	return sealed(ctx, s.seal, "tasks", &q.After, func() (backend.Page[projections.Task], error) { return s.TaskReader.Tasks(ctx, q) })
}

type scopedMoments struct{ backend.MomentReader }

func (s *scopedMoments) Moments(ctx context.Context, q backend.MomentQuery) (backend.Page[backend.Moment], error) {
	q.Scope = scopeOf(ctx)
	return s.MomentReader.Moments(ctx, q)
}

type scopedStreams struct {
	backend.StreamReader
	instances *scopedInstances
}

func (s *scopedStreams) Stream(ctx context.Context, id string, after int64, limit int) ([]projections.Entry, error) {
	if err := s.instances.there(ctx, id); err != nil {
		return nil, err
	}
	return s.StreamReader.Stream(ctx, id, after, limit)
}

func (s *scopedStreams) Pending(ctx context.Context, id string, limit int) ([]projections.Entry, error) {
	if err := s.instances.there(ctx, id); err != nil {
		return nil, err
	}
	return s.StreamReader.Pending(ctx, id, limit)
}

func (s *scopedStreams) Received(ctx context.Context, id, signalID string) (projections.Entry, error) {
	if err := s.instances.there(ctx, id); err != nil {
		return projections.Entry{}, err
	}
	return s.StreamReader.Received(ctx, id, signalID)
}

func (s *scopedStreams) Commands(ctx context.Context, q backend.CommandQuery) (backend.Page[projections.Entry], error) {
	q.Scope = scopeOf(ctx)
	return s.StreamReader.Commands(ctx, q)
}

type scopedDeadLetters struct {
	backend.DeadLetterReader
	instances *scopedInstances
	seal      seal
}

func (s *scopedDeadLetters) DeadLetter(ctx context.Context, id string) (projections.DeadLetter, error) {
	l, err := s.DeadLetterReader.DeadLetter(ctx, id)
	if err == nil {
		err = s.instances.there(ctx, l.InstanceID)
	}
	return l, err
}

func (s *scopedDeadLetters) DeadLetters(ctx context.Context, q backend.DeadLetterQuery) (backend.Page[projections.DeadLetter], error) {
	q.Scope = scopeOf(ctx)
	return sealed(ctx, s.seal, "dead letters", &q.After, func() (backend.Page[projections.DeadLetter], error) { return s.DeadLetterReader.DeadLetters(ctx, q) })
}

type scopedActivities struct {
	backend.ActivityReader
	instances *scopedInstances
}

func (s *scopedActivities) Activity(ctx context.Context, instanceID, id string) (backend.Activity, error) {
	if err := s.instances.there(ctx, instanceID); err != nil {
		return backend.Activity{}, err
	}
	return s.ActivityReader.Activity(ctx, instanceID, id)
}

func (s *scopedActivities) Activities(ctx context.Context, instanceID, after string, limit int) (backend.Page[backend.Activity], error) {
	if err := s.instances.there(ctx, instanceID); err != nil {
		return backend.Page[backend.Activity]{}, err
	}
	return s.ActivityReader.Activities(ctx, instanceID, after, limit)
}

type scopedDefinitions struct{ all Definitions }

func (s *scopedDefinitions) Definition(ctx context.Context, name, version string) (definition.Record, error) {
	if !scopeOf(ctx).Has(strings.TrimPrefix(name, definition.PolicyPrefix)) {
		return definition.Record{}, unknownDefinition(name)
	}
	return s.all.Definition(ctx, name, version)
}

func (s *scopedDefinitions) Versions(ctx context.Context, name string, after int) ([]definition.Record, error) {
	if !scopeOf(ctx).Has(strings.TrimPrefix(name, definition.PolicyPrefix)) {
		return nil, nil
	}
	return s.all.Versions(ctx, name, after)
}

// Definitions reads one namespace after the other, in the order of the names in them: those of
// one stand together, and those of shop-eu before those of shop, for a hyphen comes before the
// slash.
func (s *scopedDefinitions) Definitions(ctx context.Context, after string, limit int) ([]definition.Record, error) {
	scope, kind := scopeOf(ctx), ""
	if scope == nil {
		return s.all.Definitions(ctx, after, limit)
	}
	if strings.HasPrefix(after, definition.PolicyPrefix) {
		kind = definition.PolicyPrefix
	}
	list := []definition.Record{}
	for _, namespace := range slices.SortedFunc(slices.Values(scope), func(a, b string) int { return strings.Compare(a+"/", b+"/") }) {
		prefix := kind + namespace + "/"
		if after >= kind+namespace+"0" { // what comes after the slash: pages before have told all of it
			continue
		}
		found, err := s.all.Definitions(ctx, max(after, prefix), limit-len(list))
		if err != nil {
			return nil, err
		}
		for _, r := range found {
			if strings.HasPrefix(r.Name, prefix) {
				list = append(list, r)
			}
		}
		if len(list) == limit {
			break
		}
	}
	return list, nil
}
