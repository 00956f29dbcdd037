package service

import (
	"context"

	"github.com/aqueduct-engine/aqueduct/operate"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// Rewind takes an instance back to what it was, in one turn, if it has not gone on since
// it was read. With new keys the outside is asked anew for what it is asked for again,
// else under the keys of before. A dry run only says whether it can. Problems: those of
// operate.Rewindable and operate.BackTo, rewind.stale, and
// definition.elsewhere: nobody else is asked.
func (o *Operator) Rewind(ctx context.Context, s, past *snapshot.Snapshot, newKeys, dryRun bool, actor string) error {
	err := operate.Rewindable(s, past)
	if err == nil && !newKeys {
		err = operate.SameKeys(s, past)
	}
	if err != nil || dryRun {
		return err
	}
	incarnation := ""
	if newKeys {
		incarnation = NewIncarnation()
	}
	with, err := operate.BackTo(*past, s.Version, incarnation)
	if err != nil {
		return err
	}
	_, err = o.Operate(ctx, s.InstanceID, operate.Rewind, with, actor)
	return err
}
