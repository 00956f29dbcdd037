package access

import (
	"maps"
	"slices"
	"strings"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// Role is a set of operations. None contains another: who needs two has both.
type Role = string

const (
	Viewer      Role = "viewer"      // looks
	TaskUser    Role = "task-user"   // works on human tasks
	Operator    Role = "operator"    // puts right what went wrong
	Author      Role = "author"      // publishes definitions
	Application Role = "application" // starts, signals and acknowledges, in the name of its users
	Admin       Role = "admin"       // says who may do what, and sees who did what
)

// Roles lists them all.
var Roles = []Role{Viewer, TaskUser, Operator, Author, Application, Admin}

// anybody may ask these without saying who they are: they tell of the process, of
// the API and of how one gets in, and of nothing that it holds.
var anybody = []string{"get-health", "get-readiness", "get-openapi", "get-login"}

// Sets of roles that many operations have.
var (
	lookers = []Role{Viewer, Operator, Author, Application, Admin}
	workers = []Role{TaskUser, Application}
)

// operations says, by its id in the API, which roles an operation takes: one of
// them. What does not stand here nobody may do.
var operations = map[string][]Role{
	"list-definitions": lookers, "list-versions": lookers, "get-definition": lookers, "get-source": lookers,
	"compare-versions": lookers, "list-schedules": lookers,
	"list-policies": lookers, "list-policy-versions": lookers, "get-policy": lookers, "compare-policies": lookers,
	"list-instances": lookers, "get-instance": lookers, "get-stream": lookers, "explain-instance": lookers, "get-past-instance": lookers, "get-lifecycle": lookers,
	"list-commands": lookers, "get-command": lookers,
	"list-bulk": {Viewer, Operator}, "get-bulk": {Viewer, Operator}, "list-bulk-items": {Viewer, Operator},
	"list-dead-letters": {Viewer, Operator}, "count-dead-letters": {Viewer, Operator}, "get-dead-letter": {Viewer, Operator}, "list-dead-letter-edits": {Viewer, Operator},
	"list-queues": lookers, "list-targets": lookers, "list-nodes": lookers,
	"get-metrics": {Viewer, Operator},

	"start-instance": {Application, Operator}, "signal-instance": {Application, Operator}, "publish-event": {Application, Operator},
	"trigger-event": {Application, Operator}, "acknowledge-command": {Application, Operator},
	"get-timeline": lookers, "list-activities": lookers, "get-activity": lookers,
	"attach-activity": {Application, Operator}, "update-activity": {Application, Operator}, "freeze-activity": {Application, Operator},
	"claim-command": {Application, Operator}, "complete-command": {Application, Operator}, "fail-command": {Application, Operator},

	"list-tasks": {Viewer, TaskUser, Operator, Application, Admin}, "get-task": {Viewer, TaskUser, Operator, Application, Admin},
	"claim-task": workers, "release-task": workers, "delegate-task": workers, "claim-next-tasks": workers, "complete-task": workers,
	"comment-task":  {TaskUser, Application, Operator},
	"reassign-task": {Operator, Admin},

	"publish-definition": {Author}, "publish-together": {Author},

	"plan-bulk": {Operator}, "run-bulk": {Operator}, "stop-bulk": {Operator},
	"replay-dead-letter": {Operator}, "edit-dead-letter": {Operator}, "discard-dead-letter": {Operator}, "reset-target": {Operator},
	"operate-instance": {Operator}, "rewind-instance": {Operator}, "retry-command": {Operator}, "migrate-instances": {Operator},

	"get-me": Roles,

	"create-token": {Admin}, "list-tokens": {Admin}, "revoke-token": {Admin}, "list-audit": {Admin},
}

// May says whether one of the roles lets somebody do an operation.
func May(operation string, roles []Role) bool {
	return slices.ContainsFunc(roles, func(granted string) bool {
		role, _ := split(granted)
		return slices.Contains(operations[operation], role)
	})
}

// Lets lists the operations that roles let somebody do, and of those that they may do in some
// namespaces only, which these are.
func Lets(roles []Role) (may []string, only map[string][]string) {
	may, only = []string{}, map[string][]string{}
	for _, operation := range Operations() {
		scope := scopeOf(operation, roles)
		if scope != nil {
			if len(scope) == 0 || !slices.Contains(apart, operation) {
				continue
			}
			only[operation] = scope
		}
		may = append(may, operation)
	}
	return may, only
}

// Anybody says whether an operation is everybody's, known or not.
func Anybody(operation string) bool { return slices.Contains(anybody, operation) }

// Operations lists those that need a role, in their order.
func Operations() []string { return slices.Sorted(maps.Keys(operations)) }

// CheckRoles refuses names that are no roles, and none at all. Problem: access.role.
func CheckRoles(roles []Role) error {
	if len(roles) == 0 {
		return problem.New(problem.Invalid, "access.role", "no role is named").WithHint("one or more of %s", strings.Join(Roles, ", "))
	}
	for _, role := range roles {
		if err := checkRole(role); err != nil {
			return err
		}
	}
	if n := len(list(roles)); n > maxRoles {
		return problem.New(problem.Invalid, "access.role", "the roles have %d bytes with their namespaces, at most %d may be", n, maxRoles)
	}
	return nil
}
