package definition

import (
	"encoding/json"
	"slices"
	"sort"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/migration"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// MigrationPlan takes instances of one version of a definition to another (E8).
type MigrationPlan struct {
	from, to snapshot.Definition
	move     migration.Move
	pointers json.RawMessage // nil = no map
}

// PlanMigration checks a map of pointers, which says where the tasks of one
// version are in another.
//
// A task whose pointer has the same kind of task in both versions is where it
// was; any other must be in the map. A pointer in the map takes the tasks
// inside it along, where they have the same kind. Problem: migration.invalid
// with every entry that is wrong.
func PlanMigration(from, to engine.Definition, pointers map[string]string) (*MigrationPlan, error) {
	old, ok := from.(migration.Migratable)
	if _, both := to.(migration.Migratable); !ok || !both {
		return nil, errNotMigratable()
	}
	m := &MigrationPlan{from: from.Ref(), to: to.Ref()}
	if a, b := m.from, m.to; a.Name != b.Name || a == b {
		return nil, problem.New(problem.Invalid, "migration.invalid", "%s@%s and %s@%s are not two versions of one definition", a.Name, a.Version, b.Name, b.Version)
	}
	move, err := old.MigrateTo(to, pointers)
	if err != nil {
		return nil, err
	}
	if m.move = move; move == nil {
		return nil, errNotMigratable()
	}
	if len(pointers) > 0 {
		m.pointers, err = json.Marshal(pointers)
	}
	return m, err
}

func errNotMigratable() error {
	return problem.New(problem.Invalid, "migration.invalid", "a definition that is Go code cannot be migrated").
		WithHint("let its instances end, or cancel them")
}

// Refs are the versions that a migration goes from and to.
func (m *MigrationPlan) Refs() (from, to snapshot.Definition) { return m.from, m.to }

// Positions lists where an instance is live, and what a migration would do to
// it there, in order of pointers. The instance can be moved when none has a
// problem.
func (m *MigrationPlan) Positions(s snapshot.Snapshot) []migration.Position {
	if places := hooked(&s); places != nil {
		return places
	}
	c := s.Clone()
	return m.move(&c)
}

// CodeHooked is the problem of an instance that is in hooks of a policy: they are in no
// version of its definition.
const CodeHooked = "migration.policy-hook"

// hooked are the places of an instance in hooks of a policy; nil = it is in none.
func hooked(s *snapshot.Snapshot) (places []migration.Position) {
	if s.Definition.Policy == "" {
		return nil
	}
	for _, b := range s.Branches {
		if n := len(b.Frames); n > 0 && !slices.ContainsFunc(places, func(p migration.Position) bool { return p.Pointer == b.Frames[n-1].Pointer }) {
			places = append(places, migration.Position{
				Pointer: b.Frames[n-1].Pointer, Problem: "it is in a hook of policy " + s.Definition.Policy + ": it can be moved when it rests in its next state", Passing: true,
			})
		}
	}
	sort.Slice(places, func(a, b int) bool { return places[a].Pointer < places[b].Pointer })
	return places
}

// ByMigration is what the [engine.Basis] of a migration says, with its map of pointers.
const ByMigration = "migration"

// EntryMigrated is the stream's record of a migration.
const EntryMigrated = "DefinitionMigrated"

// Migrate moves an instance to the other version of its definition. What it
// waits for and what is buffered stay as they are; nothing runs. Its Input
// carries the actor. Problems: instance.closed, migration.unmapped with every
// position that has no place in the new version, migration.policy-hook, definition.digest.
func (m *MigrationPlan) Migrate(snap snapshot.Snapshot, in engine.Input) (*engine.Outcome, error) {
	return engine.Decide(nil, snap, in, func(t *engine.Turn) error {
		if snap.Status.Closed() {
			return problem.New(problem.Conflict, "instance.closed", "instance %s is %s", snap.InstanceID, snap.Status)
		}
		if m.from != t.Snap.Definition.Alone() {
			return problem.New(problem.Internal, "definition.digest", "instance %s runs %s@%s with digest %.12s, not %s with %.12s",
				snap.InstanceID, snap.Definition.Name, snap.Definition.Version, snap.Definition.Digest, m.from.Version, m.from.Digest)
		}
		if places := hooked(t.Snap); places != nil {
			p := problem.New(problem.Conflict, CodeHooked, "instance %s is in a hook of policy %s, which is in no version of %s", snap.InstanceID, snap.Definition.Policy, m.to.Name).
				WithHint("ask again when it rests in a state")
			for _, at := range places {
				p.Where = append(p.Where, problem.Place{Pointer: at.Pointer, Code: CodeHooked, Detail: at.Problem})
			}
			return p
		}
		var wrong []problem.Place
		for _, p := range m.move(t.Snap) {
			if p.Problem != "" {
				wrong = append(wrong, problem.Place{Pointer: p.Pointer, Code: "migration.unmapped", Detail: p.Problem})
			}
		}
		if len(wrong) > 0 {
			p := problem.New(problem.Conflict, "migration.unmapped", "instance %s is live where version %s has no place for it", snap.InstanceID, m.to.Version)
			p.Where = wrong
			return p
		}
		t.Snap.Definition = m.to
		t.Basis.By, t.Basis.With = ByMigration, m.pointers
		data, err := json.Marshal(map[string]snapshot.Definition{"from": m.from, "to": m.to})
		t.Append(engine.Entry{
			Kind: engine.KindEvent, Dir: engine.In, Type: EntryMigrated, Data: data, Meta: engine.Meta{Actor: in.Signal.Headers[signal.HeaderActor]},
		})
		return err
	})
}
