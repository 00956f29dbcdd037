package provider

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/aqueduct-engine/aqueduct/access"
	"github.com/aqueduct-engine/aqueduct/problem"
)

const (
	loginSeconds = 600  // that somebody has to log in at the provider
	maxNext      = 1000 // bytes of the address of the page that they wanted
	maxWhy       = 200  // of what a provider says of itself, in characters
)

// Logins let people in with a browser: the authorization code flow of OpenID Connect, with
// PKCE (RFC 7636), a state and a nonce. What a login has begun with is kept by the browser
// in a cookie of its own until the provider sends it back, so that any node may end it; who
// has logged in is a session of the node's, and the provider's tokens go no further.
type Logins struct {
	Provider *Provider
	Sessions *access.Sessions
	Client   string                 // by which the provider knows the console
	Secret   func() (string, error) // of the client, read at each login; nil = it has none
	Scopes   []string
	Origins  []string // https://HOST, by which a proxy that ends TLS is reached; what else a node is reached by it sees
	Pages    string   // the path of the console's pages: /console
}

// origin is the address by which a browser has reached the node. Nothing that a proxy
// writes is believed: Host is, as far as it is one that is known, or the browser speaks to
// the node itself, by TLS or on the same host.
func (l *Logins) origin(r *http.Request) (string, error) {
	for _, o := range l.Origins {
		if u, err := url.Parse(o); err == nil && strings.EqualFold(u.Host, r.Host) {
			return strings.TrimSuffix(o, "/"), nil
		}
	}
	u, err := url.Parse("http://" + r.Host)
	switch {
	case err != nil || u.Host != r.Host || u.Path != "":
	case r.TLS != nil:
		return "https://" + r.Host, nil
	case isLoopback(u.Hostname()):
		return "http://" + r.Host, nil
	}
	return "", problem.New(problem.Denied, "access.origin", "nobody logs in at %.100q: what is sent there can be read on the way, or it is another's name", r.Host).
		WithHint("name it in access.public-origins, if a proxy with TLS is there, or set tls.certificate")
}

// cookie is one that no other site sees or sets, where the origin is HTTPS: its name says
// that it has come by that, from this very host, and for all of it (RFC 6265bis, __Host-).
func (l *Logins) cookie(origin, name, value string, seconds int) *http.Cookie {
	c := &http.Cookie{Name: name, Value: value, Path: l.Pages + "/", MaxAge: seconds, HttpOnly: true, SameSite: http.SameSiteLaxMode}
	if strings.HasPrefix(origin, "https://") {
		c.Name, c.Path, c.Secure = "__Host-"+name, "/", true
	}
	return c
}

const (
	sessionCookie = "aqueduct-session"
	loginCookie   = "aqueduct-login"
)

// value is that of a cookie of a request; "" = it has none, or two of the name: which of
// them is ours nobody knows.
func (l *Logins) value(r *http.Request, origin, name string) string {
	found := r.CookiesNamed(l.cookie(origin, name, "", 0).Name)
	if len(found) != 1 {
		return ""
	}
	return found[0].Value
}

// Of is what the session of a request bears, and of whom it is; "" = it has none that
// counts.
func (l *Logins) Of(r *http.Request) (bearer, name string, groups []string) {
	origin, err := l.origin(r)
	if err != nil {
		return "", "", nil
	}
	if bearer = l.value(r, origin, sessionCookie); bearer == "" {
		return "", "", nil
	}
	who, err := l.Sessions.Verify(r.Context(), bearer)
	if err != nil { // the API says why
		return bearer, "", nil
	}
	return bearer, who.Name, who.Groups
}

// Login sends a browser to the provider. Problems: access.origin, access.unavailable.
func (l *Logins) Login(w http.ResponseWriter, r *http.Request) error {
	origin, err := l.origin(r)
	if err != nil {
		return err
	}
	o, err := l.config(r.Context(), origin)
	if err != nil {
		return err
	}
	state, nonce, verifier := rand.Text(), rand.Text(), oauth2.GenerateVerifier()
	next := base64.RawURLEncoding.EncodeToString([]byte(l.page(r.URL.Query().Get("next"))))
	http.SetCookie(w, l.cookie(origin, loginCookie, strings.Join([]string{state, nonce, verifier, next}, "."), loginSeconds))
	http.Redirect(w, r, o.AuthCodeURL(state, oidc.Nonce(nonce), oauth2.S256ChallengeOption(verifier)), http.StatusSeeOther)
	return nil
}

// page is a page of the console: what somebody wanted, if it is one, else the first.
func (l *Logins) page(wanted string) string {
	u, err := url.Parse(wanted)
	if err != nil || u.IsAbs() || u.Host != "" || u.Opaque != "" || len(wanted) > maxNext ||
		!strings.HasPrefix(path.Clean(u.Path)+"/", l.Pages+"/") || strings.Contains(wanted, "\\") || strings.HasPrefix(u.Path, l.Pages+"/login") {
		return l.Pages + "/"
	}
	return u.String()
}

func (l *Logins) config(ctx context.Context, origin string) (*oauth2.Config, error) {
	if _, err := l.Provider.discovered(ctx); err != nil {
		return nil, problem.Wrap(err, problem.Unavailable, "access.unavailable", "the identity provider does not answer")
	}
	o := &oauth2.Config{ClientID: l.Client, Endpoint: l.Provider.endpoint, RedirectURL: origin + l.Pages + "/login/callback", Scopes: l.Scopes}
	o.Endpoint.AuthStyle = oauth2.AuthStyleInParams // which is all that a public client can do
	if l.Secret != nil {
		if l.Provider.inHeader {
			o.Endpoint.AuthStyle = oauth2.AuthStyleInHeader
		}
		var err error
		if o.ClientSecret, err = l.Secret(); err != nil {
			return nil, problem.Wrap(err, problem.Unavailable, "access.unavailable", "the secret of the console's client cannot be read")
		}
	}
	return o, nil
}

// Callback ends a login: the provider has sent the browser back. Problems: access.origin,
// access.login-failed, access.token-refused, access.unavailable.
func (l *Logins) Callback(w http.ResponseWriter, r *http.Request) error {
	origin, err := l.origin(r)
	if err != nil {
		return err
	}
	begun := strings.Split(l.value(r, origin, loginCookie), ".")
	q := r.URL.Query()
	if len(begun) != 4 || subtle.ConstantTimeCompare([]byte(begun[0]), []byte(q.Get("state"))) != 1 { // what was begun goes on
		return access.LoginFailed("this browser has not begun the login, or too long ago, or another one since")
	}
	http.SetCookie(w, l.cookie(origin, loginCookie, "", -1)) // it is good for one answer
	switch {
	case q.Get("error") != "":
		return access.LoginFailed("the identity provider says " + clean(q.Get("error")) + " " + clean(q.Get("error_description")))
	case q.Has("iss") && q.Get("iss") != l.Provider.Issuer: // RFC 9207
		return access.LoginFailed("another provider has answered")
	}
	bearer, err := l.exchange(r.Context(), origin, q.Get("code"), begun[1], begun[2])
	if err != nil {
		return err
	}
	// What the browser had before ends: nobody goes on in a session that somebody else may
	// have given it.
	if before := l.value(r, origin, sessionCookie); before != "" {
		if err := l.Sessions.End(r.Context(), before); err != nil {
			return problem.Wrap(err, problem.Unavailable, "access.unavailable", "the session before cannot be ended")
		}
	}
	next, err := base64.RawURLEncoding.DecodeString(begun[3])
	if err != nil {
		next = nil
	}
	http.SetCookie(w, l.cookie(origin, sessionCookie, bearer, int(l.Sessions.Life().Seconds())))
	http.Redirect(w, r, l.page(string(next)), http.StatusSeeOther)
	return nil
}

// exchange gets the identity token for a code, and begins a session of whom that vouches
// for.
func (l *Logins) exchange(ctx context.Context, origin, code, nonce, verifier string) (bearer string, err error) {
	o, err := l.config(ctx, origin)
	if err != nil {
		return "", err
	}
	direct := &http.Client{Transport: l.Provider.Transport, Timeout: patience} // many log in at once: they do not wait for each other
	t, err := o.Exchange(oidc.ClientContext(ctx, direct), code, oauth2.VerifierOption(verifier))
	var said *oauth2.RetrieveError
	switch {
	case errors.As(err, &said) && said.Response.StatusCode < http.StatusInternalServerError:
		return "", access.LoginFailed("the identity provider says " + clean(cmp.Or(said.ErrorCode, said.Response.Status)) + " " + clean(said.ErrorDescription))
	case err != nil:
		return "", problem.Wrap(err, problem.Unavailable, "access.unavailable", "the identity provider does not say who has logged in")
	}
	token, _ := t.Extra("id_token").(string)
	if token == "" {
		return "", access.LoginFailed("the identity provider gives no identity token: access.oidc-scopes must have openid")
	}
	who, err := l.Provider.vouched(ctx, token, func(t *oidc.IDToken) bool {
		return t.Nonce == nonce && slices.Contains(t.Audience, l.Client)
	})
	switch {
	case errors.Is(err, access.ErrOther):
		return "", access.LoginFailed("what the identity provider gives is no identity token")
	case err != nil:
		return "", err
	}
	if bearer, err = l.Sessions.Begin(ctx, who); err != nil && problem.KindOf(err) != problem.Denied {
		err = problem.Wrap(err, problem.Unavailable, "access.unavailable", "the database does not keep the session")
	}
	return bearer, err
}

// Logout ends the session of a request, on every node within a second. Problem:
// access.unavailable.
func (l *Logins) Logout(w http.ResponseWriter, r *http.Request) error {
	origin, err := l.origin(r)
	if err != nil {
		return err
	}
	if bearer := l.value(r, origin, sessionCookie); bearer != "" {
		if err := l.Sessions.End(r.Context(), bearer); err != nil {
			return problem.Wrap(err, problem.Unavailable, "access.unavailable", "the session cannot be ended now: it goes on")
		}
	}
	http.SetCookie(w, l.cookie(origin, sessionCookie, "", -1))
	http.Redirect(w, r, l.Pages+"/", http.StatusSeeOther)
	return nil
}

// clean is a text of somebody else, as it may be shown.
func clean(text string) string {
	return fmt.Sprintf("%.*s", maxWhy, strings.Map(func(c rune) rune {
		if unicode.IsControl(c) || c == unicode.ReplacementChar {
			return ' '
		}
		return c
	}, text))
}
