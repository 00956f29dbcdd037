package memory

import (
	"cmp"
	"context"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"github.com/aqueduct-engine/aqueduct/attribute"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// attribute puts values in the place of those that an instance has.
func (t *data) attribute(id string, list []projections.Attribute) {
	for _, a := range list {
		if a.InstanceID == "" {
			a.InstanceID = id
		}
		have := maps.Clone(t.attributes[a.InstanceID])
		if have == nil {
			have = map[string]projections.Attribute{}
		}
		delete(have, a.Name)
		if a.Key != nil {
			a.Key = slices.Clone(a.Key)
			have[a.Name] = a
		}
		t.attributes[a.InstanceID] = have
	}
}

// Attributes implements backend.InstanceReader.
func (s *Store) Attributes(ctx context.Context, id string) ([]projections.Attribute, error) {
	return view(ctx, s, func(t *data) ([]projections.Attribute, error) {
		list := []projections.Attribute{}
		for _, name := range slices.Sorted(maps.Keys(t.attributes[id])) {
			list = append(list, t.attributes[id][name])
		}
		return list, nil
	})
}

// where says whether an instance fits every condition.
func (t *data) where(i projections.Instance, list []attribute.Condition) bool {
	for k := range list {
		c := &list[k]
		key := t.attributes[i.ID][c.Name].Key
		if field, known := attribute.Fields[c.Name]; known {
			key = fieldKey(i, c.Name, field)
		}
		if key == nil || key[0] != c.Values[0].Key[0] || !holds(c, key) {
			return false
		}
	}
	return true
}

// fieldKey is what a field of an instance is compared by: the moments with a length that
// keeps their order, the texts as they are.
func fieldKey(i projections.Instance, name string, kind attribute.Kind) []byte {
	text := map[string]string{"state": i.Position, "status": i.Status, "businessKey": i.BusinessKey}[name]
	if kind == attribute.Time {
		text = i.StartedAt.Format("2006-01-02T15:04:05.999999999Z07:00")
		if name == "updatedAt" {
			text = i.UpdatedAt.Format("2006-01-02T15:04:05.999999999Z07:00")
		}
	} else if text == "" {
		return nil
	} else {
		return append([]byte{'s'}, text...)
	}
	c, err := attribute.Where("startedAt = " + text)
	if err != nil {
		return nil
	}
	return c[0].Values[0].Key
}

func holds(c *attribute.Condition, key []byte) bool {
	order := slices.Compare(key, c.Values[0].Key)
	switch c.Operator {
	case "!=":
		return order != 0
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	case ">=":
		return order >= 0
	case "startsWith":
		return strings.HasPrefix(string(key), string(c.Values[0].Key))
	}
	return slices.ContainsFunc(c.Values, func(v attribute.Value) bool { return slices.Equal(v.Key, key) })
}

// ordered is a page in the order of an attribute.
func (t *data) ordered(q backend.InstanceQuery, fit func(projections.Instance) bool) (backend.Page[projections.Instance], error) {
	type row struct {
		mark string
		projections.Instance
	}
	p := backend.Page[projections.Instance]{Items: []projections.Instance{}}
	text, id, ok := strings.Cut(q.After, ".")
	if _, err := hex.DecodeString(text); q.After != "" && (!ok || err != nil || text == "" || id == "") {
		return p, problem.New(problem.Invalid, "page.invalid", "%.64q is not the end of a page in this order", q.After)
	}
	way := 1
	if q.Descending {
		way = -1
	}
	compare := func(a, b string) int { // of a mark; hex keeps the order of bytes, and the dot is before all digits
		return way * cmp.Compare(a, b)
	}
	var found []row
	for _, i := range t.instances {
		key := t.attributes[i.row.ID][q.OrderBy].Key
		if mark := hex.EncodeToString(key) + "." + i.row.ID; key != nil && fit(i.row) && (q.After == "" || compare(mark, q.After) > 0) {
			found = append(found, row{mark, i.row})
		}
	}
	slices.SortFunc(found, func(a, b row) int { return compare(a.mark, b.mark) })
	for n, r := range found {
		if n == bounded(q.Limit) {
			p.Next = found[n-1].mark
			break
		}
		p.Items = append(p.Items, r.Instance)
	}
	return p, nil
}

// forget deletes everything of an instance.
func (t *data) forget(id string) {
	delete(t.instances, id)
	delete(t.snapshots, id)
	delete(t.streams, id)
	delete(t.attributes, id)
	maps.DeleteFunc(t.deadLetterEdits, func(_ string, list []backend.DeadLetterEdit) bool { return list[0].InstanceID == id })
	maps.DeleteFunc(t.activities, func(of [2]string, _ backend.Activity) bool { return of[0] == id })
	for token, w := range t.waits {
		if w.InstanceID == id {
			delete(t.waits, token)
		}
	}
	for task, r := range t.tasks {
		if r.row.InstanceID == id {
			delete(t.tasks, task)
			delete(t.events, task)
		}
	}
}

// NextLive implements backend.InstanceReader.
func (s *Store) NextLive(ctx context.Context, definition, after string) (string, error) {
	return view(ctx, s, func(t *data) (next string, err error) {
		for _, r := range t.instances {
			if i := r.row; i.Definition == definition && i.EndedAt.IsZero() && i.DefVersion > after && (next == "" || i.DefVersion < next) {
				next = i.DefVersion
			}
		}
		return next, nil
	})
}
