package access

import (
	"slices"
	"strings"

	"github.com/aqueduct-engine/aqueduct/principal"
	"github.com/aqueduct-engine/aqueduct/problem"
)

// groupMark begins the name of a group where roles may stand, too.
const groupMark = "group:"

// publishes is the operation whose events have types, and says are all that bring one to
// who waits for it: a signal, also that of a start, is an event for one instance, and so is
// what is triggered, of what is no lifecycle.
const publishes = "publish-event"

var says = []string{publishes, "signal-instance", "start-instance", "trigger-event"}

// EventTypes says who may publish which events: roles, and groups as group:NAME, by the type
// of an event, or what types begin with and a star. What is in it for nobody nobody
// publishes.
type EventTypes map[string][]string

// CheckEventTypes refuses types that are none, and those for whom nobody publishes anything.
// Problem: config.role.
func CheckEventTypes(types EventTypes) error {
	for pattern, list := range types {
		if at := strings.IndexByte(pattern, '*'); at >= 0 && at != len(pattern)-1 {
			return problem.New(problem.Invalid, "config.role", "%.100q: a star stands at the end of a type of events alone", pattern).WithHint("write ROLE=order.paid or ROLE=order.*")
		}
		for _, who := range list {
			if group, ok := strings.CutPrefix(who, groupMark); ok && group != "" || slices.Contains(operations[publishes], who) {
				continue
			}
			return problem.New(problem.Invalid, "config.role", "%.100q publishes no events", who).
				WithHint("name one of the roles %s, or a group as %sNAME", strings.Join(operations[publishes], ", "), groupMark)
		}
	}
	return nil
}

// of are the types that somebody may publish.
func (t EventTypes) of(p *principal.Principal) []string {
	may := []string{}
	for pattern, list := range t {
		for _, who := range list {
			group, ok := strings.CutPrefix(who, groupMark)
			if ok && slices.Contains(p.Groups, group) || !ok && Cover(p.Roles, p.Scope, who) {
				may = append(may, pattern)
			}
		}
	}
	return may
}

// Publishes refuses an event of a type that is not for somebody. Problem: access.denied.
func Publishes(p principal.Principal, eventType string) error {
	fits := func(pattern string) bool {
		prefix, any := strings.CutSuffix(pattern, "*")
		return pattern == eventType || any && strings.HasPrefix(eventType, prefix)
	}
	if p.Types == nil || slices.ContainsFunc(p.Types, fits) {
		return nil
	}
	return problem.New(problem.Denied, "access.denied", "%s may not publish events of the type %.100q", p.Name, eventType).
		WithHint("access.event-types says who may")
}
