package main

import (
	"log/slog"
	"time"

	"github.com/aqueduct-engine/aqueduct/access"
	"github.com/aqueduct-engine/aqueduct/access/provider"
	"github.com/aqueduct-engine/aqueduct/api"
	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/config"
)

// gate is who asks who sends a request; nil = nobody.
func gate(c config.Access, tokens *access.Tokens, now func() time.Time, log *slog.Logger) (api.Access, error) {
	if !c.Asks() {
		return nil, nil
	}
	g := &access.Gate{}
	if c.Tokens {
		g.Verifiers = append(g.Verifiers, tokens)
	}
	if c.Issuer != "" {
		members, err := c.Members()
		if err != nil {
			return nil, err
		}
		p, err := provider.New(provider.Options{
			Issuer: c.Issuer, Audiences: config.List(c.Audience), Name: c.User, Groups: c.Groups, Roles: members, Now: now, Log: log,
		})
		if err != nil {
			return nil, err
		}
		g.Verifiers = append(g.Verifiers, p)
	}
	return g, nil
}

// login is how a person gets a token of the provider; nil = not by engine-node login.
func login(c config.Access) *client.Login {
	if c.Client == "" {
		return nil
	}
	return &client.Login{Issuer: c.Issuer, ClientID: c.Client, Scopes: c.Scopes}
}
