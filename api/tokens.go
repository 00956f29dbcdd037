package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/aqueduct-engine/aqueduct/access"
	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/principal"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

func (s adminAPI) tokenOperations(h huma.API) {
	const path, tag = "/v1/tokens", "access"
	login := operation("get-login", http.MethodGet, "/v1/login", tag, "Say where a person gets a token", http.StatusNotFound)
	login.Description = "It is asked before anybody is known, by engine-node login: a token of the identity provider is got there by the device flow, RFC 8628."
	register(s.service, h, login, s.getLogin)
	me := operation("get-me", http.MethodGet, "/v1/me", tag, "Say as whom one is known, and what one may do")
	register(s.service, h, me, s.getMe)
	create := operation("create-token", http.MethodPost, path, tag, "Make a token, by which a program or a person is known")
	create.Description = "Its secret is in the answer, and never again. A node asks for tokens where access.tokens is set."
	create.DefaultStatus = http.StatusCreated
	register(s.service, h, create, s.createToken)
	register(s.service, h, operation("list-tokens", http.MethodGet, path, tag, "List tokens, newest first"), s.listTokens)
	register(s.service, h, operation("revoke-token", http.MethodDelete, path+"/{id}", tag,
		"End a token, on every node within a second", http.StatusNotFound), s.revokeToken)
}

func (s adminAPI) getLogin(context.Context, *struct{}) (*answer[client.Login], error) {
	if s.Login == nil {
		return nil, problem.New(problem.NotFound, "access.no-login", "this node knows of no identity provider that gives tokens to people").
			WithHint("access.oidc-issuer and access.oidc-client name one; a token of the node's own is made by engine-node tokens create")
	}
	return ok(*s.Login), nil
}

func (s adminAPI) getMe(ctx context.Context, _ *struct{}) (*answer[client.Me], error) {
	who := principal.Of(ctx)
	me := client.Me{Kind: string(who.Kind), Name: who.Name, Groups: who.Groups, Roles: who.Roles, May: access.Operations()}
	if who.Roles != nil {
		me.May, me.Only = access.Lets(who.Roles)
	}
	return ok(me), nil
}

type createTokenInput struct {
	Body client.TokenRequest
}

func (s adminAPI) createToken(ctx context.Context, in *createTokenInput) (*answer[client.NewToken], error) {
	w := access.Wanted{Name: in.Body.Name, Roles: in.Body.Roles, Groups: in.Body.Groups}
	if in.Body.Lifetime != "" {
		var err error
		if w.Life, err = parseDuration("/lifetime", in.Body.Lifetime); err != nil {
			return nil, err
		}
		if w.Life == 0 { // which would be what is taken where nobody says how long
			return nil, invalid("/lifetime", "a token lasts from a minute on")
		}
	}
	k, secret, err := s.Tokens.Create(ctx, w)
	return &answer[client.NewToken]{http.StatusCreated, client.NewToken{Token: toToken(k), Secret: secret}}, err
}

func (s adminAPI) listTokens(ctx context.Context, in *Paging) (*answer[client.Page[client.Token]], error) {
	p, err := s.Tokens.Tokens(ctx, in.After, in.Limit)
	return ok(client.Page[client.Token]{Items: convert(p.Items, toToken), Next: p.Next}), err
}

func (s adminAPI) revokeToken(ctx context.Context, in *ByID) (*struct{}, error) {
	return nil, s.Tokens.Revoke(ctx, in.ID)
}

func toToken(k backend.Token) client.Token {
	return client.Token{
		ID: k.ID, Name: k.Name, Roles: backend.Names(k.Roles), Groups: backend.Names(k.Groups), CreatedAt: k.CreatedAt.UTC(), CreatedBy: k.CreatedBy,
		ExpiresAt: k.ExpiresAt.UTC(), RevokedAt: utc(k.RevokedAt), RevokedBy: k.RevokedBy, UsedAt: utc(k.UsedAt),
	}
}

func (s adminAPI) auditOperations(h huma.API) {
	op := operation("list-audit", http.MethodGet, "/v1/audit", "access", "List who has done what and was refused what, newest first")
	op.Description = "Starts, signals, events and acknowledgements are in the streams of instances, and what people do with tasks in the events of those."
	register(s.service, h, op, s.listAudit)
}

type listAuditInput struct {
	Paging
	User       string    `query:"user" maxLength:"128"`
	Action     string    `query:"action" maxLength:"32"`
	Target     string    `query:"target" maxLength:"128"`
	InstanceID string    `query:"instance" maxLength:"128"`
	Result     string    `query:"result" maxLength:"256" doc:"A problem's code."`
	From       time.Time `query:"from" doc:"From this moment on."`
	To         time.Time `query:"to" doc:"Before this moment."`
}

func (s adminAPI) listAudit(ctx context.Context, in *listAuditInput) (*answer[client.Page[client.AuditEntry]], error) {
	p, err := s.Reader.Audit.Audit(ctx, backend.AuditQuery{
		User: in.User, Action: in.Action, Target: in.Target, InstanceID: in.InstanceID, Result: in.Result, From: in.From, To: in.To, After: in.After, Limit: in.Limit,
	})
	return ok(client.Page[client.AuditEntry]{Items: convert(p.Items, toAudit), Next: p.Next}), err
}

func toAudit(a store.Audit) client.AuditEntry {
	e := client.AuditEntry{
		ID: a.ID, At: a.At.UTC(), Action: a.Action, Target: a.Target, InstanceID: a.InstanceID, User: a.User, Claimed: a.Claimed, Kind: a.Kind, Via: a.Via,
		VersionBefore: a.Before, VersionAfter: a.After, Result: a.Result, Reason: a.Reason, RequestID: a.Request,
	}
	if e.Result == "" {
		e.Result = backend.AuditDone
	}
	return e
}
