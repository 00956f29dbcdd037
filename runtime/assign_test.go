package runtime_test

import (
	"testing"

	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// TestTasksAreHandedOn: who has a task delegates it, an administrator
// reassigns it or takes it away, and nobody excluded ever gets it.
func TestTasksAreHandedOn(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		n := start(t, fresh(), nil, doc("handed", `
  - approve: {call: humanTask, with: {candidateUsers: [ann], candidateGroups: [finance], excludedUsers: [eve]}}
`))
		n.begin(t, "i", "t/handed", nil)
		n.until(t, "i", status("waiting"))
		ctx := t.Context()
		page, err := n.store.Tasks.Tasks(ctx, backend.TaskQuery{InstanceID: "i"})
		if err != nil || len(page.Items) != 1 {
			t.Fatalf("%+v, %v", page, err)
		}
		id := page.Items[0].ID
		has := func(got projections.Task, err error, want string) {
			t.Helper()
			if err != nil || got.Assignee != want || (got.Status == projections.TaskReady) != (want == "") {
				t.Fatalf("%q has it, %s, %v; want %q", got.Assignee, got.Status, err, want)
			}
		}
		_, err = n.rt.DelegateTask(ctx, id, "ann", "bob")
		code(t, err, "task.not-claimed")
		k, err := n.rt.ClaimTask(ctx, id, "carl", []string{"finance"})
		has(k, err, "carl")
		_, err = n.rt.DelegateTask(ctx, id, "ann", "bob")
		code(t, err, "task.not-yours")
		_, err = n.rt.DelegateTask(ctx, id, "carl", "eve")
		code(t, err, "task.denied")
		_, err = n.rt.DelegateTask(ctx, id, "carl", "")
		code(t, err, "task.user-missing")
		k, err = n.rt.DelegateTask(ctx, id, "carl", "bob") // who is no candidate
		has(k, err, "bob")
		_, err = n.rt.ReassignTask(ctx, id, "root", "eve")
		code(t, err, "task.denied")
		_, err = n.rt.ReassignTask(ctx, id, "", "ann")
		code(t, err, "task.user-missing")
		k, err = n.rt.ReassignTask(ctx, id, "root", "")
		has(k, err, "")
		got, err := n.rt.ClaimNext(ctx, "eve", []string{"finance"}, nil, 1)
		if err != nil || len(got) != 0 {
			t.Fatalf("eve has %v, %v", got, err)
		}
		_, err = n.rt.ClaimNext(ctx, "ann", nil, nil, 51)
		code(t, err, "task.count")
		k, err = n.rt.ReassignTask(ctx, id, "root", "dora")
		has(k, err, "dora")
		if k, err = n.rt.CompleteTask(ctx, id, "dora", []string{}, "", nil); err != nil || k.EndedBy != "dora" {
			t.Fatalf("%+v, %v", k, err)
		}
		events, err := n.store.Tasks.TaskEvents(ctx, id)
		var seen string
		for _, e := range events {
			seen += e.Event + " " + e.Actor + " " + string(e.Data[:min(len(e.Data), 26)]) + "; "
		}
		want := `created  ; claimed carl ; delegated carl {"from":"carl","to":"bob"}; reassigned root {"from":"bob","to":""}; ` +
			`reassigned root {"from":"","to":"dora"}; completed dora {"completedAtUtc":`
		if err != nil || len(seen) < len(want) || seen[:len(want)] != want {
			t.Errorf("events %s, %v", seen, err)
		}
	})
}
