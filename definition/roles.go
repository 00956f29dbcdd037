package definition

import (
	"context"
	"maps"
	"slices"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// guarded is a definition whose events are for roles.
type guarded interface {
	// EventRoles are the roles by the names of events; none = whoever may trigger events.
	EventRoles() map[string][]string
}

// unguarded warns of events that a version is the first to have roles for: who names the
// version before it begins an instance in which they are for everybody. A policy that has
// roles for them lies over that one, too.
func (c publishing) unguarded(ctx context.Context, p *candidate) (warnings []problem.Place, err error) {
	roles := p.guards
	if len(roles) == 0 {
		return nil, nil
	}
	before, err := c.newest.version(ctx, p.Name)
	if err != nil || before == "" {
		return nil, err
	}
	def, err := c.Find(ctx, p.Name, before)
	old, ok := def.(guarded)
	if err != nil || !ok { // what cannot be read begins nothing here, and is no reason to refuse another
		return nil, ctx.Err()
	}
	former := old.EventRoles()
	for _, event := range slices.Sorted(maps.Keys(roles)) {
		if had, known := former[event]; known && len(had) == 0 && len(roles[event]) > 0 {
			warnings = append(warnings, problem.Place{
				File: p.parsed.file, Pointer: "/events/" + event + "/roles", Code: "warning.roles-of-version",
				Detail: "version " + before + " has no roles for event " + event + ", stays, and may be named by whoever triggers a first event",
				Hint:   "a policy with these roles holds for all versions",
			})
		}
	}
	return warnings, nil
}
