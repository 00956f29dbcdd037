package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/aqueduct-engine/aqueduct/audit"
	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/migration"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// Limits of a call. Together, with what it waits for memory, they are less than the 90 seconds
// in which the API writes an answer: what comes later is heard by nobody.
const (
	// MaxCensus bounds how long one call of Migrate looks where the live instances are,
	// from its beginning on. None is moved unless it has seen all.
	MaxCensus = 30 * time.Second
	// MaxMigration bounds how long one call of Migrate moves instances. What is
	// left by then is for the next call.
	MaxMigration = 20 * time.Second
)

// CompareVersions says how two versions of a definition differ, and what a
// migration would do to live instances when tasks that moved are mapped to
// where they are. Problems: definition.unknown, migration.invalid.
func (g *Migrator) CompareVersions(ctx context.Context, name, from, to string) (definition.MigrationReport, error) {
	return g.Migrate(ctx, definition.Migration{Name: name, From: from, To: to, DryRun: true})
}

// Migrate moves the live instances of one version of a definition to another,
// each in a turn of its own, suspended and faulted ones included (E8). It
// moves none when any of them is live where the map leads nowhere; an instance
// that goes there meanwhile ends the call, and those moved before stay moved.
// Those in hooks of a policy stay, and hold up nobody else; schedules are not among them.
// Calling again goes on with those that are left. It is safe beside running
// nodes and signals: whoever commits second decides again.
//
// A dry run without a map is told by the map that the changes suggest, and says
// whether more are live than it could look at.
//
// Problems: definition.unknown, migration.invalid, migration.too-many,
// migration.unmapped with every position and its instances.
func (g *Migrator) Migrate(ctx context.Context, m definition.Migration) (definition.MigrationReport, error) {
	var report definition.MigrationReport
	until := g.Now().Add(MaxCensus)
	from, err := g.Definitions.Find(ctx, m.Name, m.From)
	if err != nil {
		return report, err
	}
	to, err := g.Definitions.Find(ctx, m.Name, m.To)
	if err != nil {
		return report, err
	}
	report.From, report.To, report.Pointers = from.Ref(), to.Ref(), m.Pointers
	a, ok1 := from.(migration.Migratable)
	b, ok2 := to.(migration.Migratable)
	if ok1 && ok2 {
		report.Changes = definition.Diff(a.Document(), b.Document())
		if m.DryRun && m.Pointers == nil {
			report.Pointers = definition.Moves(report.Changes)
		}
	}
	plan, err := definition.PlanMigration(from, to, report.Pointers)
	if err != nil {
		return report, err
	}
	ids, err := g.census(ctx, plan, &report, until)
	if err != nil || m.DryRun {
		return report, err
	}
	if err := cmp.Or(tooMany(&report), unmapped(&report)); err != nil {
		return report, err
	}
	report.Waiting = 0 // it is found out by the attempt
	until = g.Now().Add(MaxMigration)
	for _, id := range ids {
		if g.Now().After(until) {
			break
		}
		moved, err := g.migrate(ctx, plan, id, 0, m.Actor)
		switch {
		case problem.CodeOf(err) == definition.CodeHooked:
			report.Waiting++
			continue
		case err != nil:
			return report, err
		case moved:
			report.Moved++
		}
		report.Left--
	}
	return report, nil
}

// live are the statuses of instances that are not closed.
var live = []snapshot.Status{snapshot.Pending, snapshot.Running, snapshot.Waiting, snapshot.Suspended, snapshot.Faulted}

// census is a look at the live instances of the old version, at where they are, while its
// time lasts.
type census struct {
	g      *Migrator
	plan   *definition.MigrationPlan
	report *definition.MigrationReport
	until  time.Time
	ids    []string
	seen   map[string]bool
	counts map[migration.Position]int
}

// census finds the live instances of the old version and counts where they are. An instance
// whose status changes while it looks may be missed; it is found by the next call. Where its
// time is over before it has seen all, the report says that there may be more.
func (g *Migrator) census(ctx context.Context, plan *definition.MigrationPlan, report *definition.MigrationReport, until time.Time) ([]string, error) {
	c := &census{g: g, plan: plan, report: report, until: until, seen: map[string]bool{}, counts: map[migration.Position]int{}}
	for _, status := range live {
		if err := c.of(ctx, status); err != nil {
			return nil, err
		}
	}
	report.Live, report.Left = len(c.ids), len(c.ids)
	order := slices.Collect(maps.Keys(c.counts))
	sort.Slice(order, func(a, b int) bool {
		return cmp.Or(cmp.Compare(order[a].Pointer, order[b].Pointer), cmp.Compare(order[a].Problem, order[b].Problem)) < 0
	})
	for _, p := range order {
		report.Positions = append(report.Positions, definition.LivePosition{Pointer: p.Pointer, To: p.To, Problem: p.Problem, Passing: p.Passing, Instances: c.counts[p]})
	}
	return c.ids, nil
}

// of looks at the instances of a status.
func (c *census) of(ctx context.Context, status snapshot.Status) error {
	from := c.report.From
	q := backend.InstanceQuery{Definition: from.Name, Version: from.Version, Status: string(status), Live: true, Limit: projections.MaxLimit}
	for !c.over() {
		page, err := c.g.Instances.Instances(ctx, q)
		if err != nil {
			return err
		}
		for i := range page.Items {
			if c.over() {
				return nil
			}
			if err := c.look(ctx, page.Items[i].ID); err != nil {
				return err
			}
		}
		if q.After = page.Next; q.After == "" {
			break
		}
	}
	return nil
}

// over says whether time is over before what comes next is looked at.
func (c *census) over() bool {
	c.report.More = c.report.More || c.g.Now().After(c.until)
	return c.report.More
}

// look counts where an instance is.
func (c *census) look(ctx context.Context, id string) error {
	if c.seen[id] {
		return nil
	}
	c.seen[id] = true
	s, err := c.g.Operator.Snapshot(ctx, id)
	if err != nil || !movable(&s, c.report.From) {
		return err
	}
	c.ids = append(c.ids, id)
	places := c.plan.Positions(s)
	for _, p := range places {
		c.counts[p]++
	}
	if len(places) > 0 && places[0].Passing {
		c.report.Waiting++
	}
	return nil
}

// tooMany is the problem of live instances that could not all be looked at: whether all of them
// can be moved is not known, so none is.
func tooMany(report *definition.MigrationReport) error {
	if !report.More {
		return nil
	}
	return problem.New(problem.TooLarge, "migration.too-many", "%d live instances of %s@%s were looked at in %s, and there may be more; none is moved",
		report.Live, report.From.Name, report.From.Version, MaxCensus).
		WithHint("move each that can be by a plan, which names the others: engine-node bulk plan migrate --definition %s --version %s --to %s --map FILE",
			report.From.Name, report.From.Version, report.To.Version)
}

// movable says whether an instance is one that a migration moves. What keeps the schedule of
// a version is not: a schedule goes from version to version by their publication.
func movable(s *snapshot.Snapshot, from snapshot.Definition) bool {
	return !s.Status.Closed() && s.Schedule == nil && s.Definition.Alone() == from
}

// unmapped is the problem of positions that lead nowhere.
func unmapped(report *definition.MigrationReport) error {
	var where []problem.Place
	for _, p := range report.Positions {
		if p.Problem != "" && !p.Passing {
			where = append(where, problem.Place{Pointer: p.Pointer, Code: "migration.unmapped", Detail: fmt.Sprintf("%d instances: %s", p.Instances, p.Problem)})
		}
	}
	if len(where) == 0 {
		return nil
	}
	p := problem.New(problem.Conflict, "migration.unmapped", "%d live instances of %s@%s are looked at, and at %d positions there is no way to %s; none is moved",
		report.Live, report.From.Name, report.From.Version, len(where), report.To.Version).
		WithHint("map each of these pointers to one of the new version, or wait until no instance is there")
	p.Where = where
	return p
}

// errElsewhere says that an instance needs no migration, or none any more.
var errElsewhere = errors.New("service: closed, a schedule, or under another version")

// migrate moves one instance that has a version, 0 = any; moved is false when there was
// nothing to move.
func (g *Migrator) migrate(ctx context.Context, plan *definition.MigrationPlan, id string, version int64, actor string) (moved bool, err error) {
	from, _ := plan.Refs()
	now := g.Now()
	env := signal.Envelope{SignalID: NewID(), InstanceID: id, Type: signal.ExternalSignal, OccurredAt: now, Headers: ActorHeader(actor)}
	by := audit.As(audit.Row(ctx, now, "migrate", id, id), actor)
	decide := func(_ engine.Definition, snap *snapshot.Snapshot, in engine.Input) (*engine.Outcome, error) {
		if err := ChangedSince(snap, version); err != nil {
			return nil, err
		}
		if !movable(snap, from) {
			return nil, errElsewhere
		}
		return plan.Migrate(*snap, in)
	}
	_, err = g.Pump.Submit(ctx, turn.Signal{Envelope: env, Now: now, Decide: decide, Amend: func(c *store.Change) { audit.Over(c, by) }})
	if errors.Is(err, errElsewhere) || problem.CodeOf(err) == "instance.unknown" {
		return false, nil
	}
	return err == nil, err
}
