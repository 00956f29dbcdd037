package runtime

import (
	"context"

	"github.com/aqueduct-engine/aqueduct/attribute"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// searchable adds to the rows of a turn the values by which its instance is found, where
// they have changed. A value that none can be is the author's fault: the turn is not
// written, and the instance faults.
func searchable(ctx context.Context, all Definitions, prev, next *snapshot.Snapshot, rows *projections.Rows) error {
	list, err := declared(ctx, all, next)
	if err != nil {
		return err
	}
	var changes []attribute.Value
	if prev != nil && prev.Definition == next.Definition {
		if changes, err = attribute.Changes(prev, next, list); err != nil {
			return turn.Output(err)
		}
	} else {
		var had []attribute.Value
		if prev != nil {
			before, err := declared(ctx, all, prev)
			if err == nil {
				had, err = attribute.Of(prev, before)
			}
			if err != nil {
				return err
			}
		}
		has, err := attribute.Of(next, list)
		if err != nil {
			return turn.Output(err)
		}
		changes = attribute.Differences(had, has)
	}
	for _, v := range changes {
		rows.Attributes = append(rows.Attributes, projections.Attribute{InstanceID: next.InstanceID, Name: v.Name, Kind: string(v.Kind), Value: v.Text, Key: v.Key})
	}
	return nil
}

// declared are the attributes of an instance's definition. One that keeps a schedule has
// none, for it has no data.
func declared(ctx context.Context, all Definitions, s *snapshot.Snapshot) ([]attribute.Declared, error) {
	if s.Schedule != nil {
		return nil, nil
	}
	def, err := all.Pinned(ctx, s.Definition)
	if err != nil {
		return nil, err
	}
	if d, ok := def.(attribute.Searchable); ok {
		return d.SearchAttributes(), nil
	}
	return nil, nil
}
