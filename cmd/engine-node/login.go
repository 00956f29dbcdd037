package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	jsonv2 "github.com/go-json-experiment/json"
	"github.com/spf13/cobra"
	"golang.org/x/oauth2"

	"github.com/aqueduct-engine/aqueduct/access/provider"
	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/problem"
)

const (
	early            = 30 * time.Second // before its end a token is not used any more
	providerPatience = 30 * time.Second // for one answer of an identity provider
	intervalMax      = 60               // seconds between two questions whether somebody has agreed
	loginMax         = 30 * time.Minute // for somebody to agree
)

// visitor is somebody at a node, with what they have logged in with.
type visitor struct {
	*app
	server string // address of the node
}

func visitorOf(a *app) visitor {
	return visitor{a, strings.TrimSuffix(cmp.Or(a.server, a.variable(serverVariable), defaultServer), "/")}
}

// client is one of the node, without a token.
func (a visitor) client() (*client.Client, error) {
	t := client.TLS{
		CA:          cmp.Or(a.tls.CA, a.variable(caVariable)),
		Certificate: cmp.Or(a.tls.Certificate, a.variable(certVariable)), Key: cmp.Or(a.tls.Key, a.variable(keyVariable)),
	}
	switch isHTTPS := strings.HasPrefix(a.server, "https://"); {
	case (t.Certificate == "") != (t.Key == ""):
		return nil, usage("a certificate and its key are named together: --cert-file and --key-file")
	case !isHTTPS && (a.tls.CA != "" || a.tls.Certificate != ""):
		return nil, usage("%s is no https address: there is nobody to show a certificate, and none to believe", a.server)
	case !isHTTPS:
		return client.New(a.server, nil)
	}
	hc, err := t.HTTP()
	if err != nil {
		return nil, err
	}
	return client.New(a.server, hc)
}

// credentials are those of a person at the nodes that they have logged in to, by the
// address of the node. A file of their own holds them.
type credentials map[string]credential

type credential struct {
	Issuer   string    `json:"issuer"`
	ClientID string    `json:"clientId"`
	Token    string    `json:"token"`
	Refresh  string    `json:"refresh,omitempty"`
	Expires  time.Time `json:"expires"`
}

func loginCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "login",
		Short: "Get a token for a node from its identity provider, in a browser",
		Long: `Get a token for --server from the identity provider that the node believes. It
prints an address to open in a browser, on this machine or another, and waits until
you have agreed there. The token is kept in a file of your own, is used for that
server alone, and is renewed for as long as the provider does so.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.store != "" {
				return problem.New(problem.Invalid, "cli.login", "a database is opened by who may, and needs no login")
			}
			of := visitorOf(a)
			c, err := of.client() // without a token: that may be why they log in
			if err != nil {
				return err
			}
			return of.login(cmd.Context(), c)
		},
	}
}

func logoutCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "logout",
		Short: "Forget the token for a node",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			a := visitorOf(a)
			if all, _, err := a.credentials(); err != nil {
				return err
			} else if _, ok := all[a.server]; !ok {
				return problem.New(problem.NotFound, "cli.no-login", "nobody is logged in to %s", a.server)
			}
			return a.alone(cmd.Context(), lockPatience, func() error {
				all, file, err := a.credentials()
				if err != nil {
					return err
				}
				delete(all, a.server)
				return all.write(file)
			})
		},
	}
}

func (a visitor) login(ctx context.Context, c *client.Client) error {
	if err := a.writable(); err != nil {
		return err
	}
	l, err := client.NewAdmin(c).Login(ctx)
	if err != nil {
		return err
	}
	ctx = patient(ctx)
	o, v, err := believe(ctx, l)
	if err != nil {
		return problem.Wrap(err, problem.Unavailable, "cli.login", "nobody can log in")
	}
	asked, err := o.DeviceAuth(ctx)
	if err == nil {
		err = bounded(asked)
	}
	if err != nil {
		return problem.Wrap(err, problem.Denied, "cli.login", "the identity provider %s begins no login", l.Issuer).
			WithHint("the client %s must be a public one, for which the device flow is allowed", l.ClientID)
	}
	fmt.Fprintf(a.err, "open %s\nand say yes to the code %s\n", cmp.Or(asked.VerificationURIComplete, asked.VerificationURI), oneLine(asked.UserCode))
	t, err := o.DeviceAccessToken(ctx, asked)
	if err != nil {
		return problem.Wrap(err, problem.Denied, "cli.login", "the identity provider gives no token")
	}
	kept, err := credentialOf(ctx, l, v, t)
	if err != nil {
		return problem.Wrap(err, problem.Denied, "cli.login", "nobody is logged in")
	}
	err = a.alone(ctx, lockPatience, func() error {
		all, file, err := a.credentials()
		if err != nil {
			return err
		}
		all[a.server] = kept
		return all.write(file)
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(a.err, "logged in to %s; the token expires %s\n", a.server, a.page.ago(kept.Expires))
	return nil
}

// patient has each request to a provider end by itself.
func patient(ctx context.Context) context.Context {
	return oidc.ClientContext(ctx, &http.Client{Timeout: providerPatience})
}

// bounded holds what a provider answers to what RFC 8628 section 3.2 says, and to bounds
// of our own: somebody waits for it at a terminal.
func bounded(asked *oauth2.DeviceAuthResponse) error {
	for _, at := range []string{asked.VerificationURI, asked.VerificationURIComplete} {
		u, err := url.Parse(at)
		if at != "" && (err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || at != oneLine(at)) {
			return fmt.Errorf("it names the address %.200q, which is none to open", at)
		}
	}
	switch {
	case asked.VerificationURI == "" || asked.DeviceCode == "" || asked.UserCode == "":
		return errors.New("its answer lacks device_code, user_code or verification_uri")
	case asked.Interval < 0 || asked.Interval > intervalMax:
		return fmt.Errorf("it wants to be asked every %d s, not 1 to %d", asked.Interval, intervalMax)
	}
	if last := time.Now().Add(loginMax); asked.Expiry.IsZero() || asked.Expiry.After(last) {
		asked.Expiry = last
	}
	return nil
}

// believe asks the provider how it is asked, and by what its tokens are known.
func believe(ctx context.Context, l client.Login) (*oauth2.Config, *oidc.IDTokenVerifier, error) {
	if err := provider.CheckIssuer(l.Issuer); err != nil {
		return nil, nil, err
	}
	p, err := oidc.NewProvider(ctx, l.Issuer)
	if err != nil {
		return nil, nil, fmt.Errorf("the identity provider %s does not answer: %.500s", l.Issuer, err) // which may quote all of an answer
	}
	at := p.Endpoint()
	at.AuthStyle = oauth2.AuthStyleInParams // as a public client says it; to try both would use a refresh token twice
	return &oauth2.Config{ClientID: l.ClientID, Endpoint: at, Scopes: strings.Fields(l.Scopes)}, p.Verifier(&oidc.Config{ClientID: l.ClientID}), nil
}

// credentialOf is what is kept of a provider's answer: its identity token, which is
// made for this client, unlike an access token, which need not be one that a node can read.
func credentialOf(ctx context.Context, l client.Login, v *oidc.IDTokenVerifier, t *oauth2.Token) (credential, error) {
	k := credential{Issuer: l.Issuer, ClientID: l.ClientID, Refresh: t.RefreshToken}
	k.Token, _ = t.Extra("id_token").(string)
	if k.Token == "" {
		return k, errors.New("the identity provider gives no identity token: access.oidc-scopes of the node must have openid")
	}
	token, err := v.Verify(ctx, k.Token)
	if err != nil {
		return k, fmt.Errorf("the identity provider gives a token that no node would take: %w", err)
	}
	k.Expires = token.Expiry
	return k, nil
}

// credentials reads the file, which need not be there.
func (a visitor) credentials() (all credentials, file string, err error) {
	folder := a.variable("XDG_CONFIG_HOME")
	if folder == "" {
		if folder, err = os.UserConfigDir(); err != nil {
			return credentials{}, "", nil // who has no folder of their own has not logged in
		}
	}
	file = filepath.Join(folder, "aqueduct", "credentials.json")
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return credentials{}, file, nil
	}
	if err == nil {
		err = jsonv2.Unmarshal(text, &all)
	}
	if err != nil {
		return nil, "", problem.Wrap(err, problem.Invalid, "cli.file", "%s cannot be read", file).WithHint("remove it, and log in again")
	}
	if all == nil { // the file holds null
		all = credentials{}
	}
	return all, file, nil
}

// writable reports whether a login can be kept, before somebody has gone to a browser
// for it.
func (a visitor) writable() error {
	_, file, err := a.credentials()
	if err != nil {
		return err
	}
	if file == "" {
		return problem.New(problem.Invalid, "cli.file", "there is no folder for a login: neither XDG_CONFIG_HOME nor HOME is set")
	}
	f, err := beside(file)
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// write puts the file there whole, or not at all: two that run at once must not leave
// half of it.
func (all credentials) write(file string) error {
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	f, err := beside(file)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // what failed is told
		return problem.Wrap(err, problem.Unavailable, "cli.file", "%s cannot be written", file)
	}
	return nil
}

// beside makes a file next to another, readable by its owner alone.
func beside(file string) (*os.File, error) {
	err := os.MkdirAll(filepath.Dir(file), 0o700)
	if err == nil {
		var f *os.File
		if f, err = os.CreateTemp(filepath.Dir(file), "credentials-*"); err == nil {
			return f, nil
		}
	}
	return nil, problem.Wrap(err, problem.Unavailable, "cli.file", "%s cannot be written", file)
}
