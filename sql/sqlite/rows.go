package sqlite

import (
	"cmp"
	"fmt"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/store"
)

// rows writes the projections.
func (t *tx) rows(no int64, id string, r *projections.Rows) error {
	if r.Instance != nil {
		if err := t.instance(no, r.Instance); err != nil {
			return err
		}
	}
	for i := range r.Stream {
		if err := t.stream(no, id, &r.Stream[i]); err != nil {
			return err
		}
	}
	for i := range r.Tasks {
		if err := t.task(no, id, &r.Tasks[i]); err != nil {
			return err
		}
	}
	for i := range r.TaskEvents {
		if err := t.taskEvent(&r.TaskEvents[i]); err != nil {
			return err
		}
	}
	for _, token := range r.WaitsGone { // first: a wait that is found otherwise from now on goes and comes
		if no == 0 {
			_, err := t.entry(no, 0)
			return err
		}
		if _, _, err := t.exec("wait_delete", no, token); err != nil {
			return err
		}
	}
	for i := range r.Waits {
		if err := t.wait(no, id, &r.Waits[i]); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) instance(no int64, i *projections.Instance) error {
	if i.Version != 1 {
		_, n, err := t.exec("instance_update", conn.Text(i.DefVersion), conn.Text(i.Status), conn.Text(i.Position), i.Version, conn.Text(i.ErrorType), conn.Text(i.ErrorDetail),
			conn.Micros(i.UpdatedAt), conn.Micros(i.EndedAt), int64(i.Ahead), no)
		if err != nil || n == 1 {
			return err
		}
	}
	_, _, err := t.exec("instance_insert", no, i.ID, conn.Text(i.Definition), conn.Text(i.DefVersion), conn.Text(i.BusinessKey), conn.Text(i.StartKey),
		conn.Text(i.Status), conn.Text(i.Position), conn.Text(i.ParentID), conn.Text(i.Correlation), i.Version, conn.Text(i.ErrorType), conn.Text(i.ErrorDetail),
		conn.Micros(i.StartedAt), conn.Micros(i.UpdatedAt), conn.Micros(i.EndedAt), int64(i.Ahead))
	if err == nil {
		return nil
	}
	return unique(err, fmt.Errorf("instance %s: %w", i.ID, store.ErrDuplicate))
}

// unique turns the violation of a unique index into another error.
func unique(err, duplicate error) error {
	if conn.IsConstraint(err) {
		return duplicate
	}
	return err
}

// inputMark stands for the data of an entry that is the instance's input: the
// snapshot has it, and a parked instance is a third smaller without a copy.
var inputMark = []byte{}

// rowOwner is the number of the instance that a row belongs to: of the change's,
// unless the row names another.
func rowOwner(t *tx, no int64, id, other string) (int64, error) {
	if no != 0 && (other == id || other == "") {
		return no, nil
	}
	return t.number(cmp.Or(other, id))
}

func (t *tx) stream(no int64, id string, e *projections.Entry) error {
	no, err := rowOwner(t, no, id, e.InstanceID)
	if err != nil {
		return err
	}
	entry, err := t.entry(no, e.Position)
	if err != nil {
		return err
	}
	owner, err := t.nodeNumber(e.ClaimedBy)
	if err != nil {
		return err
	}
	var processed any
	if e.Processed != nil {
		processed = *e.Processed
	}
	data, held := conn.Blob(e.Data), e.Data
	if e.IsInput {
		data, held = inputMark, nil
	}
	_, _, err = t.exec("stream_insert", entry, conn.Text(e.Kind), conn.Text(e.Direction), conn.Text(e.Type), conn.Text(e.SignalID), conn.Micros(e.CreatedAt),
		processed, conn.Micros(e.ProcessedAt), owner, int64(e.Attempts), conn.Micros(e.NextAttemptAt), conn.Text(e.LastError), data, conn.Blob(e.Metadata),
		conn.Micros(e.DeliveredAt), int64(e.Deliveries), e.Checksum(cmp.Or(e.InstanceID, id), held))
	if err == nil {
		return nil
	}
	if conn.IsConstraint(err) && !conn.IsUnique(err) {
		return fmt.Errorf("stream position %s/%d is taken: %w", id, e.Position, store.ErrStale)
	}
	return unique(err, fmt.Errorf("signal %s of %s: %w", e.SignalID, id, store.ErrDuplicate))
}

func (t *tx) task(no int64, id string, k *projections.Task) error {
	no, err := rowOwner(t, no, id, k.InstanceID)
	if err != nil {
		return err
	}
	sums := k.Sums(cmp.Or(k.InstanceID, id))
	_, _, err = t.exec("task_insert", k.ID, no, conn.Text(k.Definition), conn.Text(k.BusinessKey), conn.Text(k.Name), conn.Text(k.Title), k.Status,
		conn.Text(k.Assignee), conn.Text(k.CandidateUsers), conn.Text(k.CandidateGroups), conn.Text(k.ExcludedUsers), conn.Text(k.Outcomes), int64(k.Priority),
		conn.Text(k.Token), k.Version, conn.Micros(k.CreatedAt), conn.Micros(k.DueAt), conn.Micros(k.EndedAt), conn.Text(k.EndedBy), conn.Text(k.Outcome),
		conn.Blob(k.Payload), conn.Blob(k.Form), conn.Blob(k.Output), conn.Text(k.EscalateTo), conn.Micros(k.EscalatedAt), conn.Text(k.Role),
		sums.Made, sums.Assigned, sums.Candidates, sums.Ended)
	return unique(err, fmt.Errorf("task %s: %w", k.ID, store.ErrDuplicate))
}

func (t *tx) taskEvent(e *projections.TaskEvent) error {
	err := t.guard(store.ErrNotFound, "task_event_insert", conn.Text(e.Event), conn.Text(e.Actor), conn.Micros(e.At), conn.Blob(e.Data), e.Checksum(), e.TaskID)
	if err != nil {
		return fmt.Errorf("event of task %s: %w", e.TaskID, err)
	}
	return nil
}

func (t *tx) wait(no int64, id string, v *projections.Wait) error {
	no, err := rowOwner(t, no, id, v.InstanceID)
	if err != nil {
		return err
	}
	key := [2]string{v.EventType, v.Spec}
	spec, ok := t.w.specs[key]
	if !ok {
		row, err := t.w.c.One("spec_number", 1, v.EventType, v.Spec)
		if err != nil {
			return err
		}
		if row != nil {
			spec = row[0].(int64)
		} else if spec, _, err = t.exec("spec_insert", v.EventType, v.Spec); err != nil {
			return err
		}
		if len(t.w.specs) >= numbersMax {
			clear(t.w.specs)
		}
		t.w.specs[key] = spec
	}
	_, _, err = t.exec("wait_insert", no, spec, conn.Hash(v.KeyHash), v.Token, conn.Micros(v.CreatedAt))
	return err
}

// edit changes an open task.
func (t *tx) edit(e *store.TaskEdit) error {
	if err := t.guard(store.ErrStale, "task_edit", e.Status, conn.Text(e.Assignee), conn.Text(e.Role), e.Checksum(), e.ID, e.Version); err != nil {
		return err
	}
	if x := e.Escalation; x != nil {
		if _, _, err := t.exec("task_escalate", conn.Text(x.CandidateUsers), conn.Text(x.CandidateGroups), conn.Micros(x.At), x.Checksum(e.ID), e.ID); err != nil {
			return err
		}
	}
	if e.Event.Event == "" {
		return nil
	}
	e.Event.TaskID = e.ID
	return t.taskEvent(&e.Event)
}

// define stores a version of a definition; it reports false when it is there,
// or another has its ordinal.
func (t *tx) define(r *store.Definition) (bool, error) {
	_, n, err := t.exec("definition_insert", r.Name, r.Version, r.Digest, conn.Text(r.Kind), conn.Text(r.Title), conn.Micros(r.PublishedAt),
		conn.Blob(r.Source), conn.Blob(r.Document), int64(r.Ordinal))
	return n == 1, err
}
