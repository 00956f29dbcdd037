package client

import (
	"context"
	"encoding/json"
	"net/url"
)

const policies = "/v1/policies"

// Policy is a policy with what it says.
type Policy struct {
	Definition
	Document json.RawMessage `json:"document" doc:"As JSON."`
}

// PolicyComparison says how two policies of a lifecycle differ.
type PolicyComparison struct {
	From    DefinitionRef      `json:"from"`
	To      DefinitionRef      `json:"to"`
	Changes []DefinitionChange `json:"changes" nullable:"false"`
}

// Policies lists the policies of a lifecycle, environment/definition, in the order of
// their publication: the last one counts. "" lists those of all, by name. They are
// published as definitions are.
func (c definitionCalls) Policies(ctx context.Context, lifecycle string, l List) (Page[Definition], error) {
	if lifecycle != "" {
		return get[Page[Definition]](ctx, c.caller, policies+"/"+named(lifecycle), l.in(url.Values{}))
	}
	return get[Page[Definition]](ctx, c.caller, policies, l.in(url.Values{}))
}

// Policy returns a policy of a lifecycle.
func (c definitionCalls) Policy(ctx context.Context, lifecycle, version string) (Policy, error) {
	return get[Policy](ctx, c.caller, policies+"/"+named(lifecycle)+"/"+url.PathEscape(version), nil)
}

// ComparePolicies says how two policies of a lifecycle differ.
func (c definitionCalls) ComparePolicies(ctx context.Context, lifecycle, from, to string) (PolicyComparison, error) {
	return get[PolicyComparison](ctx, c.caller, policies+"/"+named(lifecycle)+"/"+url.PathEscape(from)+"/diff/"+url.PathEscape(to), nil)
}
