package activity

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/aqueduct-engine/aqueduct/engine"
	jsonv2 "github.com/go-json-experiment/json"
)

// typeAuthentication is raised when no token can be had.
const typeAuthentication = errorTypes + "authentication"

// authentication is how a call shows who it is from: one of its fields is set.
type authentication struct {
	Basic  *credentials `json:"basic"`
	Digest *credentials `json:"digest"`
	Bearer *bearer      `json:"bearer"`
	OAuth2 *grant       `json:"oauth2"`
	OIDC   *grant       `json:"oidc"`
}

type credentials struct {
	Use      string `json:"use"` // a secret with the other fields
	Username string `json:"username"`
	Password string `json:"password"`
}

type bearer struct {
	Use   string `json:"use"`
	Token string `json:"token"`
}

// proof is what a request carries to show who it is from.
type proof struct {
	digest *credentials // answers the server's challenge
	set    func(*http.Request)
	renew  func() // forgets a token that the server did not accept; nil = nothing to renew
}

// proof makes the proof of a call. What is secret of it is kept in the call.
func (p *Performer) proof(ctx context.Context, call *call) (proof, *engine.Failure) {
	raw, keep := call.Auth, call.keep
	if len(raw) == 0 || string(raw) == "null" {
		return proof{}, nil
	}
	var a authentication
	if err := jsonv2.Unmarshal(raw, &a); err != nil {
		return proof{}, permanent(TypeConfiguration, http.StatusBadRequest, "invalid authentication", "the authentication of the call is not of its form")
	}
	switch {
	case a.Basic != nil:
		c := *a.Basic
		if f := p.fill(c.Use, &c, keep); f != nil {
			return proof{}, f
		}
		keep.add(c.Password, c.Username+":"+c.Password)
		return proof{set: func(r *http.Request) { r.SetBasicAuth(c.Username, c.Password) }}, nil
	case a.Digest != nil:
		c := *a.Digest
		f := p.fill(c.Use, &c, keep)
		keep.add(c.Password)
		return proof{digest: &c}, f
	case a.Bearer != nil:
		b := *a.Bearer
		if f := p.fill(b.Use, &b, keep); f != nil {
			return proof{}, f
		}
		keep.add(b.Token)
		return bearing(b.Token), nil
	case a.OAuth2 != nil:
		return p.granted(ctx, *a.OAuth2, false, call)
	case a.OIDC != nil:
		return p.granted(ctx, *a.OIDC, true, call)
	}
	return proof{}, permanent(TypeConfiguration, http.StatusBadRequest, "invalid authentication", "the authentication of the call names no scheme")
}

func bearing(token string) proof {
	return proof{set: func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }}
}

// fill reads a policy from the secret that it uses.
func (p *Performer) fill(use string, policy any, keep *secrecy) *engine.Failure {
	if use == "" {
		return nil
	}
	v, err := p.secret(use, nil)
	if err == nil {
		if token, ok := v.(string); ok {
			v = map[string]any{"token": token} // a bearer's secret may be the token alone
		}
		keep.addValue(v, false)
		raw, _ := json.Marshal(v) // it was read from JSON or text
		if jsonv2.Unmarshal(raw, policy) == nil && complete(policy) {
			return nil
		}
		err = secretError("secret.form", "secret %q does not have the fields of the policy that uses it", use)
	}
	return secretFailure(err)
}

// complete reports whether a policy has what it cannot do without.
func complete(policy any) bool {
	switch p := policy.(type) {
	case *credentials:
		return p.Username != ""
	case *bearer:
		return p.Token != ""
	case *grant:
		return p.Authority != "" && p.Grant != ""
	}
	return true
}

// exchange sends a request with its proof. A server that challenges by digest
// is answered, and a token that it does not accept any more is replaced, once: the request
// has been refused then, which refused hears, and a failure is of the token.
func (p *Performer) exchange(client *http.Client, req *http.Request, pr proof, refused func(), again func() (proof, *engine.Failure)) (*http.Response, *engine.Failure, error) {
	if pr.set != nil {
		pr.set(req)
	}
	resp, err := client.Do(req)
	if err != nil || resp.StatusCode != http.StatusUnauthorized || pr.digest == nil && pr.renew == nil ||
		origin(resp.Request.URL) != origin(req.URL) || // another origin is not answered with what is not for it
		resp.Request.Method != req.Method { // what was asked for was taken, and is not asked for again
		return resp, nil, err
	}
	asked := req
	if pr.digest != nil {
		asked = resp.Request // where it was redirected to: an answer is for one address
		for r := asked; r.Response != nil; r = r.Response.Request {
			if origin(r.Response.Request.URL) != origin(req.URL) {
				return resp, nil, nil // another origin chose it
			}
		}
	}
	repeated := asked.Clone(req.Context())
	if asked.GetBody != nil {
		if repeated.Body, err = asked.GetBody(); err != nil {
			return resp, nil, nil
		}
	}
	refused()
	switch {
	case pr.digest != nil:
		answer, ok := digestAnswer(resp.Header.Values("WWW-Authenticate"), *pr.digest, asked)
		if !ok {
			return resp, nil, nil
		}
		repeated.Header.Set("Authorization", answer)
	default:
		pr.renew()
		fresh, f := again()
		if f != nil {
			resp.Body.Close()
			return nil, f, nil
		}
		fresh.set(repeated)
	}
	resp.Body.Close()
	resp, err = client.Do(repeated)
	return resp, nil, err
}
