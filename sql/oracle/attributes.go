package oracle

import (
	"context"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/lists"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// attribute writes a value that an instance is found by; first says that it had none.
func (w *work) attribute(a *projections.Attribute, first bool) {
	if !first {
		w.add(nil, "attribute_delete", a.InstanceID, a.Name)
	}
	if a.Key != nil {
		w.add(nil, "attribute_insert", a.InstanceID, a.Name, a.Kind, a.Value, a.Key)
	}
}

// Attributes implements backend.InstanceReader.
func (s instances) Attributes(ctx context.Context, id string) ([]projections.Attribute, error) {
	r := read("attribute_select")
	r.Where("A.INSTANCE_ID = ?", id)
	r.Order("A.NAME", projections.MaxLimit)
	items, err := list[projections.Attribute](ctx, s.Store, r)
	return items, wrap("attributes of "+id, err)
}

// ordered is a page in the order of the values of an attribute.
func (s instances) ordered(ctx context.Context, q *backend.InstanceQuery, filter *lists.Filter) (p backend.Page[projections.Instance], err error) {
	r, limit := read("instance_ordered"), projections.Bounded(q.Limit)
	if err := filter.Ordered(r, q); err != nil {
		return p, wrap("instances", err)
	}
	found, err := list[lists.OrderedRow](ctx, s.Store, r)
	return lists.Cut(found, limit, lists.OrderedRow.Item, lists.OrderedRow.Mark), wrap("instances", err)
}
