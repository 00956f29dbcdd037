package aqueducttest

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/humantask"
	"github.com/aqueduct-engine/aqueduct/schema"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// Task is a human task of the workflow.
type Task struct {
	engine.Task
	ID       string
	Status   engine.TaskEvent // created, completed, cancelled, expired
	Assigned string           // who claimed it

	Escalated bool // its due date has passed

	w     *Workflow
	token string
}

// changeTasks follows what a turn does to human tasks.
func (w driver) changeTasks(changes []engine.TaskChange) {
	for _, c := range changes {
		if c.Create != nil {
			w.tasks = append(w.tasks, &Task{Task: *c.Create, ID: c.ID, Status: engine.TaskCreated, Assigned: c.Create.Assignee, w: w.Workflow})
			continue
		}
		for _, t := range w.tasks {
			if t.ID == c.ID && c.Event == engine.TaskEscalated {
				t.escalate()
			} else if t.ID == c.ID {
				t.Status = c.Event
			}
		}
	}
	for _, wait := range w.snap.Waits {
		for _, t := range w.tasks {
			if wait.Kind == snapshot.WaitTask && t.ID == wait.TaskID {
				t.token = wait.Token
			}
		}
	}
}

// escalate is what the passing of the due date does to an open task.
func (t *Task) escalate() {
	t.Escalated = true
	now := t.Task
	now.Assignee = t.Assigned
	now = humantask.Escalate(now)
	t.CandidateUsers, t.CandidateGroups, t.Assigned = now.CandidateUsers, now.CandidateGroups, now.Assignee
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
	w.driver.started()
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
			len(found), name, strings.Join(names, ", "), w.driver.where())
		return &Task{w: w}
	}
	return found[0]
}

// MayClaim reports whether a user with these groups is a candidate.
func (t *Task) MayClaim(user string, groups ...string) bool {
	_, ok := humantask.Candidate(t.Task, user, groups)
	return ok && (t.Assigned == "" || t.Assigned == user)
}

// Claim reserves the task for a user. It fails the test when they may not.
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
// the workflow goes on. Outcomes that the task does not have, and data that does
// not fit its form, fail the test.
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
	t.fits(w.driver.json(data))
	w.driver.deliver(w.driver.signal(signal.TaskCompleted, t.token, map[string]any{"output": map[string]any{
		"outcome": outcome, "data": w.driver.json(data), "completedBy": t.Assigned, "completedAtUtc": w.now, "taskId": t.ID,
	}}, t.Assigned))
	w.driver.run()
	return w
}

// fits fails the test when data does not fit the form of the task.
func (t *Task) fits(data json.RawMessage) {
	t.w.t.Helper()
	raw, ok := humantask.FormSchema(t.Form)
	if !ok {
		return
	}
	form, err := schema.Compile(raw)
	if err != nil {
		t.w.t.Fatalf("aqueducttest: the form of task %s: %v", t.Name, err)
		return
	}
	if places := form.Check(data); len(places) > 0 {
		t.w.t.Fatalf("aqueducttest: the answer does not fit the form of task %s: %v", t.Name, places)
	}
}
