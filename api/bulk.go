package api

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	jsonv2 "github.com/go-json-experiment/json"

	"github.com/aqueduct-engine/aqueduct/access"
	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/principal"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// Bulk does to many instances or dead letters what an operator asks.
type Bulk interface {
	Plan(ctx context.Context, asked *backend.BulkAsked, actor string) (id string, err error)
	Run(ctx context.Context, id string, begin bool, actor string) error
	Stop(ctx context.Context, id, actor string) error
}

// bulkAPI is what operators do to many at once.
type bulkAPI struct {
	instanceAPI
	counts *counts
}

// counts of plans of which nothing is under way are kept: a list of plans is looked at every few
// seconds, and a plan may have as many items as backend.MaxBulk. A plan has another version
// before its items change again.
type counts struct {
	mu   sync.Mutex
	kept map[planVersion][]backend.BulkCount
}

type planVersion struct {
	id      string
	version int64
}

const (
	maxCounts = 1000      // plans whose counts are kept
	stepOver  = time.Hour // after the last change of a plan that does not run no step of a run is at its items any more
)

// of is how many items of a plan have become what.
func (c *counts) of(ctx context.Context, plans backend.BulkReader, b *backend.Bulk, now time.Time) ([]backend.BulkCount, error) {
	final := b.Status == backend.BulkPlanned || b.Status == backend.BulkDone || b.Status != backend.BulkRunning && now.Sub(b.UpdatedAt) > stepOver
	if !final {
		return plans.BulkCounts(ctx, b.ID)
	}
	key := planVersion{b.ID, b.Version}
	c.mu.Lock()
	found, ok := c.kept[key]
	c.mu.Unlock()
	if ok {
		return found, nil
	}
	found, err := plans.BulkCounts(ctx, b.ID)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.kept) >= maxCounts {
		clear(c.kept)
	}
	c.kept[key] = found
	return found, nil
}

func (s bulkAPI) bulkOperations(h huma.API) {
	const path, tag = "/v1/bulk", "bulk"
	plan := operation("plan-bulk", http.MethodPost, path, tag, "Find what an operation on many is of, and keep it as a plan", http.StatusNotFound)
	plan.Description = "Nothing is done to what is found. A run of the plan does no more than this: what has changed since is skipped."
	plan.DefaultStatus = http.StatusCreated
	register(s.service, h, plan, s.plan)
	register(s.service, h, operation("list-bulk", http.MethodGet, path, tag, "List plans, newest first"), s.listBulk)
	register(s.service, h, operation("get-bulk", http.MethodGet, path+"/{id}", tag, "Show a plan, and how far it is", http.StatusNotFound), s.getBulk)
	register(s.service, h, operation("list-bulk-items", http.MethodGet, path+"/{id}/items", tag,
		"List what a plan is of, with what has become of it", http.StatusNotFound), s.listBulkItems)
	run := operation("run-bulk", http.MethodPost, path+"/{id}/run", tag, "Go on with a plan for some seconds", http.StatusNotFound, http.StatusConflict)
	run.Description = "While its status is running, the same request without begin goes on. Each item is done once, however often, and by how many, a plan is run; " +
		"what a node that died was at is looked up. Each has an audit of its own, in the name of who has sent the request."
	register(s.service, h, run, s.runBulk)
	register(s.service, h, operation("stop-bulk", http.MethodPost, path+"/{id}/stop", tag,
		"End a run: what is done stays done", http.StatusNotFound, http.StatusConflict), s.stopBulk)
}

// single is the operation of the API that a plan repeats: who may not do it to one may
// not do it to many.
func single(asked *backend.BulkAsked) string {
	switch asked.Operation {
	case backend.BulkMigrate:
		return "migrate-instances"
	case backend.BulkReplay:
		return "replay-dead-letter"
	case backend.BulkDiscard:
		return "discard-dead-letter"
	}
	return operateInstance
}

// mayEach refuses a plan to who may not do to one what it does to many.
func mayEach(ctx context.Context, asked *backend.BulkAsked) error {
	who, each := principal.Of(ctx), single(asked)
	if len(who.Roles) == 0 || access.May(each, who.Roles) {
		return nil
	}
	return problem.New(problem.Denied, "access.denied", "%s may not do %s, and so not to many", who.Name, each)
}

type planBulkInput struct {
	Caller
	Body client.BulkRequest
}

func (s bulkAPI) plan(ctx context.Context, in *planBulkInput) (*answer[client.BulkPlan], error) {
	b := &in.Body
	asked := &backend.BulkAsked{
		Operation: b.Operation, Definition: b.Definition, ErrorCode: b.ErrorCode, Text: b.Text,
		Version: b.Version, Status: b.Status, State: b.State, BusinessKey: b.BusinessKey, Parent: b.Parent, Where: b.Where,
		Queue: b.Queue, Instance: b.Instance, Limit: b.Limit, To: b.To, Pointers: b.Pointers,
	}
	var err error
	if asked.Before, err = s.before("/olderThan", b.OlderThan); err != nil {
		return nil, err
	}
	if err := mayEach(ctx, asked); err != nil {
		return nil, err
	}
	selection, err := asked.Selection()
	if err == nil && selection.Instances != nil {
		if err = s.searched(ctx, selection.Instances); err == nil {
			err = s.declared(ctx, selection.Instances)
		}
	}
	if err != nil {
		return nil, err
	}
	id, err := s.Bulk.Plan(ctx, asked, in.Actor)
	if err != nil {
		return nil, err
	}
	shown, err := s.getBulk(ctx, &ByID{id})
	if err == nil {
		shown.Status = http.StatusCreated
	}
	return shown, err
}

// before is the moment that is so long ago; zero for none.
func (s *service) before(where, ago string) (time.Time, error) {
	if ago == "" {
		return time.Time{}, nil
	}
	d, err := parseDuration(where, ago)
	return s.Now().Add(-d), err
}

func (s bulkAPI) getBulk(ctx context.Context, in *ByID) (*answer[client.BulkPlan], error) {
	b, err := s.Reader.Plans.Bulk(ctx, in.ID)
	if err != nil {
		return nil, unknownPlan(err, in.ID)
	}
	a := &answer[client.BulkPlan]{Status: http.StatusOK}
	if err := s.count(ctx, &b, &a.Body); err != nil {
		return nil, err
	}
	kinds, err := s.Reader.Plans.BulkKinds(ctx, b.ID)
	for _, k := range kinds {
		a.Body.Kinds = append(a.Body.Kinds, client.BulkKind{Kind: k.Kind, Items: k.Rows})
	}
	return a, err
}

func unknownPlan(err error, id string) error {
	return missing(err, "bulk.unknown", "there is no plan %s", clip(id))
}

func (s bulkAPI) listBulk(ctx context.Context, in *Paging) (*answer[client.Page[client.BulkPlan]], error) {
	p, err := s.Reader.Plans.Bulks(ctx, in.After, in.Limit)
	if err != nil {
		return nil, err
	}
	out := client.Page[client.BulkPlan]{Items: make([]client.BulkPlan, len(p.Items)), Next: p.Next}
	for i := range p.Items {
		if err := s.count(ctx, &p.Items[i], &out.Items[i]); err != nil {
			return nil, err
		}
	}
	return ok(out), nil
}

type listBulkItemsInput struct {
	ByID
	Paging
	Outcome string `query:"outcome" enum:"open,done,skipped,failed"`
}

func (s bulkAPI) listBulkItems(ctx context.Context, in *listBulkItemsInput) (*answer[client.Page[client.BulkItem]], error) {
	p, err := s.Reader.Plans.BulkItems(ctx, backend.BulkItemQuery{ID: in.ID, Outcome: in.Outcome, After: in.After, Limit: in.Limit})
	if err == nil && len(p.Items) == 0 {
		_, err = s.Reader.Plans.Bulk(ctx, in.ID)
	}
	if err != nil {
		return nil, unknownPlan(err, in.ID)
	}
	return ok(client.Page[client.BulkItem]{Items: convert(p.Items, toBulkItem), Next: p.Next}), nil
}

type runBulkInput struct {
	ByID
	Caller
	Body client.BulkRunRequest
}

func (s bulkAPI) runBulk(ctx context.Context, in *runBulkInput) (*answer[client.BulkPlan], error) {
	p, err := s.Reader.Plans.Bulk(ctx, in.ID)
	if err != nil {
		return nil, unknownPlan(err, in.ID)
	}
	if err := mayEach(ctx, &backend.BulkAsked{Operation: p.Operation}); err != nil {
		return nil, err
	}
	if err = s.Bulk.Run(ctx, in.ID, in.Body.Begin, in.Actor); err != nil {
		return nil, err
	}
	return s.getBulk(ctx, &in.ByID)
}

type stopBulkInput struct {
	ByID
	Caller
}

func (s bulkAPI) stopBulk(ctx context.Context, in *stopBulkInput) (*answer[client.BulkPlan], error) {
	if err := s.Bulk.Stop(ctx, in.ID, in.Actor); err != nil {
		return nil, err
	}
	return s.getBulk(ctx, &in.ByID)
}

// count shows a plan with how far it is.
func (s bulkAPI) count(ctx context.Context, b *backend.Bulk, p *client.BulkPlan) error {
	asked := &backend.BulkAsked{}
	if err := jsonv2.Unmarshal(b.Asked, asked); err != nil {
		return problem.Wrap(err, problem.Internal, "bulk.corrupt", "what plan %s was asked for", b.ID)
	}
	p.ID, p.Operation, p.Status, p.Before, p.Reason, p.More = b.ID, b.Operation, b.Status, utc(asked.Before), b.Reason, b.More != 0
	p.CreatedAt, p.CreatedBy, p.RunBy, p.EndedAt = b.CreatedAt.UTC(), b.CreatedBy, b.RunBy, utc(b.EndedAt)
	r := &p.Asked
	r.Operation, r.Definition, r.ErrorCode, r.Text, r.Version, r.Status, r.State = asked.Operation, asked.Definition, asked.ErrorCode, asked.Text, asked.Version, asked.Status, asked.State
	r.BusinessKey, r.Parent, r.Where, r.Queue, r.Instance, r.Limit, r.To, r.Pointers = asked.BusinessKey, asked.Parent, asked.Where, asked.Queue, asked.Instance, asked.Limit, asked.To, asked.Pointers
	found, err := s.counts.of(ctx, s.Reader.Plans, b, s.Now())
	for _, c := range found {
		p.Planned += c.Rows
		switch c.Outcome {
		case backend.BulkItemOpen:
			p.Open += c.Rows
		case backend.BulkItemDone:
			p.Done += c.Rows
		case backend.BulkItemSkipped:
			p.Skipped += c.Rows
		case backend.BulkItemFailed:
			p.Failed += c.Rows
		}
		if c.Code != "" {
			p.Why = append(p.Why, client.BulkCount{Outcome: c.Outcome, Code: c.Code, Items: c.Rows})
		}
	}
	return err
}

func toBulkItem(i backend.BulkItem) client.BulkItem {
	outcome := i.Outcome
	if outcome == "" {
		outcome = backend.BulkItemOpen
	}
	return client.BulkItem{No: i.No, ID: i.Target, Version: i.Version, Kind: i.Kind, Outcome: outcome, Code: i.Code, Detail: i.Detail, EndedAt: utc(i.EndedAt)}
}
