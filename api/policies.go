package api

import (
	"context"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/problem"
)

func (s definitionAPI) policyOperations(h huma.API) {
	register(s.service, h, operation("list-policies", http.MethodGet, "/v1/policies", "policies",
		"List the published policies, in order of name and version"), s.listPolicies)
	register(s.service, h, operation("list-policy-versions", http.MethodGet, "/v1/policies/{environment}/{definition}", "policies",
		"List the policies of a lifecycle in the order of their publication: the last one counts", http.StatusNotFound), s.listPolicyVersions)
	register(s.service, h, operation("get-policy", http.MethodGet, "/v1/policies/{environment}/{definition}/{version}", "policies",
		"Show a policy", http.StatusNotFound), s.getPolicy)
	register(s.service, h, operation("compare-policies", http.MethodGet, "/v1/policies/{environment}/{definition}/{version}/diff/{to}", "policies",
		"Compare two policies of a lifecycle", http.StatusNotFound), s.comparePolicies)
}

func (s definitionAPI) listPolicies(ctx context.Context, in *struct{ Paging }) (*answer[client.Page[client.Definition]], error) {
	if in.After == "" {
		in.After = definition.PolicyPrefix
	}
	return s.listDefinitions(ctx, in)
}

// ByLifecycle names the lifecycle that policies are of.
type ByLifecycle struct {
	Environment string `path:"environment" maxLength:"256"`
	Definition  string `path:"definition" maxLength:"256"`
}

func (p ByLifecycle) full() string { return p.Environment + "/" + p.Definition }

type policyVersionsInput struct {
	ByLifecycle
	Paging
}

func (s definitionAPI) listPolicyVersions(ctx context.Context, in *policyVersionsInput) (*answer[client.Page[client.Definition]], error) {
	after := 0 // the ordinal of the last one of the page before
	if in.After != "" {
		var err error
		if after, err = strconv.Atoi(in.After); err != nil || after < 1 {
			return nil, problem.New(problem.Invalid, "page.invalid", "%s is not the next of a page", clip(in.After))
		}
	}
	rows, err := s.Definitions.Versions(ctx, definition.PolicyPrefix+in.full(), after)
	if problem.KindOf(err) == problem.NotFound && err != nil || err == nil && len(rows) == 0 && after == 0 {
		err = problem.New(problem.NotFound, "policy.unknown", "%s has no policy", clip(in.full()))
	}
	if err != nil {
		return nil, err
	}
	page := client.Page[client.Definition]{}
	if len(rows) > in.Limit {
		rows = rows[:in.Limit]
		page.Next = strconv.Itoa(rows[in.Limit-1].Ordinal)
	}
	page.Items = convert(rows, toDefinition)
	return ok(page), nil
}

type policyInput struct {
	ByLifecycle
	Version string `path:"version" maxLength:"256"`
}

func (s definitionAPI) getPolicy(ctx context.Context, in *policyInput) (*answer[client.Policy], error) {
	r, err := s.policy(ctx, in.ByLifecycle, in.Version)
	if err != nil {
		return nil, err
	}
	return ok(client.Policy{Definition: toDefinition(r), Document: r.Document}), nil
}

func (s definitionAPI) policy(ctx context.Context, of ByLifecycle, version string) (definition.Record, error) {
	r, err := s.Definitions.Definition(ctx, definition.PolicyPrefix+of.full(), version)
	return r, missing(err, "policy.unknown", "%s has no policy %s", clip(of.full()), clip(version))
}

type comparePoliciesInput struct {
	ByLifecycle
	Version string `path:"version" maxLength:"256"`
	To      string `path:"to" maxLength:"256" doc:"The version to compare with."`
}

func (s definitionAPI) comparePolicies(ctx context.Context, in *comparePoliciesInput) (*answer[client.PolicyComparison], error) {
	from, err := s.policy(ctx, in.ByLifecycle, in.Version)
	if err != nil {
		return nil, err
	}
	to, err := s.policy(ctx, in.ByLifecycle, in.To)
	if err != nil {
		return nil, err
	}
	changes, err := definition.DiffPolicies(from.Document, to.Document)
	if err != nil {
		return nil, err
	}
	ref := func(r definition.Record) client.DefinitionRef {
		return client.DefinitionRef{Name: r.Name, Version: r.Version, Digest: r.Digest}
	}
	return ok(client.PolicyComparison{From: ref(from), To: ref(to), Changes: convert(changes, toChange)}), nil
}
