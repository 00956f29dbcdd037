package service

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/aqueduct-engine/aqueduct/audit"
	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/operate"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/schedule"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
	jsonv2 "github.com/go-json-experiment/json"
)

// Bulk does to many instances or dead letters what an operator asks. A plan is what was
// found when it was made, each instance at its version, and a run does no more than the
// plan has: what has changed since is passed over. Each item is done as it would be by
// itself, by the same function and with the same audit, whose request is the plan's: by
// that it is known, after a crash or where two run one plan, that it has been done.
type Bulk struct {
	Bulk        backend.BulkPlans
	Plans       backend.BulkReader
	Audit       backend.AuditReader
	Operator    *Operator
	Migrator    *Migrator
	DeadLetters *DeadLetters
	Now         func() time.Time
}

// Limits of a run.
const (
	bulkStep    = 2 * time.Second // that one request goes on with a plan
	bulkBatch   = 50              // items whose outcomes share a commit; between two it is looked whether the plan was stopped
	bulkWorkers = 8               // items done at once
)

// Codes of items that are passed over.
const (
	codeGone     = "bulk.gone"     // the instance or dead letter is not there any more
	codeOver     = "bulk.changed"  // it has changed since the plan was made
	codeSchedule = "bulk.schedule" // the instance keeps a schedule
	codeHanded   = "bulk.queued"   // done, as far as a node without the code of the instance can
	maxItemText  = 1000
)

// Plan makes a plan of what is there now. Problems: bulk.operation, bulk.filter,
// bulk.migration, dead-letter.reason, definition.unknown, migration.invalid.
func (b *Bulk) Plan(ctx context.Context, asked *backend.BulkAsked, actor string) (id string, err error) {
	selection, err := asked.Selection()
	if err != nil {
		return "", err
	}
	if asked.Operation == backend.BulkDiscard { // as of one: what is gone is gone
		if err := reasoned(ctx); err != nil {
			return "", err
		}
	}
	if _, err := b.act(ctx, asked, actor); err != nil {
		return "", err
	}
	id = NewID()
	p, by := &backend.Bulk{ID: id, Operation: asked.Operation, Version: 1}, b.row(ctx, "plan-bulk", id, actor)
	p.Status, p.Reason, p.CreatedAt, p.CreatedBy, p.UpdatedAt = backend.BulkPlanning, by.Reason, b.Now(), who(by), b.Now()
	if p.Asked, err = json.Marshal(asked); err != nil {
		return "", problem.Wrap(err, problem.Invalid, "bulk.filter", "what was asked for is not JSON")
	}
	if err := b.Bulk.MakeBulk(ctx, *p); err != nil {
		return "", err
	}
	_, more, err := b.Bulk.SelectBulk(ctx, id, selection, cmp.Or(asked.Limit, backend.MaxBulk))
	if err != nil {
		return "", err
	}
	if more {
		p.More = 1
	}
	return id, b.change(ctx, p, backend.BulkPlanned, *by)
}

// row is the audit of what is done to a plan.
func (b *Bulk) row(ctx context.Context, action, id, actor string) *store.Audit {
	a := audit.As(audit.Row(ctx, b.Now(), action, id, ""), actor)
	return &a
}

// who is who has done something, in the words of the audit.
func who(a *store.Audit) string { return cmp.Or(a.User, a.Claimed, a.Kind) }

// change writes the next version of a plan.
func (b *Bulk) change(ctx context.Context, p *backend.Bulk, status string, by ...store.Audit) error {
	p.Status, p.UpdatedAt = status, b.Now()
	p.Version++
	return b.Bulk.ChangeBulk(ctx, *p, by...)
}

func (b *Bulk) find(ctx context.Context, id string) (*backend.Bulk, error) {
	p, err := b.Plans.Bulk(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		err = problem.Wrap(err, problem.NotFound, "bulk.unknown", "there is no plan %.64s", id)
	}
	return &p, err
}

// Stop has a run end: items under way are done to their end, and the others stay open.
// Problems: bulk.unknown, bulk.not-running.
func (b *Bulk) Stop(ctx context.Context, id, actor string) error {
	for {
		p, err := b.find(ctx, id)
		if err != nil || p.Status == backend.BulkStopped {
			return err
		}
		if p.Status != backend.BulkRunning {
			return problem.New(problem.Conflict, "bulk.not-running", "plan %s is %s", id, p.Status)
		}
		if err = b.change(ctx, p, backend.BulkStopped, *b.row(ctx, "stop-bulk", id, actor)); !errors.Is(err, store.ErrStale) {
			return err // else the next look says how it is
		}
	}
}

// Run goes on with a plan for bulkStep, or until nothing of it is open. With begin it is
// begun, or begun again where it was stopped; without, one that does not run is left as
// it is. Problems: bulk.unknown, bulk.not-planned, dead-letter.reason, and those of the
// store, after which what is open stays so.
func (b *Bulk) Run(ctx context.Context, id string, begin bool, actor string) error {
	p, err := b.begin(ctx, id, begin, actor)
	if err != nil || p.Status != backend.BulkRunning {
		return err
	}
	asked := &backend.BulkAsked{}
	if err := jsonv2.Unmarshal(p.Asked, asked); err != nil {
		return problem.Wrap(err, problem.Internal, "bulk.corrupt", "what plan %s was asked for", id)
	}
	act, err := b.act(ctx, asked, actor)
	if err != nil {
		return err
	}
	act = sparing(act, asked)
	r := &bulkRun{Bulk: b, plan: p, act: act, action: asked.Operation, actor: actor}
	r.because = "bulk " + id
	if said := cmp.Or(b.row(ctx, "", "", "").Reason, p.Reason); said != "" {
		r.because += ": " + said
	}
	return r.step(ctx)
}

// begin has a plan run, and says who has it run.
func (b *Bulk) begin(ctx context.Context, id string, begin bool, actor string) (*backend.Bulk, error) {
	for {
		p, err := b.find(ctx, id)
		if err != nil {
			return p, err
		}
		by := b.row(ctx, "run-bulk", id, actor)
		switch {
		case p.Status == backend.BulkPlanning:
			return p, problem.New(problem.Conflict, "bulk.not-planned", "plan %s is not made yet", id).
				WithHint("wait; when whoever made it has ended before, make another")
		case p.Status == backend.BulkDone, !begin && p.Status != backend.BulkRunning:
			return p, nil
		case p.Operation == backend.BulkDiscard && p.Reason == "" && audit.Silent(ctx): // a plan of somebody whom nobody asked
			return p, reasoned(ctx)
		case !begin && p.RunBy == who(by):
			return p, nil
		}
		p.RunBy = who(by)
		if err = b.change(ctx, p, backend.BulkRunning, *by); !errors.Is(err, store.ErrStale) {
			return p, err
		}
	}
}

// bulkAct does what is asked to one item.
type bulkAct func(ctx context.Context, i *backend.BulkItem) (engine.Disposition, error)

// act is what is done to each item. What else can be done to one instance or dead letter
// is a case here.
func (b *Bulk) act(ctx context.Context, asked *backend.BulkAsked, actor string) (bulkAct, error) {
	switch asked.Operation {
	case backend.BulkReplay:
		return func(ctx context.Context, i *backend.BulkItem) (engine.Disposition, error) {
			_, err := b.DeadLetters.ReplayAfter(ctx, i.Target, i.Version)
			return engine.Applied, err
		}, nil
	case backend.BulkDiscard:
		return func(ctx context.Context, i *backend.BulkItem) (engine.Disposition, error) {
			return engine.Applied, b.DeadLetters.DiscardAfter(ctx, i.Target, i.Version)
		}, nil
	case backend.BulkMigrate:
		plan, err := b.migration(ctx, asked)
		return func(ctx context.Context, i *backend.BulkItem) (engine.Disposition, error) {
			moved, err := b.Migrator.migrate(ctx, plan, i.Target, i.Version, actor)
			if err == nil && !moved {
				err = problem.New(problem.Conflict, codeChanged, "instance %s is closed, a schedule, or under another version", i.Target)
			}
			return engine.Applied, err
		}, err
	case string(operate.RunNow):
		return func(ctx context.Context, i *backend.BulkItem) (engine.Disposition, error) {
			return b.Operator.RunNow(ctx, i.Target, "", i.Version, actor)
		}, nil
	}
	return func(ctx context.Context, i *backend.BulkItem) (engine.Disposition, error) {
		return b.Operator.operate(ctx, i.Target, request{Operation: asked.OfInstance(), Version: i.Version}, actor)
	}, nil
}

// sparing leaves alone what keeps a schedule, which is an instance of the definition as its
// runs are, and mostly the oldest: a plan is for schedules when it names their business key.
func sparing(act bulkAct, asked *backend.BulkAsked) bulkAct {
	if asked.OfDeadLetters() || strings.HasPrefix(asked.Operation, string(engine.Retry)) || asked.BusinessKey == schedule.Key {
		return act
	}
	return func(ctx context.Context, i *backend.BulkItem) (engine.Disposition, error) {
		if strings.HasPrefix(i.Target, schedule.Prefix) {
			return "", problem.New(problem.Conflict, codeSchedule, "%s keeps a schedule: do it to that one, or name its business key", i.Target)
		}
		return act(ctx, i)
	}
}

func (b *Bulk) migration(ctx context.Context, asked *backend.BulkAsked) (*definition.MigrationPlan, error) {
	from, err := b.Migrator.Definitions.Find(ctx, asked.Definition, asked.Version)
	if err != nil {
		return nil, err
	}
	to, err := b.Migrator.Definitions.Find(ctx, asked.Definition, asked.To)
	if err != nil {
		return nil, err
	}
	pointers := asked.Pointers
	if pointers == nil {
		pointers = map[string]string{}
	}
	return definition.PlanMigration(from, to, pointers)
}

// bulkRun is one step of a run.
type bulkRun struct {
	*Bulk
	plan    *backend.Bulk
	act     bulkAct
	action  string // as the audit has it
	actor   string
	because string
	held    []string // instances of which something cannot be done for now, where it is done in order
	stuck   bool     // nobody knows of which
}

// step does open items until its time is over. What cannot be done for now is left to
// the next step; a step that has done nothing says why.
func (r *bulkRun) step(ctx context.Context) error {
	until, after, done := r.Now().Add(bulkStep), "", 0
	var last error
	for r.plan.Status == backend.BulkRunning && r.Now().Before(until) && ctx.Err() == nil {
		page, err := r.Plans.BulkItems(ctx, backend.BulkItemQuery{ID: r.plan.ID, Outcome: backend.BulkItemOpen, After: after, Limit: bulkBatch})
		if err != nil {
			return err
		}
		if len(page.Items) == 0 {
			if after == "" {
				return r.end(ctx)
			}
			after = "" // those that were left before
			if last != nil {
				break
			}
			continue
		}
		after = fmt.Sprint(page.Items[len(page.Items)-1].No)
		settled, failed := r.all(ctx, page.Items)
		last = cmp.Or(last, failed)
		if len(settled) > 0 {
			if err := r.Bulk.Bulk.SettleBulk(context.WithoutCancel(ctx), r.plan.ID, settled, r.refused(ctx, settled)...); err != nil {
				return err
			}
		}
		done += len(settled)
		if r.plan, err = r.find(ctx, r.plan.ID); err != nil {
			return err
		}
	}
	if done > 0 {
		return ctx.Err()
	}
	return cmp.Or(last, ctx.Err())
}

// refused are rows of the audit of what was refused, which the commit of an act has not.
func (r *bulkRun) refused(ctx context.Context, items []backend.BulkItem) (list []store.Audit) {
	for k := range items {
		if i := &items[k]; i.Outcome == backend.BulkItemFailed {
			of := ""
			if r.action != backend.BulkReplay && r.action != backend.BulkDiscard {
				of = i.Target
			}
			a := audit.As(audit.Row(audit.Within(ctx, r.request(i), r.because), r.Now(), r.action, i.Target, of), r.actor)
			a.Result = i.Code
			list = append(list, a)
		}
	}
	return list
}

// request is what the audit calls the request that an item is done by.
func (r *bulkRun) request(i *backend.BulkItem) string { return fmt.Sprintf("%s/%d", r.plan.ID, i.No) }

// end says that nothing of the plan is open, unless somebody else has said so, or has
// stopped it.
func (r *bulkRun) end(ctx context.Context) error {
	r.plan.EndedAt = r.Now()
	err := r.change(ctx, r.plan, backend.BulkDone)
	if errors.Is(err, store.ErrStale) {
		return nil
	}
	return err
}

// inOrder says that items are done one by one, and none before another of its instance that cannot be done
// for now: dead letters of one are what came first, and what came then.
func (r *bulkRun) inOrder() bool { return r.action == backend.BulkReplay }

// hold has those that come behind an item of the same instance left to the next step.
func (r *bulkRun) hold(ctx context.Context, i *backend.BulkItem) {
	switch l, err := r.DeadLetters.DeadLetters.DeadLetter(ctx, i.Target); {
	case err == nil && l.InstanceID != "":
		r.held = append(r.held, l.InstanceID)
	case err != nil && !errors.Is(err, store.ErrNotFound): // of whichever
		r.stuck = true
	}
}

// behind says whether an item is one of those.
func (r *bulkRun) behind(ctx context.Context, i *backend.BulkItem) bool {
	if r.stuck || len(r.held) == 0 {
		return r.stuck
	}
	l, err := r.DeadLetters.DeadLetters.DeadLetter(ctx, i.Target)
	return err == nil && slices.Contains(r.held, l.InstanceID)
}

// all does items, several at once, and returns those of which it is known what has
// become of them, with the first error of the others.
func (r *bulkRun) all(ctx context.Context, items []backend.BulkItem) (settled []backend.BulkItem, first error) {
	var mu sync.Mutex
	var workers sync.WaitGroup
	next, count := make(chan backend.BulkItem), min(bulkWorkers, len(items))
	if r.inOrder() {
		count = 1
	}
	for range count {
		workers.Go(func() {
			for i := range next {
				if r.inOrder() && r.behind(ctx, &i) {
					continue
				}
				err := r.one(ctx, &i)
				if err != nil && r.inOrder() {
					r.hold(ctx, &i)
				}
				mu.Lock()
				if err == nil {
					settled = append(settled, i)
				} else {
					first = cmp.Or(first, err)
				}
				mu.Unlock()
			}
		})
	}
	for _, i := range items {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	workers.Wait()
	return settled, first
}

// one does an item, and says what has become of it; an error says that nobody knows yet.
func (r *bulkRun) one(ctx context.Context, i *backend.BulkItem) error {
	asked := r.request(i)
	did, err := r.act(audit.Within(ctx, asked, r.because), i)
	i.EndedAt = r.Now()
	var p *problem.Error
	known := errors.As(err, &p)
	switch {
	case err == nil && did == engine.Queued:
		i.Outcome, i.Code, i.Detail = backend.BulkItemDone, codeHanded, "a node with the code of the instance has it to do"
	case err == nil:
		i.Outcome = backend.BulkItemDone
	case known && p.Code == codeSchedule:
		return r.over(ctx, i, asked, backend.BulkItemSkipped, codeSchedule, p.Detail)
	case known && (p.Code == codeChanged || p.Code == "dead-letter.edited"):
		return r.over(ctx, i, asked, backend.BulkItemSkipped, codeOver, p.Detail)
	case errors.Is(err, store.ErrNotFound), known && p.Code == "instance.unknown":
		return r.over(ctx, i, asked, backend.BulkItemSkipped, codeGone, "it is not there any more")
	case !known, p.Kind == problem.Unavailable, ctx.Err() != nil:
		return err
	default:
		return r.over(ctx, i, asked, backend.BulkItemFailed, p.Code, p.Detail)
	}
	return nil
}

// over is an item that is not what it was, or is refused: because this plan has done it,
// whose outcome was not written, as of two who run it at once, or because of somebody else.
func (r *bulkRun) over(ctx context.Context, i *backend.BulkItem, asked, outcome, code, detail string) error {
	q := backend.AuditQuery{Action: r.action, Target: i.Target, From: r.plan.CreatedAt.Add(-auditMargin)}
	switch r.action {
	case string(operate.RunNow): // of a command it is the retry of that
		q.Action, q.Target, q.InstanceID = "", "", i.Target
	case backend.BulkReplay: // what was edited is replayed under a name of its own
		q.Action = ""
	}
	for {
		page, err := r.Audit.Audit(ctx, q)
		if err != nil {
			return err
		}
		for k := range page.Items {
			if page.Items[k].Request == asked && page.Items[k].Result == "" {
				i.Outcome = backend.BulkItemDone
				return nil
			}
		}
		if q.After = page.Next; q.After == "" {
			i.Outcome, i.Code, i.Detail = outcome, code, clipped(detail)
			return nil
		}
	}
}

// auditMargin is by how much clocks of nodes may differ.
const auditMargin = time.Hour

// clipped is a text that fits its column.
func clipped(s string) string {
	if utf8.RuneCountInString(s) > maxItemText {
		return string([]rune(s)[:maxItemText])
	}
	return s
}
