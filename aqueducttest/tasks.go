package aqueducttest

import (
	"slices"
	"strings"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/signal"
)

// Task is a human task of the workflow.
type Task struct {
	engine.Task
	ID       string
	Status   engine.TaskEvent // created, completed, cancelled, expired
	Assigned string           // who claimed it

	w     *Workflow
	token string
}

// changeTasks follows what a turn does to human tasks.
func (w *Workflow) changeTasks(changes []engine.TaskChange) {
	for _, c := range changes {
		if c.Create != nil {
			w.tasks = append(w.tasks, &Task{Task: *c.Create, ID: c.ID, Status: engine.TaskCreated, Assigned: c.Create.Assignee, w: w})
			continue
		}
		for _, t := range w.tasks {
			if t.ID == c.ID {
				t.Status = c.Event
			}
		}
	}
	for _, wait := range w.snap.Waits {
		for _, t := range w.tasks {
			if t.ID == wait.TaskID {
				t.token = wait.Token
			}
		}
	}
}

// Tasks lists the open human tasks.
func (w *Workflow) Tasks() []*Task {
	var open []*Task
	for _, t := range w.tasks {
		if t.Status == engine.TaskCreated {
			open = append(open, t)
		}
	}
	return open
}

// Task returns the open human task of a name, which is the name of the task in
// the definition. It fails the test when there is none, or more than one.
func (w *Workflow) Task(name string) *Task {
	w.t.Helper()
	w.started()
	var found []*Task
	var names []string
	for _, t := range w.Tasks() {
		names = append(names, t.Name)
		if t.Name == name {
			found = append(found, t)
		}
	}
	if len(found) != 1 {
		w.t.Fatalf("aqueducttest: %d open human tasks are named %s; open: [%s]; the instance is %s",
			len(found), name, strings.Join(names, ", "), w.where())
		return &Task{w: w}
	}
	return found[0]
}

// MayClaim reports whether a user with these groups is a candidate.
func (t *Task) MayClaim(user string, groups ...string) bool {
	if slices.Contains(t.ExcludedUsers, user) || t.Assigned != "" && t.Assigned != user {
		return false
	}
	if len(t.CandidateUsers) == 0 && len(t.CandidateGroups) == 0 || slices.Contains(t.CandidateUsers, user) {
		return true
	}
	return slices.ContainsFunc(groups, func(g string) bool { return slices.Contains(t.CandidateGroups, g) })
}

// Claim reserves the task for a user. It fails the test when he may not.
func (t *Task) Claim(user string, groups ...string) *Task {
	t.w.t.Helper()
	if !t.MayClaim(user, groups...) {
		t.w.t.Fatalf("aqueducttest: %s [%s] may not claim %s: assigned to %q, candidates %v and groups %v, excluded %v",
			user, strings.Join(groups, ", "), t.Name, t.Assigned, t.CandidateUsers, t.CandidateGroups, t.ExcludedUsers)
	}
	t.Assigned = user
	return t
}

// Complete is the answer of who claimed the task, or to whom it is assigned;
// the workflow goes on. Outcomes that the task does not have fail the test.
func (t *Task) Complete(outcome string, data any) *Workflow {
	w := t.w
	w.t.Helper()
	switch {
	case t.Status != engine.TaskCreated:
		w.t.Fatalf("aqueducttest: task %s is %s", t.Name, t.Status)
	case t.Assigned == "":
		w.t.Fatalf("aqueducttest: task %s is not claimed", t.Name)
	case slices.Contains(t.ExcludedUsers, t.Assigned):
		w.t.Fatalf("aqueducttest: %s is excluded from task %s", t.Assigned, t.Name)
	case len(t.Outcomes) > 0 && !slices.Contains(t.Outcomes, outcome):
		w.t.Fatalf("aqueducttest: %q is no outcome of task %s: %v", outcome, t.Name, t.Outcomes)
	}
	w.deliver(w.signal(signal.TaskCompleted, t.token, map[string]any{"output": map[string]any{
		"outcome": outcome, "data": w.json(data), "completedBy": t.Assigned, "completedAtUtc": w.now, "taskId": t.ID,
	}}, t.Assigned))
	w.run()
	return w
}
