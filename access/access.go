// Package access says who may do what. A [Gate] finds out whose a request is, by
// what its Authorization header bears or by the certificate of its connection, and
// lets it do what the roles of its principal say ([May]). Without this package a node knows nobody, and is reached
// from its own host alone.
package access

import (
	"context"
	"crypto/x509"
	"errors"
	"slices"
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
	Verifiers    []Verifier
	Certificates *Certificates // nil = nobody is known by one
	Events       EventTypes    // nil = who may publish events may publish any
}

// Shown is by what a request says whose it is: one of the two.
type Shown struct {
	Authorization string
	Certificates  []*x509.Certificate // of the connection, which has proved that it holds the first; whom to believe is not decided yet
}

// maxBearer bounds what is looked at: a token of an identity provider may list
// many groups.
const maxBearer = 24 << 10

// Admit says who asks for an operation with what they show, and refuses who may not.
// Who is refused although they are known is in the answer, too. Problems:
// access.token-missing, access.token-refused, access.certificate-refused,
// access.denied, access.unavailable.
func (g *Gate) Admit(ctx context.Context, s Shown, operation string) (principal.Principal, error) {
	if s.Authorization == "" && Anybody(operation) {
		return principal.Principal{Kind: principal.Nobody, Via: principal.API}, nil
	}
	p, err := g.known(ctx, s)
	if err != nil {
		return p, err
	}
	if p.Via == "" {
		p.Via = principal.API
	}
	if !Anybody(operation) && !May(operation, p.Roles) {
		return p, problem.New(problem.Denied, "access.denied", "%s, with the roles [%s], may not do %s", p.Name, strings.Join(p.Roles, ", "), operation).
			WithHint("%s needs one of the roles %s", operation, strings.Join(operations[operation], ", "))
	}
	if !Anybody(operation) {
		if err := keep(&p, operation); err != nil {
			return p, err
		}
	}
	if g.Events != nil && slices.Contains(says, operation) {
		p.Types = g.Events.of(&p)
	}
	p.Speaks = Cover(p.Roles, p.Scope, Application, Admin)
	return p, nil
}

func (g *Gate) known(ctx context.Context, s Shown) (principal.Principal, error) {
	if g.Certificates != nil && len(s.Certificates) > 0 {
		return g.Certificates.Holder(s.Certificates)
	}
	scheme, bearer, _ := strings.Cut(s.Authorization, " ")
	if bearer = strings.TrimSpace(bearer); !strings.EqualFold(scheme, "Bearer") || bearer == "" {
		return principal.Principal{}, problem.New(problem.Denied, "access.token-missing", "the request does not say who sends it").
			WithHint("send Authorization: Bearer TOKEN; engine-node takes it from --token-file, else from AQUEDUCT_TOKEN, and a certificate from --cert-file")
	}
	return g.verify(ctx, bearer)
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
