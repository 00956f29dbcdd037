package survey

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/aqueduct-engine/aqueduct/correlation"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// State is a snapshot beside what repeats it: the row of its instance, and one of
// the rows of its waits. A snapshot with several waits has several of these, one
// after the other; the first has the snapshot.
type State struct {
	SnapshotID string `db:"SNAPSHOT_ID"`
	Version    int64  `db:"SNAPSHOT_VERSION"`
	Sum        int64  `db:"STATE_CHECKSUM"`
	Raw        []byte `db:"STATE_JSON"`

	projections.Instance // without an id: there is none

	Token     string `db:"WAITING_TOKEN"` // "" = there is no wait
	EventType string `db:"EVENT_TYPE"`
	Spec      string `db:"SPEC"`
	KeyHash   string `db:"KEY_HASH"`
}

// States is what a check finds in snapshots, and in what repeats them.
type States struct {
	snapshots, instances, waits Table

	at      string                      // the instance that is being read
	whole   bool                        // its snapshot could be
	missing map[string]projections.Wait // what its snapshot waits for, and no row has said yet
}

// NewStates begins.
func NewStates() *States {
	const fix = "nodes go on by the snapshot, and lists and events by these rows: set them to what the snapshot says, or restore a backup"
	return &States{
		snapshots: Table{Check: "checksums", Rows: "snapshots"}, instances: Table{Check: "instances", fix: fix}, waits: Table{Check: "waits", fix: fix},
	}
}

// Row takes the next row.
func (s *States) Row(row State) error {
	if row.SnapshotID != s.at {
		s.end()
		s.at = row.SnapshotID
		snap, err := row.snapshot()
		if err := s.snapshots.Row(err); err != nil {
			return err
		}
		if s.whole = err == nil; s.whole {
			if err := s.begin(&snap, &row.Instance); err != nil {
				return err
			}
		}
	}
	if !s.whole || row.Token == "" {
		return nil
	}
	s.waits.count++
	wait, ok := s.missing[row.Token]
	delete(s.missing, row.Token)
	switch {
	case !ok:
		s.waits.found(fmt.Sprintf("instance %s does not wait by token %s", s.at, row.Token))
	case wait.EventType != row.EventType || wait.Spec != row.Spec || wait.KeyHash != row.KeyHash:
		s.waits.found(fmt.Sprintf("the wait of instance %s by token %s is for %s of %s, its snapshot's is for %s of %s, or their keys differ",
			s.at, row.Token, row.EventType, row.Spec, wait.EventType, wait.Spec))
	}
	return nil
}

// Findings are what it came to.
func (s *States) Findings() []Finding {
	s.end()
	return []Finding{s.snapshots.Finding(), s.instances.Finding(), s.waits.Finding()}
}

func (row *State) snapshot() (snapshot.Snapshot, error) {
	if row.Sum != projections.Sum(row.Raw) {
		return snapshot.Snapshot{}, problem.New(problem.Internal, "snapshot.corrupt", "instance %s: the snapshot does not have its checksum", row.SnapshotID)
	}
	snap, err := snapshot.Decode(row.Raw)
	if err != nil {
		return snap, problem.Wrap(err, problem.KindOf(err), problem.CodeOf(err), "instance %s", row.SnapshotID)
	}
	if snap.Version != row.Version || snap.InstanceID != row.SnapshotID {
		err = problem.New(problem.Internal, "snapshot.corrupt", "instance %s version %d: the snapshot is of %s version %d", row.SnapshotID, row.Version, snap.InstanceID, snap.Version)
	}
	return snap, err
}

// begin makes the rows anew that repeat a snapshot, as its turn has made them.
func (s *States) begin(snap *snapshot.Snapshot, have *projections.Instance) error {
	rows, err := projections.Fold(nil, &engine.Outcome{Snapshot: *snap}, have.StartKey, nil)
	if err != nil {
		return err
	}
	correlation.Waits(&rows, nil, snap)
	s.missing = map[string]projections.Wait{}
	for _, w := range rows.Waits {
		s.missing[w.Token] = w
	}
	s.instances.count++
	if what := differs(have, rows.Instance); what != "" {
		s.instances.found("the row of instance " + s.at + what)
	}
	return nil
}

// end counts what the rows of the last instance's waits have not said.
func (s *States) end() {
	for _, token := range slices.Sorted(maps.Keys(s.missing)) {
		s.waits.count++
		s.waits.found(fmt.Sprintf("the wait of instance %s by token %s has no row", s.at, token))
	}
	s.missing = nil
}

// differs says what the row of an instance says otherwise than its snapshot. The
// row says where the instance has come to rest, and may be older than the
// snapshot, by a clock that was faster: what changes between two rests is not
// compared.
func differs(have, want *projections.Instance) string {
	if have.ID == "" {
		return " is not there"
	}
	if have.Version > want.Version || have.EndedAt.IsZero() != want.EndedAt.IsZero() {
		return fmt.Sprintf(" is of version %d and ended at %s, its snapshot of %d and %s", have.Version, when(have.EndedAt), want.Version, when(want.EndedAt))
	}
	rested := *want
	rested.Version, rested.Position, rested.UpdatedAt, rested.EndedAt = have.Version, have.Position, have.UpdatedAt, have.EndedAt
	a, b := reflect.ValueOf(*have), reflect.ValueOf(rested)
	for i := range a.NumField() {
		x, y := a.Field(i).Interface(), b.Field(i).Interface()
		if t, ok := x.(time.Time); ok {
			x, y = when(t), when(y.(time.Time))
		}
		if x != y {
			return fmt.Sprintf(" says %s %v, its snapshot %v", a.Type().Field(i).Tag.Get("db"), x, y)
		}
	}
	return ""
}

// when writes a moment as stores keep it.
func when(t time.Time) string {
	if t.IsZero() {
		return "no time"
	}
	return t.UTC().Truncate(time.Microsecond).Format(time.RFC3339Nano)
}
