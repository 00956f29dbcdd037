package sqlite

import (
	"cmp"
	"fmt"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/store"
)

// instanceColumns are what is inserted of an instance; the statement has them from its fields, too.
var instanceColumns = rows.ColumnsOf[projections.Instance]()

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
	_, _, err := t.exec("instance_insert", instanceColumns.Append([]any{no}, i, rows.Driver{Text: conn.Text, Bytes: conn.Blob, Time: conn.Micros})...)
	if err == nil {
		return nil
	}
	return conn.Unique(err, fmt.Errorf("instance %s: %w", i.ID, store.ErrDuplicate))
}

// inputMark stands for the data of an entry that is the instance's input: the
// snapshot has it, and a parked instance is a third smaller without a copy.
var inputMark = []byte{}

// owner is the number of the instance that a row belongs to: of the change's, unless the row names another.
func (t *tx) owner(no int64, id, other string) (int64, error) {
	if no != 0 && (other == id || other == "") {
		return no, nil
	}
	return t.number(cmp.Or(other, id))
}

func (t *tx) stream(no int64, id string, e *projections.Entry) error {
	no, err := t.owner(no, id, e.InstanceID)
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
	return conn.Unique(err, fmt.Errorf("signal %s of %s: %w", e.SignalID, id, store.ErrDuplicate))
}
