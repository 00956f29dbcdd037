package access

import (
	"slices"
	"strings"

	"github.com/aqueduct-engine/aqueduct/principal"
	"github.com/aqueduct-engine/aqueduct/problem"
)

// scopeMark stands between a role and the namespace that it is limited to: operator@shop.
const scopeMark = "@"

// maxNamespace bounds the name of a namespace.
const maxNamespace = 128

// limited are roles that may be limited to a namespace. What an author publishes runs with
// the rights of the node, and an administrator makes tokens of any role: nothing of either
// keeps to a namespace.
var limited = []Role{Viewer, TaskUser, Operator, Application}

// apart are the operations that a role of a namespace takes: each is known to tell of that
// namespace alone. What does not stand here takes a role of all.
var apart = []string{
	"get-me", "list-definitions", "list-versions", "get-definition", "get-source", "compare-versions", "list-schedules",
	"list-policies", "list-policy-versions", "get-policy", "compare-policies",
	"list-instances", "get-instance", "get-stream", "explain-instance", "get-past-instance", "get-lifecycle", "get-timeline",
	"list-commands", "get-command", "claim-command", "complete-command", "fail-command", "retry-command", "acknowledge-command",
	"list-dead-letters", "count-dead-letters", "get-dead-letter", "replay-dead-letter", "discard-dead-letter",
	"start-instance", "signal-instance", "trigger-event", "operate-instance", "migrate-instances",
	"list-activities", "get-activity", "attach-activity", "update-activity", "freeze-activity",
	"list-tasks", "get-task", "claim-task", "comment-task", "release-task", "delegate-task", "claim-next-tasks", "complete-task", "reassign-task",
}

// Apart lists them, in their order.
func Apart() []string { return slices.Sorted(slices.Values(apart)) }

// split takes a granted role apart: namespace is "" where it is one of all.
func split(granted string) (role Role, namespace string) {
	role, namespace, _ = strings.Cut(granted, scopeMark)
	return role, namespace
}

// scopeOf is the namespaces in which roles let somebody do an operation; nil = in all.
func scopeOf(operation string, roles []Role) []string {
	scope := []string{}
	for _, granted := range roles {
		if role, namespace := split(granted); slices.Contains(operations[operation], role) {
			if namespace == "" {
				return nil
			}
			scope = append(scope, namespace)
		}
	}
	slices.Sort(scope)
	return slices.Compact(scope)
}

// Cover says whether one of the wanted roles is held in every namespace of a scope, nil being
// all: what only holds in some of them does not hold.
func Cover(roles []Role, scope []string, wanted ...Role) bool {
	held := func(namespace string) bool {
		return slices.ContainsFunc(roles, func(granted string) bool {
			role, in := split(granted)
			return (in == "" || in == namespace) && slices.Contains(wanted, role)
		})
	}
	if scope == nil {
		return held("")
	}
	return !slices.ContainsFunc(scope, func(namespace string) bool { return !held(namespace) })
}

// keep limits somebody to the namespaces in which they may do an operation. Problem:
// access.denied.
func keep(p *principal.Principal, operation string) error {
	p.Scope = scopeOf(operation, p.Roles)
	if p.Scope == nil || slices.Contains(apart, operation) {
		return nil
	}
	return problem.New(problem.Denied, "access.denied", "%s may do %s in the namespaces [%s] only, and it is of all", p.Name, operation, strings.Join(p.Scope, ", ")).
		WithHint("%s needs one of the roles %s without a namespace", operation, strings.Join(operations[operation], ", "))
}

// checkRole refuses what is no role. Problem: access.role.
func checkRole(granted string) error {
	role, namespace := split(granted)
	if !slices.Contains(Roles, role) {
		return problem.New(problem.Invalid, "access.role", "%.40q is no role", granted).WithHint("the roles are %s", strings.Join(Roles, ", "))
	}
	if role == granted {
		return nil
	}
	if !slices.Contains(limited, role) {
		return problem.New(problem.Invalid, "access.role", "%.40q: %s is a role of all namespaces", granted, role).
			WithHint("%s may be limited to one, as %s@shop", strings.Join(limited, ", "), limited[0])
	}
	if namespace == "" || len(namespace) > maxNamespace || strings.ContainsFunc(namespace, func(r rune) bool { return r <= ' ' || r == '/' || r == '@' || r == '*' || r == 0x7f }) {
		return problem.New(problem.Invalid, "access.role", "%.40q names no namespace of definitions", granted).WithHint("write %s@NAMESPACE", role)
	}
	return nil
}
