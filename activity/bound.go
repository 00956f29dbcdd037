package activity

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// A secret is bound to hosts when its definition is published: a command names
// the origins that the definition itself writes out, and a secret goes to no
// other. Where data makes the host, only what the operator says of the secret
// counts. What they say always counts: see Config.SecretHosts.

// HostPattern is a host that a secret may be sent to: HOST or HOST:PORT, with
// "*." before a host for all below it.
type HostPattern string

func (p HostPattern) fits(u *url.URL) bool {
	text := strings.ToLower(string(p))
	name := strings.ToLower(u.Hostname())
	host, port, hasPort := strings.Cut(text, ":")
	if strings.HasPrefix(text, "[") { // [::1] or [::1]:8080
		host, port, _ = strings.Cut(text[1:], "]")
		port, hasPort = strings.CutPrefix(port, ":")
	}
	if hasPort && port != portOf(u) {
		return false
	}
	if below, ok := strings.CutPrefix(host, "*"); ok {
		return strings.HasSuffix(name, below)
	}
	return name == host
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "http":
		return "80"
	}
	return "443"
}

// origin is what has to be the same for a secret to go there: scheme, host and
// port.
func origin(u *url.URL) string {
	return strings.ToLower(u.Scheme) + "://" + strings.ToLower(u.Hostname()) + ":" + portOf(u)
}

// written reports whether a definition writes the origin of u out.
func written(origins []string, u *url.URL) bool {
	return slices.ContainsFunc(origins, func(o string) bool {
		at, err := url.Parse(o)
		return err == nil && origin(at) == origin(u)
	})
}

// bound refuses to send secrets to a host that they are not bound to.
func (p *Performer) bound(names []string, origins []string, u *url.URL) error {
	for _, name := range names {
		hosts, said := p.config.SecretHosts[name]
		switch {
		case said && !slices.ContainsFunc(hosts, func(h HostPattern) bool { return h.fits(u) }):
			return hostError("secret %q is not sent to %s, which secrets.hosts does not name for it", name, u.Host)
		case !said && !written(origins, u):
			return hostError("secret %q is not sent to %s, which the definition does not write out", name, u.Host)
		}
	}
	return nil
}

func hostError(format string, args ...any) error {
	return problem.New(problem.Denied, "secret.host", format, args...).
		WithHint("write the host out in the endpoint, or name it for this secret in secrets.hosts")
}

// boundToken refuses to send a token to a host when neither the definition
// writes it out nor the operator names it for the secrets that the token was
// asked for with.
func (p *Performer) boundToken(names []string, origins []string, u *url.URL) error {
	if written(origins, u) {
		return nil
	}
	return p.bound(names, origins, u)
}

// uses are the names of the secrets of a call: those that are sent with it, and
// those that a token is asked for with.
func (c *call) uses() (sent, asked []string) {
	var a authentication
	if jsonv2.Unmarshal(c.Auth, &a) == nil { // a wrong one is told by who reads it
		switch {
		case a.Basic != nil:
			sent = append(sent, a.Basic.Use)
		case a.Digest != nil:
			sent = append(sent, a.Digest.Use)
		case a.Bearer != nil:
			sent = append(sent, a.Bearer.Use)
		case a.OAuth2 != nil:
			asked = append(asked, a.OAuth2.Use)
		case a.OIDC != nil:
			asked = append(asked, a.OIDC.Use)
		}
	}
	for _, r := range c.Secrets {
		if strings.HasPrefix(r.At, "/authentication/oauth2/") || strings.HasPrefix(r.At, "/authentication/oidc/") {
			asked = append(asked, r.Name)
		} else {
			sent = append(sent, r.Name)
		}
	}
	none := func(name string) bool { return name == "" }
	return slices.DeleteFunc(sent, none), slices.DeleteFunc(asked, none)
}

// redirected checks a redirect of a call. To another origin no header goes that
// holds a secret, and neither do credentials. A secret in the body, or in the
// address that the server names, cannot be left out: the request ends there.
func (c *call) redirected(req *http.Request, via []*http.Request) error {
	if err := checkRedirect(req, via); err != nil {
		return err
	}
	home := origin(via[0].URL)
	if origin(req.URL) == home && !slices.ContainsFunc(via, func(r *http.Request) bool { return origin(r.URL) != home }) {
		return nil
	}
	for name, values := range req.Header {
		if slices.Contains(credentialHeaders, name) || c.keep.holds(strings.Join(values, "\n")) {
			req.Header.Del(name)
		}
	}
	inBody := false
	for _, r := range c.Secrets {
		if name, ok := strings.CutPrefix(r.At, "/headers/"); ok {
			req.Header.Del(strings.ReplaceAll(strings.ReplaceAll(name, "~1", "/"), "~0", "~"))
		}
		inBody = inBody || r.At == "/body" || strings.HasPrefix(r.At, "/body/")
	}
	if req.Body != nil && req.Body != http.NoBody && (inBody || c.keep.holds(string(c.Body))) {
		return redirectError("redirected to another origin, " + req.URL.Host + ", with a secret in the body")
	}
	if c.keep.holds(req.URL.String()) {
		return redirectError("redirected to another origin, " + req.URL.Host + ", with a secret in the address")
	}
	return nil
}

// credentialHeaders never go to another origin, whoever set them.
var credentialHeaders = []string{"Authorization", "Cookie", "Cookie2", "Proxy-Authorization", "Www-Authenticate"}
