package embedded

import (
	"context"
	"fmt"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/sql/lists"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/conn"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// attributeRows writes what instances are found by.
type attributeRows struct{}

// Guard implements sqlite.Extra.
func (attributeRows) Guard(sqlite.Tx, *store.Change) error { return nil }

// Write implements sqlite.Extra.
func (attributeRows) Write(t sqlite.Tx, no int64, id string, c *store.Change) error {
	for i := range c.Rows.Attributes {
		a := &c.Rows.Attributes[i]
		no, err := t.Owner(no, id, a.InstanceID)
		if err != nil {
			return err
		}
		if a.Key == nil {
			_, _, err = t.Exec("attribute_delete", no, a.Name)
		} else {
			_, _, err = t.Exec("attribute_put", no, a.Name, a.Kind, conn.Text(a.Value), conn.Blob(a.Key))
		}
		if err != nil {
			return fmt.Errorf("attribute %s: %w", a.Name, err)
		}
	}
	return nil
}

// Forget implements sqlite.Extra.
func (attributeRows) Forget() {}

// Attributes implements backend.InstanceReader.
func (s instances) Attributes(ctx context.Context, id string) ([]projections.Attribute, error) {
	items, err := sqlite.List[projections.Attribute](ctx, s.Store, read("attributes", id, projections.MaxLimit))
	return items, wrap("attributes of "+id, err)
}

// ordered is a page in the order of the values of an attribute.
func (s instances) ordered(ctx context.Context, q *backend.InstanceQuery, filter *lists.Filter) (p backend.Page[projections.Instance], err error) {
	r, limit := read("instance_ordered"), projections.Bounded(q.Limit)
	if err := filter.Ordered(r, q); err != nil {
		return p, wrap("instances", err)
	}
	found, err := sqlite.List[lists.OrderedRow](ctx, s.Store, r)
	return lists.Cut(found, limit, lists.OrderedRow.Item, lists.OrderedRow.Mark), wrap("instances", err)
}
