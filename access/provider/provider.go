// Package provider knows whom an identity provider vouches for: the bearer of a JSON
// Web Token, as OpenID Connect Core 1.0 and RFC 9068 have them, that is signed with a
// key of the provider, not expired, and made for this API. Without this package a node
// knows the bearers of its own tokens alone.
package provider

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"golang.org/x/oauth2"

	"github.com/aqueduct-engine/aqueduct/access"
	"github.com/aqueduct-engine/aqueduct/principal"
	"github.com/aqueduct-engine/aqueduct/problem"
)

// Options say whom to believe, and what.
type Options struct {
	Issuer    string              // URL of the provider, as its tokens name it
	Audiences []string            // a token is for one of them, at least
	Name      string              // claim that is the name of who bears it; names of its parts are separated by dots
	Groups    string              // claim of their groups, a list or one; "" = they have none
	Roles     map[string][]string // what the members of a group may do, by group
	Transport http.RoundTripper   // to the provider
	Now       func() time.Time    // by which tokens expire
	Log       *slog.Logger
}

// MaxGroups is how many groups a token may name: as many as the API asks tasks for.
const MaxGroups = 100

const (
	maxName  = 256             // bytes, as of the actor of a signal
	patience = 5 * time.Second // with the provider
	again    = 5 * time.Second // after the provider could not be reached
)

// Provider is an access.Verifier. It asks the provider for its keys when the first
// token comes, and again when one is signed with a key that it does not know: a key
// that is changed is known at its first use.
type Provider struct {
	Options
	asks   *sparing // what client asks by
	client *http.Client

	mu       sync.Mutex // held while the provider is discovered: all who come then wait for it
	verifier *oidc.IDTokenVerifier
	endpoint oauth2.Endpoint // where a browser logs in, and its code is exchanged
	inHeader bool            // a client shows its secret in a header there, else in the form
	tried    time.Time
	failed   error
}

// New believes a provider. Problems: config.url, config.needs, config.role.
func New(o Options) (*Provider, error) {
	if err := CheckIssuer(o.Issuer); err != nil {
		return nil, err
	}
	if len(o.Audiences) == 0 || slices.Contains(o.Audiences, "") {
		return nil, problem.New(problem.Invalid, "config.needs", "no audience is named: a token for any other service of the provider would do").
			WithHint("name what the provider writes into aud for this API")
	}
	for _, group := range slices.Sorted(maps.Keys(o.Roles)) {
		if err := access.CheckRoles(o.Roles[group]); err != nil {
			return nil, problem.Wrap(err, problem.Invalid, "config.role", "what members of %.100q may do", group).
				WithHint("the roles are %s", strings.Join(access.Roles, ", "))
		}
	}
	if o.Transport == nil {
		o.Transport = http.DefaultTransport
	}
	asks := &sparing{next: o.Transport, asked: map[string]time.Time{}, answered: map[string]time.Time{}}
	return &Provider{Options: o, asks: asks, client: &http.Client{Transport: asks, Timeout: patience}}, nil
}

// CheckIssuer refuses what is no URL of a provider. Problem: config.url.
func CheckIssuer(issuer string) error {
	u, err := url.Parse(issuer)
	if err != nil || u.Host == "" || u.Scheme != "https" && !(u.Scheme == "http" && isLoopback(u.Hostname())) {
		return problem.New(problem.Invalid, "config.url", "the issuer %.200q is no https URL", issuer).
			WithHint("write it as the provider's /.well-known/openid-configuration says issuer; http is for loopback alone")
	}
	return nil
}

// Verify implements access.Verifier.
func (p *Provider) Verify(ctx context.Context, bearer string) (principal.Principal, error) {
	return p.vouched(ctx, bearer, func(*oidc.IDToken) bool { return true })
}

// vouched is whom the provider vouches for by a token that is as somebody wants it.
func (p *Provider) vouched(ctx context.Context, bearer string, fits func(*oidc.IDToken) bool) (principal.Principal, error) {
	if strings.Count(bearer, ".") != 2 || !strings.HasPrefix(bearer, "ey") {
		return principal.Principal{}, access.ErrOther
	}
	v, err := p.discovered(ctx)
	if err != nil {
		return principal.Principal{}, problem.Wrap(err, problem.Unavailable, "access.unavailable", "the identity provider does not say whether the token is valid")
	}
	var fate error
	token, err := v.Verify(context.WithValue(ctx, fateKey{}, &fate), bearer)
	if err != nil {
		return principal.Principal{}, p.refusal(ctx, errors.Join(err, fate))
	}
	if weak(bearer) {
		return principal.Principal{}, refused("the provider signs with an RSA key of less than 2,048 bits")
	}
	if !slices.ContainsFunc(token.Audience, func(a string) bool { return slices.Contains(p.Audiences, a) }) {
		return principal.Principal{}, refused("it was made for another service: its audience is none of this API's")
	}
	if !fits(token) {
		return principal.Principal{}, refused("it is of another login")
	}
	var claims map[string]any
	if err := token.Claims(&claims); err != nil {
		return principal.Principal{}, refused("its claims are no JSON object")
	}
	who, why := p.who(claims)
	if name := misspelt(claims); name != "" {
		why = "it has a claim " + name + ", which the library that reads it takes for another"
	}
	if why != "" {
		return principal.Principal{}, refused(why)
	}
	return who, nil
}

// refusal says what is wrong with a token, as far as that tells nobody how to make a
// better one.
func (p *Provider) refusal(ctx context.Context, err error) error {
	var expired *oidc.TokenExpiredError
	switch {
	case errors.As(err, &expired):
		return refused("it has expired")
	case ctx.Err() != nil:
		return ctx.Err()
	case isAway(err):
		return problem.Wrap(err, problem.Unavailable, "access.unavailable", "the identity provider does not say which its keys are")
	}
	p.Log.DebugContext(ctx, "a token was refused", "reason", err)
	return refused("its signature, issuer or time is not what it must be")
}

func refused(why string) error {
	return problem.New(problem.Denied, "access.token-refused", "the token is not valid: %s", why).
		WithHint("get another from the identity provider: engine-node login")
}

// discovered is what verifies tokens, once the provider has said where its keys are.
func (p *Provider) discovered(ctx context.Context) (*oidc.IDTokenVerifier, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.verifier != nil {
		return p.verifier, nil
	}
	if p.failed != nil && time.Since(p.tried) < again {
		return nil, p.failed
	}
	// It is for all who wait here, so it does not end with the first of them.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	found, err := oidc.NewProvider(oidc.ClientContext(ctx, p.client), p.Issuer)
	if p.tried, p.failed = time.Now(), err; err != nil {
		p.Log.WarnContext(ctx, "the identity provider does not answer", "issuer", p.Issuer, "error", err)
		return nil, err
	}
	var says struct {
		Keys       string   `json:"jwks_uri"`
		Algorithms []string `json:"id_token_signing_alg_values_supported"`
		Confided   []string `json:"token_endpoint_auth_methods_supported"`
	}
	if err := found.Claims(&says); err != nil {
		p.failed = err
		return nil, err
	}
	if u, err := url.Parse(says.Keys); err == nil {
		says.Keys = u.String() // as requests have it
	}
	p.endpoint, p.inHeader = found.Endpoint(), len(says.Confided) == 0 || slices.Contains(says.Confided, "client_secret_basic")
	// Of several audiences one must fit, which Verify sees to.
	set := oidc.NewRemoteKeySet(oidc.ClientContext(context.WithoutCancel(ctx), p.client), says.Keys)
	p.verifier = oidc.NewVerifier(p.Issuer, &keys{set, func() (asked, answered time.Time) { return p.asks.last(says.Keys) }},
		&oidc.Config{SkipClientIDCheck: true, Now: p.Now, SupportedSigningAlgs: asymmetric(says.Algorithms)})
	return p.verifier, nil
}

// asymmetric leaves out what needs a secret, or nothing: whoever knows the keys of the
// provider, which are public, could sign.
func asymmetric(algorithms []string) []string {
	known := []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA}
	kept := slices.DeleteFunc(slices.Clone(algorithms), func(a string) bool { return !slices.Contains(known, a) })
	if len(kept) == 0 {
		return []string{oidc.RS256} // which every provider has
	}
	return kept
}

// weak says that a token is signed with an RSA key of less than 2,048 bits, which RFC
// 7518, section 3.3, forbids. A signature is as long as its key.
func weak(token string) bool {
	signed, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512})
	return err == nil && len(signed.Signatures[0].Signature) < 2_048/8
}

// keys are those of the provider. What keeps them from being read the library puts
// into a text; it is handed round it.
type keys struct {
	oidc.KeySet
	last func() (asked, answered time.Time) // as sparing.last
}

type fateKey struct{}

// VerifySignature implements oidc.KeySet.
func (k *keys) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	came := time.Now()
	payload, err := k.KeySet.VerifySignature(ctx, token)
	for pause := time.Millisecond; k.older(err, came) && pause < time.Second; pause *= 2 {
		payload, err = k.KeySet.VerifySignature(ctx, token)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
	if k.older(err, came) {
		err = &awayError{err}
	}
	if fate, ok := ctx.Value(fateKey{}).(*error); ok {
		*fate = err
	}
	return payload, err
}

// older says that err is of an answer that was on its way before a moment. The library has
// all who wait share one, and for a moment those who come when it is there: a token may have
// been signed with a key that is newer.
func (k *keys) older(err error, came time.Time) bool {
	asked, answered := k.last()
	if isAway(err) {
		return asked.Before(came)
	}
	return err != nil && answered.Before(came)
}

// misspelt is a claim that is one of those by which a token counts but for its letters;
// names of claims are case-sensitive (RFC 7519, section 4), and those of encoding/json,
// which reads them, are not.
func misspelt(claims map[string]any) string {
	for name := range claims {
		for _, known := range []string{"iss", "sub", "aud", "exp", "nbf", "iat", "nonce", "at_hash", "_claim_names", "_claim_sources"} {
			if name != known && strings.EqualFold(name, known) {
				return strconv.Quote(name)
			}
		}
	}
	return ""
}

// who reads the claims; why says what they lack.
func (p *Provider) who(claims map[string]any) (who principal.Principal, why string) {
	name, _ := at(claims, p.Name).(string)
	if name == "" || len(name) > maxName || strings.ContainsFunc(name, unicode.IsControl) {
		return who, "its claim " + p.Name + " is no name"
	}
	if p.Name == "email" && claims["email_verified"] != true && claims["email_verified"] != "true" {
		return who, "its email is not verified"
	}
	who = principal.Principal{Name: name, Kind: principal.User, Roles: []string{}}
	switch groups := at(claims, p.Groups).(type) {
	case string:
		who.Groups = []string{groups}
	case []any:
		for _, g := range groups {
			if g, ok := g.(string); ok {
				who.Groups = append(who.Groups, g)
			}
		}
	}
	who.Groups = principal.Believed(who.Groups)
	if len(who.Groups) > MaxGroups {
		return principal.Principal{}, fmt.Sprintf("it names %d groups, the limit is %d: let the provider send those of this service, in a claim that access.oidc-groups names", len(who.Groups), MaxGroups)
	}
	for _, g := range who.Groups {
		who.Roles = append(who.Roles, p.Roles[g]...)
	}
	slices.Sort(who.Roles)
	who.Roles = slices.Compact(who.Roles)
	return who, ""
}

// at is a claim by its name or, where there is none of it, by the names of the objects
// that it is in: realm_access.roles.
func at(claims map[string]any, name string) any {
	if v, ok := claims[name]; ok || name == "" {
		return v
	}
	first, rest, ok := strings.Cut(name, ".")
	if inner, is := claims[first].(map[string]any); ok && is {
		return at(inner, rest)
	}
	return nil
}
