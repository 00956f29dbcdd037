package runtime_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/humantask"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// longName is the longest name that a user or an outcome may have, in characters and in bytes.
var longName = strings.Repeat("𝔞", humantask.MaxName)

// Whoever may claim a task may complete it, by a call and through the queue, as the
// package of Oracle does: one limit holds for a name on the whole way.
func TestWhoCanClaimCanComplete(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := start(t, fresh(), nil, doc("named", `
  - approve: {call: humanTask, with: {title: Approve, candidateGroups: [clerks], outcomes: [`+longName+`]}}
  - done: {set: {by: '${ .completedBy }', said: '${ .outcome }'}}
`))
		for _, id := range []string{"by-call", "by-queue"} {
			n.begin(t, id, "t/named", nil)
			var task projections.Task
			eventually(t, "the task", func() bool {
				p, err := n.store.Tasks.Tasks(t.Context(), backend.TaskQuery{InstanceID: id})
				if err == nil && len(p.Items) == 1 {
					task = p.Items[0]
				}
				return task.ID != ""
			})
			if _, err := n.rt.ClaimTask(t.Context(), task.ID, longName, []string{"clerks"}); err != nil {
				t.Fatal(id, err)
			}
			if id == "by-call" {
				if _, err := n.rt.CompleteTask(t.Context(), task.ID, longName, []string{"clerks"}, longName, nil); err != nil {
					t.Fatal(err)
				}
			} else {
				n.send(t, fmt.Sprintf(`{"signalId":"s-1","workflowInstanceId":%q,"runtimeProvider":"aqueduct","signalType":"TaskCompleted","expectedVersion":0,
  "waitingToken":%q,"occurredAtUtc":"2026-01-01T00:00:00Z","headers":{"actor":%q},"payload":{"output":{"outcome":%q,"data":null}}}`, id, task.Token, longName, longName))
			}
			if got := n.output(t, id); got != `{"by":"`+longName+`","said":"`+longName+`"}` {
				t.Errorf("%s: %s", id, got)
			}
			if got, err := n.store.Tasks.Task(t.Context(), task.ID); err != nil || got.EndedBy != longName || got.Outcome != longName {
				t.Errorf("%s: ended by %.8q with %.8q: %v", id, got.EndedBy, got.Outcome, err)
			}
		}
	})
}
