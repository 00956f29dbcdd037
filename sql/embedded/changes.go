package embedded

import (
	"cmp"
	"fmt"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// taskRows writes what a change has of human tasks.
type taskRows struct{}

// Guard implements sqlite.Extra.
func (taskRows) Guard(t sqlite.Tx, c *store.Change) error {
	for i := range c.Tasks {
		if err := editTask(t, &c.Tasks[i]); err != nil {
			return fmt.Errorf("task %s: %w", c.Tasks[i].ID, err)
		}
	}
	for i := range c.Rows.TaskEnds {
		e := &c.Rows.TaskEnds[i]
		err := t.Guard(store.ErrStale, "task_end", e.Status, conn.Text(e.By), conn.Micros(e.At), conn.Text(e.Outcome), conn.Blob(e.Output), backend.EndSum(e), e.ID, e.Version)
		if err != nil {
			return fmt.Errorf("end task %s: %w", e.ID, err)
		}
	}
	return nil
}

// Write implements sqlite.Extra.
func (taskRows) Write(t sqlite.Tx, no int64, id string, c *store.Change) error {
	for i := range c.Rows.Tasks {
		if err := writeTask(t, no, id, &c.Rows.Tasks[i]); err != nil {
			return err
		}
	}
	for i := range c.Rows.TaskEvents {
		if err := writeTaskEvent(t, &c.Rows.TaskEvents[i]); err != nil {
			return err
		}
	}
	return nil
}

// What is inserted of a task; the statement is written from the same fields.
var (
	values      = rows.Driver{Text: conn.Text, Bytes: conn.Blob, Time: conn.Micros}
	taskColumns = rows.ColumnsOf[projections.Task]("INSTANCE_ID")
	sumColumns  = rows.ColumnsOf[backend.TaskSums]()
)

func writeTask(t sqlite.Tx, no int64, id string, k *projections.Task) error {
	no, err := t.Owner(no, id, k.InstanceID)
	if err != nil {
		return err
	}
	sums := backend.SumsOf(k, cmp.Or(k.InstanceID, id))
	_, _, err = t.Exec("task_insert", sumColumns.Append(taskColumns.Append([]any{no}, k, values), &sums, values)...)
	return conn.Unique(err, fmt.Errorf("task %s: %w", k.ID, store.ErrDuplicate))
}

func writeTaskEvent(t sqlite.Tx, e *projections.TaskEvent) error {
	err := t.Guard(store.ErrNotFound, "task_event_insert", conn.Text(e.Event), conn.Text(e.Actor), conn.Micros(e.At), conn.Blob(e.Data), backend.EventSum(e), e.TaskID)
	if err != nil {
		return fmt.Errorf("event of task %s: %w", e.TaskID, err)
	}
	return nil
}

// editTask changes an open task.
func editTask(t sqlite.Tx, e *store.TaskEdit) error {
	if err := t.Guard(store.ErrStale, "task_edit", e.Status, conn.Text(e.Assignee), conn.Text(e.Role), backend.EditSum(e), e.ID, e.Version); err != nil {
		return err
	}
	if x := e.Escalation; x != nil {
		if _, _, err := t.Exec("task_escalate", conn.Text(x.CandidateUsers), conn.Text(x.CandidateGroups), conn.Micros(x.At), backend.EscalationSum(e.ID, x), e.ID); err != nil {
			return err
		}
	}
	if e.Event.Event == "" {
		return nil
	}
	e.Event.TaskID = e.ID
	return writeTaskEvent(t, &e.Event)
}

// Forget implements sqlite.Extra.
func (taskRows) Forget() {}

// waitRows writes who waits for events. A wait names its spec by number, and the
// numbers are remembered.
type waitRows struct{ specs map[[2]string]int64 }

const specsMax = 1 << 15

// Guard implements sqlite.Extra.
func (waitRows) Guard(sqlite.Tx, *store.Change) error { return nil }

// Write implements sqlite.Extra. What is gone goes first: a wait that is found
// otherwise from now on goes and comes.
func (w waitRows) Write(t sqlite.Tx, no int64, id string, c *store.Change) error {
	for _, token := range c.Rows.WaitsGone {
		if no == 0 {
			return problem.New(problem.Internal, "store.change", "the change has rows of an instance and does not name it")
		}
		if _, _, err := t.Exec("wait_delete", no, token); err != nil {
			return err
		}
	}
	for i := range c.Rows.Waits {
		v := &c.Rows.Waits[i]
		no, err := t.Owner(no, id, v.InstanceID)
		if err != nil {
			return err
		}
		spec, err := w.spec(t, v)
		if err != nil {
			return err
		}
		if _, _, err := t.Exec("wait_insert", no, spec, conn.Hash(v.KeyHash), v.Token, conn.Micros(v.CreatedAt)); err != nil {
			return err
		}
	}
	return nil
}

// Forget implements sqlite.Extra.
func (w waitRows) Forget() { clear(w.specs) }

// spec is the number of the spec of a wait.
func (w waitRows) spec(t sqlite.Tx, v *projections.Wait) (int64, error) {
	key := [2]string{v.EventType, v.Spec}
	if spec, ok := w.specs[key]; ok {
		return spec, nil
	}
	row, err := t.Conn().One("spec_number", 1, v.EventType, v.Spec)
	if err != nil {
		return 0, err
	}
	var spec int64
	if row != nil {
		spec, _ = row[0].(int64)
	} else if spec, _, err = t.Exec("spec_insert", v.EventType, v.Spec); err != nil {
		return 0, err
	}
	if len(w.specs) >= specsMax {
		clear(w.specs)
	}
	w.specs[key] = spec
	return spec, nil
}

// definitionRows writes what a change publishes.
type definitionRows struct{}

// Guard implements sqlite.Extra. A version that is there refuses the change, and one
// that is not is written here: nothing refers to it.
func (definitionRows) Guard(t sqlite.Tx, c *store.Change) error {
	if p := c.Rows.Policy; p != nil {
		newer, err := t.Conn().One("policy_newer", 1, p.Name, int64(p.Ordinal))
		if err != nil {
			return err
		}
		if newer != nil {
			return fmt.Errorf("%s is published with a higher ordinal than %d: %w", p.Name, p.Ordinal, store.ErrStale)
		}
	}
	if c.Definition == nil {
		return nil
	}
	return define(t, c.Definition)
}

// Write implements sqlite.Extra.
func (definitionRows) Write(sqlite.Tx, int64, string, *store.Change) error { return nil }

// Forget implements sqlite.Extra.
func (definitionRows) Forget() {}

// define stores a version of a definition, unless it is there or another has its
// ordinal.
func define(t sqlite.Tx, r *store.Definition) error {
	_, n, err := t.Exec("definition_insert", r.Name, r.Version, r.Digest, conn.Text(r.Kind), conn.Text(r.Title), conn.Micros(r.PublishedAt),
		conn.Blob(r.Source), conn.Blob(r.Document), int64(r.Ordinal))
	if err == nil && n != 1 {
		err = store.ErrDuplicate
	}
	return wrap("publish "+r.Name+"@"+r.Version, err)
}
