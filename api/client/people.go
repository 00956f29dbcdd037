package client

import (
	"context"
	"net/http"
	"net/url"
	"time"
)

const tokens = "/v1/tokens"

// Admin is what administrators ask of a node: who may do what, and who has done what.
type Admin struct{ c *Client }

// NewAdmin is what a client asks as an administrator.
func NewAdmin(c *Client) Admin { return Admin{c} }

// Login says where a person gets a token of an identity provider. Problem:
// access.no-login.
func (a Admin) Login(ctx context.Context) (Login, error) {
	return get[Login](ctx, a.c.caller, "/v1/login", nil)
}

// Me says as whom one is known, and what one may do.
func (a Admin) Me(ctx context.Context) (Me, error) { return get[Me](ctx, a.c.caller, "/v1/me", nil) }

// CreateToken makes a token. Its secret is in the answer, and never again.
func (a Admin) CreateToken(ctx context.Context, r TokenRequest) (NewToken, error) {
	out, _, err := post[NewToken](ctx, a.c.caller, tokens, r)
	return out, err
}

// Tokens lists tokens, newest first.
func (a Admin) Tokens(ctx context.Context, l List) (Page[Token], error) {
	return get[Page[Token]](ctx, a.c.caller, tokens, l.in(url.Values{}))
}

// RevokeToken ends a token, on every node within a second.
func (a Admin) RevokeToken(ctx context.Context, id string) error {
	_, err := a.c.send(ctx, request{method: http.MethodDelete, path: tokens + "/" + url.PathEscape(id)})
	return err
}

// AuditQuery selects entries of the audit. Empty fields do not restrict.
type AuditQuery struct {
	User, Action, Target, InstanceID string
	Result                           string    // a problem's code
	From, To                         time.Time // from on, and before
	List
}

// Audit lists who has done what, newest first.
func (a Admin) Audit(ctx context.Context, q AuditQuery) (Page[AuditEntry], error) {
	v := values("user", q.User, "action", q.Action, "target", q.Target, "instance", q.InstanceID, "result", q.Result)
	for name, at := range map[string]time.Time{"from": q.From, "to": q.To} {
		if !at.IsZero() {
			v.Set(name, at.UTC().Format(time.RFC3339Nano))
		}
	}
	return get[Page[AuditEntry]](ctx, a.c.caller, "/v1/audit", q.List.in(v))
}
