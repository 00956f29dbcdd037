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

// MaxMigration bounds how long one call of Migrate moves instances. What is
// left by then is for the next call.
const MaxMigration = 20 * time.Second

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
// A dry run without a map is told by the map that the changes suggest.
//
// Problems: definition.unknown, migration.invalid, migration.unmapped with
// every position and its instances.
func (g *Migrator) Migrate(ctx context.Context, m definition.Migration) (definition.MigrationReport, error) {
	var report definition.MigrationReport
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
	ids, err := g.census(ctx, plan, &report)
	if err != nil || m.DryRun {
		return report, err
	}
	if err := unmapped(&report); err != nil {
		return report, err
	}
	report.Waiting = 0 // it is found out by the attempt
	until := g.Now().Add(MaxMigration)
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

// census finds the live instances of the old version and counts where they
// are. An instance whose status changes while it looks may be missed; it is
// found by the next call.
func (g *Migrator) census(ctx context.Context, plan *definition.MigrationPlan, report *definition.MigrationReport) ([]string, error) {
	counts := map[migration.Position]int{}
	seen := map[string]bool{}
	var ids []string
	for _, status := range live {
		q := backend.InstanceQuery{Definition: report.From.Name, Version: report.From.Version, Status: string(status), Live: true, Limit: projections.MaxLimit}
		for {
			page, err := g.Instances.Instances(ctx, q)
			if err != nil {
				return nil, err
			}
			for i := range page.Items {
				row := &page.Items[i]
				if seen[row.ID] {
					continue
				}
				seen[row.ID] = true
				s, err := g.Operator.Snapshot(ctx, row.ID)
				if err != nil {
					return nil, err
				}
				if !movable(&s, report.From) {
					continue
				}
				ids = append(ids, row.ID)
				places := plan.Positions(s)
				for _, p := range places {
					counts[p]++
				}
				if len(places) > 0 && places[0].Passing {
					report.Waiting++
				}
			}
			if q.After = page.Next; q.After == "" {
				break
			}
		}
	}
	report.Live, report.Left = len(ids), len(ids)
	order := slices.Collect(maps.Keys(counts))
	sort.Slice(order, func(a, b int) bool {
		return cmp.Or(cmp.Compare(order[a].Pointer, order[b].Pointer), cmp.Compare(order[a].Problem, order[b].Problem)) < 0
	})
	for _, p := range order {
		report.Positions = append(report.Positions, definition.LivePosition{Pointer: p.Pointer, To: p.To, Problem: p.Problem, Passing: p.Passing, Instances: counts[p]})
	}
	return ids, nil
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
