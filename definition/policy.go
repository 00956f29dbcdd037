package definition

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// PolicyPrefix is what the name of a lifecycle has before it as that of its policies.
const PolicyPrefix = engine.PolicyPrefix

// KindPolicy is the kind of a document that lies over the versions of a lifecycle. Its
// name is that of the lifecycle behind [engine.PolicyPrefix], and the version that was
// published last counts, which is the highest.
const KindPolicy = "policy"

// policed is a definition whose instances go by policies, too.
type policed interface {
	// ByPolicy names the policy; nil = it goes by none.
	ByPolicy() *engine.Policy
	// GoBy says which policy was laid over a definition that is just made.
	GoBy(policy engine.Policy)
}

// policies remembers which policy of each name was published last.
type policies struct {
	repo Repository
	live func(ctx context.Context, name string) (versions []string, err error)
	mu   sync.Mutex
	of   map[string]engine.Policy
}

// LiveBy has policies checked against the versions of a definition that instances run,
// beside the newest; backend.LiveVersions answers. It is called once, before use.
func (p *policies) LiveBy(f func(ctx context.Context, name string) ([]string, error)) { p.live = f }

// Outdated forgets a policy that is not the newest any more: it is asked for again.
func (p *policies) Outdated(old *engine.Policy) { p.forget(old.Name) }

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

// under is a version with the newest policy laid over it.
func (c laying) under(ctx context.Context, def engine.Definition, err error) (engine.Definition, error) {
	p, ok := def.(policed)
	if err != nil || !ok || p.ByPolicy() == nil {
		return def, err
	}
	policy, err := c.policies.current(ctx, p.ByPolicy().Name)
	if err != nil || policy.Ordinal == 0 {
		return def, err
	}
	return c.over(ctx, def.Ref(), policy)
}

// over is a version with a policy laid over it.
func (c laying) over(ctx context.Context, ref snapshot.Definition, policy engine.Policy) (engine.Definition, error) {
	return c.loaded(ctx, ref.Name, ref.Version+"+"+policy.Version, func(ctx context.Context) (engine.Definition, int, error) {
		r, err := c.repo.Definition(ctx, ref.Name, ref.Version)
		if err != nil {
			return nil, 0, err
		}
		given, size, err := c.policy(ctx, policy)
		if err != nil {
			return nil, 0, err
		}
		parsed, err := c.read(ctx, ref.Name, ref.Version, r, given...)
		if err != nil {
			return nil, 0, err
		}
		parsed.Definition.(policed).GoBy(policy)
		return parsed.Definition, len(r.Document) + size, nil
	})
}

// policy reads a policy, as what a lifecycle is given.
func (c laying) policy(ctx context.Context, p engine.Policy) ([]Resource, int, error) {
	r, err := c.repo.Definition(ctx, p.Name, p.Version)
	if err != nil {
		return nil, 0, err
	}
	given, err := pinned(r.Document)
	return append(given, Resource{URI: ID(r.Name, r.Version), Digest: r.Digest, Content: r.Source}), len(r.Document), err
}

// laid tries a policy on the versions of its lifecycle. What none of those that live
// knows is refused; what only some know is a warning.
func (c laying) laid(ctx context.Context, policy Parsed, source []byte, newest bool) ([]problem.Place, error) {
	if !newest {
		return nil, problem.New(problem.Conflict, "policy.outdated", "policy %s is not the highest version", ID(policy.Ref.Name, policy.Ref.Version)).
			WithHint("the version that is published last counts: give it a higher one than all others")
	}
	name := strings.TrimPrefix(policy.Ref.Name, engine.PolicyPrefix)
	versions, err := c.alive(ctx, name)
	if err != nil {
		return nil, err
	}
	given, err := pinned(policy.Document)
	if err != nil {
		return nil, err
	}
	given = append(given, Resource{URI: ID(policy.Ref.Name, policy.Ref.Version), Digest: policy.Ref.Digest, Content: source})
	type miss struct{ pointer, code string }
	places, lacking := map[miss]problem.Place{}, map[miss][]string{}
	for _, version := range versions {
		r, err := c.repo.Definition(ctx, name, version)
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
	for _, m := range slices.SortedFunc(maps.Keys(places), func(a, b miss) int { return places[a].Line - places[b].Line }) {
		p := places[m]
		if len(lacking[m]) == len(versions) {
			wrong = append(wrong, p)
			continue
		}
		p.Code = someKnow[p.Code]
		p.Detail += ", in version " + strings.Join(lacking[m], ", ")
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
func (c laying) alive(ctx context.Context, name string) ([]string, error) {
	newest, err := c.newest.version(ctx, name)
	if err != nil {
		return nil, err
	}
	if newest == "" {
		return nil, problem.New(problem.Invalid, "policy.unknown-definition", "no definition is named %s", name).
			WithHint("publish the lifecycle first, or import both")
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
