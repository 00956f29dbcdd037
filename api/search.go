package api

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/attribute"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// listInstancesInput has a longer After than other lists: the value of an attribute is in it.
type listInstancesInput struct {
	After       string `query:"after" maxLength:"4096" doc:"The next of the page before."`
	Limit       int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"Items at most."`
	Definition  string `query:"definition" maxLength:"256"`
	Status      string `query:"status" enum:"pending,running,waiting,suspended,cancelled,faulted,completed,compensated"`
	BusinessKey string `query:"businessKey" maxLength:"256"`
	Parent      string `query:"parent" maxLength:"128" doc:"Only those that this instance started."`
	Where       string `query:"where" maxLength:"4096" doc:"Conditions on search attributes, and on state, status, businessKey, startedAt and updatedAt, with and between them." example:"amount > 1000 and state = \"Review\""`
	OrderBy     string `query:"orderBy" maxLength:"65" doc:"Only those that have this search attribute, in the order of its values; with - before it the largest first." example:"-amount"`
}

func (s instanceAPI) listInstances(ctx context.Context, in *listInstancesInput) (*answer[client.Page[client.Instance]], error) {
	q := backend.InstanceQuery{Definition: in.Definition, Status: in.Status, BusinessKey: in.BusinessKey, ParentID: in.Parent, After: in.After, Limit: in.Limit}
	q.OrderBy, q.Descending = strings.CutPrefix(in.OrderBy, "-")
	if in.OrderBy != "" {
		if why := attribute.Named(q.OrderBy); why != "" {
			return nil, invalid("query.orderBy", "%s names no search attribute: %s", clip(in.OrderBy), why)
		}
	}
	if in.Where != "" {
		var err error
		if q.Where, err = attribute.Where(in.Where); err != nil {
			return nil, err
		}
	}
	if err := s.searched(ctx, &q); err != nil {
		return nil, err
	}
	p, err := s.Reader.Instances.Instances(ctx, q)
	if err != nil {
		return nil, err
	}
	return ok(client.Page[client.Instance]{Items: convert(p.Items, toInstance), Next: p.Next}), nil
}

// searched holds a filter against what the definition declares that it is for, in any of its
// versions: a name that nobody has declared would find nothing, and say nothing.
func (s instanceAPI) searched(ctx context.Context, q *backend.InstanceQuery) error {
	if q.Definition == "" || len(q.Where) == 0 && q.OrderBy == "" {
		return nil
	}
	known, err := s.Operator.SearchAttributes(ctx, q.Definition, "")
	if err != nil {
		return err
	}
	wrong := attribute.Check(q.Where, q.OrderBy, known)
	if wrong == nil {
		return nil
	}
	older, err := s.Definitions.Versions(ctx, q.Definition, 0)
	if err != nil {
		return err
	}
	for _, r := range older {
		more, err := s.Operator.SearchAttributes(ctx, r.Name, r.Version)
		if err != nil {
			return err
		}
		known = append(known, more...)
	}
	return attribute.Check(q.Where, q.OrderBy, known)
}

// toAttributes is an object of what an instance is found by; nil = nothing.
func toAttributes(list []projections.Attribute) json.RawMessage {
	if len(list) == 0 {
		return nil
	}
	values := map[string]json.RawMessage{}
	for _, a := range list {
		switch attribute.Kind(a.Kind) {
		case attribute.Decimal, attribute.Boolean: // as JSON has them
			values[a.Name] = json.RawMessage(a.Value)
		default:
			values[a.Name] = text(a.Value)
		}
	}
	return object(values)
}

func text(s string) json.RawMessage {
	b, _ := json.Marshal(s) // strings cannot fail
	return b
}
