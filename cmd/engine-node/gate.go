package main

import (
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/access"
	"github.com/aqueduct-engine/aqueduct/access/provider"
	"github.com/aqueduct-engine/aqueduct/api"
	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/config"
	"github.com/aqueduct-engine/aqueduct/console"
	"github.com/aqueduct-engine/aqueduct/principal"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// gate is who asks who sends a request, nil = nobody; logins let people in with a
// browser, nil = nothing does.
func gate(c config.Access, kept backend.Tokens, tokens *access.Tokens, shown *certificates, now func() time.Time, log *slog.Logger) (_ api.Access, logins console.Logins, err error) {
	if !c.Asks() {
		return nil, nil, nil
	}
	types, err := c.Publishing()
	if err == nil {
		err = access.CheckEventTypes(types)
	}
	if err != nil {
		return nil, nil, err
	}
	g := &access.Gate{Events: types}
	if c.Tokens {
		g.Verifiers = append(g.Verifiers, tokens)
	}
	if c.CA != "" {
		holding, err := c.Holding()
		if err == nil {
			err = access.CheckHolders(holding)
		}
		if err != nil {
			return nil, nil, err
		}
		g.Certificates = &access.Certificates{Authorities: shown.authorities, Roles: holding, Now: now}
	}
	if c.Issuer != "" {
		members, err := c.Members()
		if err != nil {
			return nil, nil, err
		}
		p, err := provider.New(provider.Options{
			Issuer: c.Issuer, Audiences: config.List(c.Audience), Name: c.User, Groups: c.Groups, Roles: members, Now: now, Log: log,
		})
		if err != nil {
			return nil, nil, err
		}
		g.Verifiers = append(g.Verifiers, p)
		if c.Client != "" {
			sessions := access.NewSessions(kept, c.Idle, c.Life, now, log)
			g.Verifiers = append(g.Verifiers, sessions)
			logins = &provider.Logins{
				Provider: p, Sessions: sessions, Client: c.Client, Secret: secretOf(c.Secret), Scopes: strings.Fields(c.Scopes),
				Origins: config.List(c.Origins), Pages: consolePath,
			}
		}
	}
	return g, logins, nil
}

// secretOf reads a file each time: a secret that is changed needs no other node.
func secretOf(file string) func() (string, error) {
	if file == "" {
		return nil
	}
	return func() (string, error) {
		text, err := os.ReadFile(file)
		return strings.TrimSpace(string(text)), err
	}
}

// login is how a person gets a token of the provider; nil = not by engine-node login.
func login(c config.Access) *client.Login {
	if c.Client == "" {
		return nil
	}
	return &client.Login{Issuer: c.Issuer, ClientID: c.Client, Scopes: c.Scopes}
}

// consolePath is where the pages are.
const consolePath = "/console"

// withConsole puts the pages beside the API, and leads a browser to them.
func withConsole(api http.Handler, logins console.Logins, origins []string) (http.Handler, error) {
	pages, err := console.Handler(console.Options{API: api, Prefix: consolePath, Logins: logins, Origins: origins, Unattended: principal.Unattended})
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.Path; {
		case path == "/" && strings.Contains(r.Header.Get("Accept"), "text/html"):
			http.Redirect(w, r, consolePath+"/", http.StatusSeeOther)
		case path == consolePath || strings.HasPrefix(path, consolePath+"/"):
			pages.ServeHTTP(w, r.WithContext(principal.By(r.Context(), principal.Console)))
		default:
			api.ServeHTTP(w, r)
		}
	}), nil
}
