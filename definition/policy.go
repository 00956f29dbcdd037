package definition

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// PolicyPrefix is what the name of a lifecycle has before it as that of its policies.
const PolicyPrefix = "policy:"

// KindPolicy is the kind of a document that lies over the versions of a lifecycle. Its
// name is that of the lifecycle behind [PolicyPrefix], and the version that was
// published last counts, which is the highest.
const KindPolicy = "policy"

// policed is a definition whose instances go by policies, too.
type policed interface {
	// ByPolicy names the policy; nil = it goes by none.
	ByPolicy() *engine.Policy
	// GoBy says which policy was laid over a definition that is just made, and which
	// one has the hooks of an older policy; nil = none.
	GoBy(policy engine.Policy, former engine.Definition)
}

// policies remembers which policy of each name was published last.
type policies struct {
	repo Repository
	live func(ctx context.Context, name string) (versions []string, err error)
	mu   sync.Mutex
	of   map[string]engine.Policy
}

// LiveBy has policies, and code, checked against the versions of a definition that instances run,
// beside the newest; backend.LiveVersions answers. It is called once, before use.
func (p *policies) LiveBy(f func(ctx context.Context, name string) ([]string, error)) { p.live = f }

// Outdated forgets a policy that is not the newest any more: it is asked for again.
func (p *policies) Outdated(old *engine.Policy) { p.forget(old.Name) }

// Newer reports whether a policy was published since the one by which the instances of a
// definition go, and has them go by that one from now on.
func (p *policies) Newer(ctx context.Context, def engine.Definition) (bool, error) {
	over, ok := def.(policed)
	if !ok || over.ByPolicy() == nil || over.ByPolicy().Name == "" {
		return false, nil
	}
	old := over.ByPolicy()
	since, err := p.repo.Versions(ctx, old.Name, old.Ordinal)
	if problem.KindOf(err) == problem.NotFound {
		err = nil
	}
	if err != nil || len(since) == 0 {
		return false, err
	}
	p.forget(old.Name)
	return true, nil
}

func (p *policies) forget(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.of, name)
}

// current is the newest policy of a name as far as this node knows: what is decided by
// it is refused by its commit when there is a newer one.
func (p *policies) current(ctx context.Context, name string) (engine.Policy, error) {
	p.mu.Lock()
	known, ok := p.of[name]
	p.mu.Unlock()
	if ok {
		return known, nil
	}
	now := engine.Policy{Name: name}
	records, err := p.repo.Versions(ctx, name, 0)
	if err != nil && problem.KindOf(err) != problem.NotFound {
		return now, err
	}
	for _, r := range records {
		if r.Ordinal > now.Ordinal {
			now.Version, now.Ordinal = r.Version, r.Ordinal
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.of) >= highestMax {
		clear(p.of)
	}
	p.of[name] = now
	return now, nil
}

// laying is what the catalogue does with policies.
type laying struct{ *Catalogue }

// under is a version with the newest policy laid over it. Where hooks of another are
// under way, it has these, too.
func (c laying) under(ctx context.Context, def engine.Definition, hooks string, err error) (engine.Definition, error) {
	p, ok := def.(policed)
	if err != nil || !ok || p.ByPolicy() == nil {
		return def, err
	}
	policy, err := c.policies.current(ctx, p.ByPolicy().Name)
	if err != nil || policy.Ordinal == 0 {
		return def, err
	}
	laid, err := c.by(ctx, def.Ref(), policy, hooks)
	if problem.KindOf(err) != problem.NotFound {
		return laid, err
	}
	// Another node has published a newer one, and retention has deleted that which this one remembers.
	c.forget(policy.Name)
	newer, failed := c.policies.current(ctx, policy.Name)
	if failed != nil || newer.Ordinal <= policy.Ordinal {
		return nil, cmp.Or(failed, err)
	}
	return c.by(ctx, def.Ref(), newer, hooks)
}

// by is a version with a policy laid over it, and with the hooks of another.
func (c laying) by(ctx context.Context, ref snapshot.Definition, policy engine.Policy, hooks string) (engine.Definition, error) {
	if hooks == "" || hooks == policy.Version {
		return c.over(ctx, ref, policy, "", nil)
	}
	former, err := c.over(ctx, ref, engine.Policy{Name: policy.Name, Version: hooks}, "", nil)
	if err != nil {
		return nil, err
	}
	return c.over(ctx, ref, policy, "+"+hooks, former)
}

func (c laying) over(ctx context.Context, ref snapshot.Definition, policy engine.Policy, with string, former engine.Definition) (engine.Definition, error) {
	return c.loaded(ctx, ref.Name, ref.Version+"+"+policy.Version+with, func(ctx context.Context) (engine.Definition, int, error) {
		r, err := c.repo.Definition(ctx, ref.Name, ref.Version)
		if err != nil {
			return nil, 0, err
		}
		given, laid, err := c.policy(ctx, policy)
		if err != nil {
			return nil, 0, err
		}
		parsed, err := c.read(ctx, ref.Name, ref.Version, r, given...)
		if err != nil {
			return nil, 0, err
		}
		policy.Ordinal = laid.Ordinal
		parsed.Definition.(policed).GoBy(policy, former)
		return parsed.Definition, len(r.Document) + len(laid.Document), nil
	})
}

// policy reads a policy, as what a lifecycle is given.
func (c laying) policy(ctx context.Context, p engine.Policy) ([]Resource, Record, error) {
	r, err := c.repo.Definition(ctx, p.Name, p.Version)
	if err != nil {
		return nil, r, err
	}
	given, err := pinned(r.Document)
	return append(given, Resource{URI: ID(r.Name, r.Version), Digest: r.Digest, Content: r.Source}), r, err
}

// codeNoDefinition is that of a policy that lies over nothing.
const codeNoDefinition = "policy.unknown-definition"

// laid tries a policy on the versions of its lifecycle. What none of those that live
// knows is refused; what only some know is a warning. Those that are published with it
// count as if they were.
func (c laying) laid(ctx context.Context, p *candidate, fresh []*candidate) ([]problem.Place, error) {
	policy := p.parsed
	if !p.newest {
		return nil, problem.New(problem.Conflict, "policy.outdated", "policy %s is not the highest version", ID(policy.Ref.Name, policy.Ref.Version)).
			WithHint("the version that is published last counts: give it a higher one than all others")
	}
	name := strings.TrimPrefix(policy.Ref.Name, PolicyPrefix)
	versions, err := c.alive(ctx, name, fresh)
	if err != nil {
		return nil, err
	}
	given, err := pinned(policy.Document)
	if err != nil {
		return nil, err
	}
	given = append(given, Resource{URI: ID(policy.Ref.Name, policy.Ref.Version), Digest: policy.Ref.Digest, Content: p.Source})
	type miss struct{ pointer, code string }
	places, lacking := map[miss]problem.Place{}, map[miss][]string{}
	for _, version := range versions {
		r, err := c.record(ctx, name, version, fresh)
		if err != nil {
			return nil, err
		}
		if r.Kind != "lifecycle" {
			return nil, problem.New(problem.Invalid, "policy.no-lifecycle", "definition %s is no lifecycle, and has no policies", ID(name, version))
		}
		p, err := c.read(ctx, name, version, r, given...)
		if err != nil {
			return nil, err
		}
		for _, u := range p.Unknown {
			m := miss{u.Pointer, u.Code}
			u.File = policy.file
			places[m], lacking[m] = u, append(lacking[m], version)
		}
	}
	var wrong, warnings []problem.Place
	order := slices.Collect(maps.Keys(places))
	sort.Slice(order, func(a, b int) bool { return places[order[a]].Line < places[order[b]].Line })
	for _, m := range order {
		p := places[m]
		code, unknown := someKnow[p.Code]
		if all := len(lacking[m]) == len(versions); all && unknown {
			wrong = append(wrong, p)
			continue
		} else if !all {
			p.Detail += ", in version " + strings.Join(lacking[m], ", ")
		}
		p.Code = cmp.Or(code, p.Code)
		warnings = append(warnings, p)
	}
	if len(wrong) == 0 {
		return warnings, nil
	}
	e := problem.New(problem.Invalid, "policy.invalid", "policy %s names what no live version of %s has: %d findings", policy.Ref.Version, name, len(wrong))
	e.Where = wrong[:min(len(wrong), maxFindings)]
	return nil, e
}

// someKnow is the code of a warning in the place of a finding: some versions know it.
var someKnow = map[string]string{"policy.unknown-state": "warning.unknown-state", "policy.unknown-event": "warning.unknown-event"}

// alive are the versions of a definition that a policy has to do with: the newest, and
// those that instances run.
func (c laying) alive(ctx context.Context, name string, fresh []*candidate) ([]string, error) {
	newest, err := c.newest.version(ctx, name)
	if err != nil {
		return nil, err
	}
	for _, p := range fresh {
		if p.Name == name {
			newest = higher(newest, p.Version)
		}
	}
	if newest == "" {
		return nil, problem.New(problem.Invalid, codeNoDefinition, "no definition is named %s", name).
			WithHint("publish the lifecycle first, or both together")
	}
	versions := []string{newest}
	if c.policies.live == nil {
		return versions, nil
	}
	live, err := c.policies.live(ctx, name)
	for _, v := range live {
		if v != newest {
			versions = append(versions, v)
		}
	}
	return versions, err
}

// record is a version that is published, or about to be.
func (c laying) record(ctx context.Context, name, version string, fresh []*candidate) (Record, error) {
	for _, p := range fresh {
		if p.Name == name && p.Version == version {
			return p.Record, nil
		}
	}
	return c.repo.Definition(ctx, name, version)
}
