// Package access says who may do what. A [Gate] finds out whose a request is, by
// what its Authorization header bears, and lets it do what the roles of its
// principal say ([May]). Without this package a node knows nobody, and is reached
// from its own host alone.
package access

import (
	"context"
	"errors"
	"strings"

	"github.com/aqueduct-engine/aqueduct/principal"
	"github.com/aqueduct-engine/aqueduct/problem"
)

// Verifier finds out who bears something. What is not of its kind it passes on
// with ErrOther; any other error refuses it.
type Verifier interface {
	Verify(ctx context.Context, bearer string) (principal.Principal, error)
}

// ErrOther says that a verifier knows nothing of the kind.
var ErrOther = errors.New("access: of another kind")

// Gate lets requests in.
type Gate struct {
	Verifiers []Verifier
}

// maxBearer bounds what is looked at: a token of an identity provider may list
// many groups.
const maxBearer = 24 << 10

// Admit says who asks for an operation with an Authorization header, and refuses
// who may not. Who is refused although they are known is in the answer, too.
// Problems: access.token-missing, access.token-refused, access.denied,
// access.unavailable.
func (g *Gate) Admit(ctx context.Context, authorization, operation string) (principal.Principal, error) {
	if authorization == "" && Anybody(operation) {
		return principal.Principal{Kind: principal.Nobody, Via: principal.API}, nil
	}
	scheme, bearer, _ := strings.Cut(authorization, " ")
	if bearer = strings.TrimSpace(bearer); !strings.EqualFold(scheme, "Bearer") || bearer == "" {
		return principal.Principal{}, problem.New(problem.Denied, "access.token-missing", "the request does not say who sends it").
			WithHint("send Authorization: Bearer TOKEN; engine-node takes it from --token-file, else from AQUEDUCT_TOKEN")
	}
	p, err := g.verify(ctx, bearer)
	if err != nil {
		return p, err
	}
	p.Via = principal.API
	p.Speaks = p.Has(Application) || p.Has(Admin)
	if !Anybody(operation) && !May(operation, p.Roles) {
		return p, problem.New(problem.Denied, "access.denied", "%s, with the roles [%s], may not do %s", p.Name, strings.Join(p.Roles, ", "), operation).
			WithHint("%s needs one of the roles %s", operation, strings.Join(operations[operation], ", "))
	}
	return p, nil
}

func (g *Gate) verify(ctx context.Context, bearer string) (principal.Principal, error) {
	if len(bearer) > maxBearer {
		return principal.Principal{}, refused()
	}
	for _, v := range g.Verifiers {
		p, err := v.Verify(ctx, bearer)
		if !errors.Is(err, ErrOther) {
			return p, err
		}
	}
	return principal.Principal{}, refused()
}

// refused is the same whatever is wrong with a token: it tells nobody which
// there are.
func refused() error {
	return problem.New(problem.Denied, "access.token-refused", "the token is not valid: unknown, expired or revoked").
		WithHint("ask an administrator for another: engine-node tokens create")
}
