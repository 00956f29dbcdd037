package runtime

import (
	"context"
	"slices"

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
	var had []attribute.Value
	if prev != nil {
		before := list
		if prev.Definition != next.Definition {
			if before, err = declared(ctx, all, prev); err != nil {
				return err
			}
		} else if len(list) == 0 || attribute.Same(prev, next, list) {
			return nil
		}
		if had, err = attribute.Of(prev, before); err != nil {
			return err
		}
	}
	has, err := attribute.Of(next, list)
	if err != nil {
		return turn.Output(err)
	}
	for _, v := range has {
		i := slices.IndexFunc(had, func(h attribute.Value) bool { return h.Name == v.Name })
		if i >= 0 && slices.Equal(had[i].Key, v.Key) {
			continue
		}
		rows.Attributes = append(rows.Attributes, projections.Attribute{InstanceID: next.InstanceID, Name: v.Name, Kind: string(v.Kind), Value: v.Text, Key: v.Key})
	}
	for _, h := range had {
		if !slices.ContainsFunc(has, func(v attribute.Value) bool { return h.Name == v.Name }) {
			rows.Attributes = append(rows.Attributes, projections.Attribute{InstanceID: next.InstanceID, Name: h.Name, Kind: string(h.Kind)})
		}
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
