package api

import (
	"context"
	"encoding/json"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"

	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/attribute"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// listInstancesInput has a longer After than other lists: the value of an attribute is in it.
type listInstancesInput struct {
	After       string `query:"after" maxLength:"8192" doc:"The next of the page before."`
	Limit       int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"Items at most."`
	Definition  string `query:"definition" maxLength:"256"`
	Version     string `query:"version" maxLength:"256" doc:"Of the definition."`
	Status      string `query:"status" enum:"pending,running,waiting,suspended,cancelled,faulted,completed,compensated"`
	BusinessKey string `query:"businessKey" maxLength:"256"`
	Parent      string `query:"parent" maxLength:"128" doc:"Only those that this instance started."`
	ErrorCode   string `query:"errorCode" maxLength:"512" doc:"Only those that stand at an error of this type, or of this part of it behind the last /."`
	Text        string `query:"text" maxLength:"256" doc:"Only those with this in the words of that error, of the newest 20000 that have one."`
	OlderThan   string `query:"olderThan" maxLength:"32" doc:"Only those that have not visibly changed for so long." example:"1h"`
	Where       string `query:"where" maxLength:"4096" doc:"Conditions on search attributes, and on state, status, businessKey, startedAt and updatedAt, with and between them." example:"amount > 1000 and state = \"Review\""`
	OrderBy     string `query:"orderBy" maxLength:"65" doc:"Only those that have this search attribute, in the order of its values; with - before it the largest first." example:"-amount"`
}

func (s instanceAPI) listInstances(ctx context.Context, in *listInstancesInput) (*answer[client.Page[client.Instance]], error) {
	q := backend.InstanceQuery{Definition: in.Definition, Version: in.Version, Status: in.Status, BusinessKey: in.BusinessKey, ParentID: in.Parent, ErrorCode: in.ErrorCode, Text: in.Text, After: in.After, Limit: in.Limit}
	var err error
	if q.Before, err = s.before("query.olderThan", in.OlderThan); err != nil {
		return nil, err
	}
	if q.Definition != "" && !scopeOf(ctx).Has(q.Definition) { // it is none, as one that is not there
		return ok(client.Page[client.Instance]{Items: []client.Instance{}}), nil
	}
	q.OrderBy, q.Descending = strings.CutPrefix(in.OrderBy, "-")
	if in.OrderBy != "" {
		if why := attribute.Named(q.OrderBy); why != "" {
			return nil, invalid("query.orderBy", "%s names no search attribute: %s", clip(in.OrderBy), why)
		}
	}
	if in.Where != "" {
		if q.Where, err = attribute.Where(in.Where); err != nil {
			return nil, err
		}
	}
	if err := s.searched(ctx, &q); err != nil {
		return nil, err
	}
	if err := inOrder(in.OrderBy, &q.After); err != nil {
		return nil, err
	}
	p, err := s.Reader.Instances.Instances(ctx, q)
	if err == nil && len(p.Items) == 0 && q.After == "" {
		err = s.declared(ctx, &q)
	}
	if err != nil {
		return nil, err
	}
	if p.Next != "" && in.OrderBy != "" {
		p.Next = orderMark(in.OrderBy) + p.Next
	}
	return ok(client.Page[client.Instance]{Items: convert(p.Items, toInstance), Next: p.Next}), nil
}

// orderMark begins the ends of pages in an order: they say nothing in another one.
func orderMark(orderBy string) string {
	return strconv.FormatUint(uint64(crc32.ChecksumIEEE([]byte(orderBy))), 36) + "."
}

// inOrder takes its order from the end of a page. The problem is page.invalid.
func inOrder(orderBy string, after *string) error {
	if orderBy == "" || *after == "" {
		return nil
	}
	rest, of := strings.CutPrefix(*after, orderMark(orderBy))
	if !of {
		return problem.New(problem.Invalid, "page.invalid", "%s is not the next of a page in the order %s", clip(*after), clip(orderBy)).
			WithHint("give after with the orderBy of the page that it is from")
	}
	*after = rest
	return nil
}

// declaredMax is how many definitions are asked whether they declare what a filter without
// a definition is for. Beyond them it finds nothing, and says nothing.
const declaredMax = 200

// declared holds a filter that has found nothing, in no definition, against what all of them
// declare in any version: a name that nobody has declared is a mistake.
func (s instanceAPI) declared(ctx context.Context, q *backend.InstanceQuery) error {
	isAttribute := func(c attribute.Condition) bool { return !c.IsField() }
	if q.Definition != "" || q.OrderBy == "" && !slices.ContainsFunc(q.Where, isAttribute) {
		return nil
	}
	list, err := s.Definitions.Definitions(ctx, "", declaredMax+1)
	if err != nil || len(list) > declaredMax {
		return err
	}
	var known []attribute.Declared
	for _, d := range list {
		versions, err := s.Definitions.Versions(ctx, d.Name, 0)
		if err != nil {
			return err
		}
		for _, v := range versions {
			more, err := s.Operator.SearchAttributes(ctx, v.Name, v.Version)
			if err != nil {
				return nil // what it declares is not known here: the list stands as it is
			}
			known = append(known, more...)
		}
		if attribute.Check(q.Where, q.OrderBy, known) == nil {
			return nil
		}
	}
	return attribute.Check(q.Where, q.OrderBy, known)
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
