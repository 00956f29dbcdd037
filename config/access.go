package config

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// checkTLS finds what is missing to speak TLS, by setting.
func checkTLS(t TLS, a Access) map[string]string {
	switch {
	case a.CA != "" && t.Certificate == "":
		return map[string]string{"access.certificate-ca": "needs tls.certificate: nobody shows a certificate to plain HTTP"}
	case a.Holders != "" && a.CA == "":
		return map[string]string{"access.certificate-roles": "needs access.certificate-ca"}
	case a.CA != "":
		if holding, err := a.Holding(); err != nil {
			return map[string]string{"access.certificate-roles": err.Error()}
		} else if len(holding) == 0 {
			return map[string]string{"access.certificate-roles": "is empty: nobody could do anything"}
		}
	}
	if _, err := a.Publishing(); err != nil {
		return map[string]string{"access.event-types": err.Error()}
	} else if a.Types != "" && !a.Asks() {
		return map[string]string{"access.event-types": "needs access.tokens, access.oidc-issuer or access.certificate-ca: nobody has a role"}
	}
	switch {
	case t.Certificate != "" && t.Key == "":
		return map[string]string{"tls.certificate": "needs tls.key"}
	case t.Key != "" && t.Certificate == "":
		return map[string]string{"tls.key": "needs tls.certificate"}
	}
	return nil
}

// checkProvider finds what is missing to believe an identity provider, by setting, and
// what is no address of a proxy.
func checkProvider(a Access) map[string]string {
	found := map[string]string{}
	for _, o := range List(a.Origins) {
		if u, err := url.Parse(o); err != nil || u.Host == "" || strings.TrimSuffix(o, "/") != u.Scheme+"://"+u.Host || u.Scheme != "https" && !(u.Scheme == "http" && isLoopback(u.Hostname())) {
			found["access.public-origins"] = strconv.Quote(o) + " is not https://HOST or https://HOST:PORT"
		}
	}
	if a.Issuer == "" {
		for key, text := range map[string]string{"access.oidc-audience": a.Audience, "access.oidc-roles": a.Roles, "access.oidc-client": a.Client, "access.oidc-secret-file": a.Secret} {
			if text != "" {
				found[key] = "needs access.oidc-issuer"
			}
		}
		return found
	}
	if len(List(a.Audience)) == 0 {
		found["access.oidc-audience"] = "is empty: a token for any other service of the provider would do"
	}
	if a.User == "" {
		found["access.oidc-user"] = "is empty: nobody would have a name"
	}
	if members, err := a.Members(); err != nil {
		found["access.oidc-roles"] = err.Error()
	} else if len(members) == 0 {
		found["access.oidc-roles"] = "is empty: nobody could do anything"
	}
	if a.Idle > a.Life {
		found["access.session-idle"] = "is longer than access.session-life"
	}
	if a.Client != "" && !slices.Contains(List(a.Audience), a.Client) {
		found["access.oidc-client"] = "is none of access.oidc-audience: the node would refuse who has logged in"
	}
	return found
}

// checkListen refuses every address from which another machine could reach the API,
// where that asks nobody who they are.
func checkListen(address string, a Access) (code, detail, hint string) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "config.address", strconv.Quote(address) + " is not host:port", "write 127.0.0.1:8080"
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return "config.address", strconv.Quote(port) + " is not a port number", "write a number from 0 to 65535; 0 = any free port"
	}
	if isLoopback(host) || a.Asks() || a.Anybody {
		return "", "", ""
	}
	return "config.not-loopback", strconv.Quote(host) + " can be reached from other machines, and the API asks nobody who they are",
		"set access.tokens, access.oidc-issuer or access.certificate-ca, or listen on 127.0.0.1, ::1 or localhost with a proxy in front that authenticates"
}

// OnLoopback reports whether the API is reached from this host alone.
func (c Config) OnLoopback() bool {
	host, _, err := net.SplitHostPort(c.Listen)
	return err == nil && isLoopback(host)
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}
