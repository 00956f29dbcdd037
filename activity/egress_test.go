package activity

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// TestEgressPolicy: which rule refuses what.
func TestEgressPolicy(t *testing.T) {
	t.Parallel()
	own := []netip.AddrPort{netip.MustParseAddrPort("127.0.0.1:8080")}
	for _, c := range []struct {
		allow, deny    []string
		host, at, want string
	}{
		{nil, nil, "localhost", "127.0.0.1:9000", ""},
		{nil, nil, "bank", "10.1.2.3:443", ""},
		{nil, nil, "localhost", "127.0.0.1:8080", "egress.own"},
		{nil, nil, "x", "[::ffff:127.0.0.1]:8080", "egress.own"},
		{nil, nil, "x", "0.0.0.0:8080", "egress.own"},
		{[]string{"127.0.0.0/8", "*"}[:1], nil, "x", "127.0.0.1:8080", "egress.own"},
		{nil, nil, "x", "0.0.0.0:9000", "egress.link-local"},
		{nil, nil, "x", "169.254.169.254:80", "egress.link-local"},
		{nil, nil, "x", "[::ffff:169.254.169.254]:80", "egress.link-local"},
		{nil, nil, "x", "[64:ff9b::a9fe:a9fe]:80", "egress.link-local"},
		{nil, nil, "x", "[2002:a9fe:a9fe::1]:80", "egress.link-local"},
		{nil, nil, "x", "[fe80::1%eth0]:80", "egress.link-local"},
		{nil, nil, "x", "[fd00:ec2::254]:80", "egress.link-local"},
		{[]string{"metadata"}, nil, "metadata", "169.254.169.254:80", "egress.link-local"},
		{[]string{"169.254.169.254"}, nil, "metadata", "169.254.169.254:80", ""},
		{nil, []string{"10.0.0.0/8"}, "bank", "10.1.2.3:443", "egress.denied"},
		{nil, []string{"::ffff:10.0.0.0/104"}, "bank", "10.1.2.3:443", "egress.denied"},
		{nil, []string{"64:ff9b::/96"}, "bank", "[64:ff9b::5db8:d822]:443", "egress.denied"},
		{nil, []string{"64:ff9b::5db8:d822", "2002::/16"}, "bank", "[64:ff9b::5db8:d822]:443", "egress.denied"},
		{nil, []string{"64:ff9b::5db8:d822", "2002::/16"}, "bank", "[2002:5db8:d822::1]:443", "egress.denied"},
		{nil, []string{"93.184.216.0/24"}, "bank", "[64:ff9b::5db8:d822]:443", "egress.denied"},
		{nil, []string{"64:ff9b::/96"}, "bank", "93.184.216.34:443", ""},
		{[]string{"93.184.216.0/24"}, nil, "other", "[64:ff9b::5db8:d822]:443", ""},
		{nil, []string{"fe80::1%eth0"}, "bank", "[fe80::1]:443", "egress.denied"},
		{nil, []string{"*.internal"}, "db.internal.", "192.0.2.1:443", "egress.denied"},
		{[]string{"bank"}, []string{"10.0.0.0/8"}, "bank", "10.1.2.3:443", "egress.denied"},
		{[]string{"bank"}, nil, "BANK", "10.1.2.3:443", ""},
		{[]string{"bank"}, nil, "other", "10.1.2.3:443", "egress.not-allowed"},
		{[]string{"10.0.0.0/8", "::1"}, nil, "other", "10.1.2.3:443", ""},
		{[]string{"10.0.0.0/8", "::1"}, nil, "other", "[::1]:443", ""},
	} {
		p := newPolicy(Egress{Allow: c.allow, Deny: c.deny, Own: own, Name: "egress."})
		err := p.check(c.host, netip.MustParseAddrPort(c.at))
		if got := problem.CodeOf(err); err == nil && c.want != "" || err != nil && (got != c.want || got != "egress.own" && !strings.Contains(err.Error(), "in egress.allow") && !strings.Contains(err.Error(), "change egress.deny")) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestTheHostsAddressesAreTheNodes: where it listens at all of them; another host's are not, nor
// is another port.
func TestTheHostsAddressesAreTheNodes(t *testing.T) {
	t.Parallel()
	network := func(s string) net.Addr {
		at, of, err := net.ParseCIDR(s)
		if err != nil {
			t.Fatal(err)
		}
		return &net.IPNet{IP: at, Mask: of.Mask}
	}
	for _, c := range []struct{ listens, at, want string }{
		{"0.0.0.0:8080", "10.0.0.5:8080", "egress.own"}, {"[::]:8080", "10.0.0.5:8080", "egress.own"}, {"[::]:8080", "[::ffff:10.0.0.5]:8080", "egress.own"},
		{"[::]:8080", "[2001:db8::5]:8080", "egress.own"}, {"[::]:8080", "127.0.0.1:8080", "egress.own"}, {"[::]:8080", "[fe80::5%eth0]:8080", "egress.own"},
		{"[::]:8080", "10.0.0.6:8080", ""}, {"[::]:8080", "10.0.0.5:8081", ""}, {"127.0.0.1:8080", "10.0.0.5:8080", ""},
	} {
		p := newPolicy(Egress{Own: []netip.AddrPort{netip.MustParseAddrPort(c.listens)}, Name: "egress."})
		p.addresses = func() ([]net.Addr, error) {
			return []net.Addr{network("127.0.0.1/8"), network("10.0.0.5/24"), network("2001:db8::5/64"), network("fe80::5/64")}, nil
		}
		if err := p.check("me", netip.MustParseAddrPort(c.at)); err == nil && c.want != "" || err != nil && problem.CodeOf(err) != c.want {
			t.Errorf("%+v: %v", c, err)
		}
	}
	p := newPolicy(Egress{Own: []netip.AddrPort{netip.MustParseAddrPort("[::]:8080")}, Name: "egress."})
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		prefix := netip.MustParsePrefix(a.String())
		if err := p.check("me", netip.AddrPortFrom(prefix.Addr(), 8080)); problem.CodeOf(err) != "egress.own" {
			t.Errorf("%s: %v", a, err)
		}
	}
}

// TestRefusedConnections: a call that is refused sends nothing, fails once and
// says why; so do redirects, requests for tokens and fetches, and a name that is
// resolved to what is refused.
func TestRefusedConnections(t *testing.T) {
	t.Parallel()
	var reached atomic.Int64
	forbidden := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		reached.Add(1)
		fmt.Fprint(w, `{"access_token": "t"}`)
	})
	open := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, forbidden+"/x", http.StatusFound) })
	at, _ := url.Parse(forbidden)
	own := Egress{Own: []netip.AddrPort{netip.MustParseAddrPort(at.Host)}, Name: "egress."}
	p := performer(t, Config{Egress: own, FetchEgress: own})
	named := strings.Replace(forbidden, "127.0.0.1", "localhost", 1)
	for what, input := range map[string]string{
		"a call": `{"uri":"` + forbidden + `"}`, "a name": `{"uri":"` + named + `"}`, "a redirect": `{"uri":"` + open + `","redirect":true}`,
		"a token": `{"uri":"` + open + `","authentication":{"oauth2":{"authority":"` + forbidden + `","grant":"client_credentials"}}}`,
	} {
		_, f := do(t, p, input, "")
		if f == nil || f.Retry || f.Error.Type != typeAuthorization || f.Error.Status != http.StatusForbidden || !strings.Contains(f.Error.Detail, "[egress.own]") {
			t.Errorf("%s: %+v", what, f)
		}
	}
	for _, uri := range []string{forbidden, open} {
		if _, err := p.Fetch(context.Background(), uri, 100); problem.CodeOf(err) != "egress.own" || problem.KindOf(err) != problem.Denied {
			t.Errorf("fetch %s: %v", uri, err)
		}
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("%d requests arrived", n)
	}
	separate := performer(t, Config{FetchEgress: Egress{Deny: []string{"127.0.0.0/8", "::1"}}})
	if _, f := do(t, separate, `{"uri":"`+forbidden+`"}`, ""); f != nil {
		t.Errorf("a call where only fetches are denied: %+v", f)
	}
	if _, err := separate.Fetch(context.Background(), forbidden, 100); problem.CodeOf(err) != "egress.denied" {
		t.Errorf("a fetch after a call of the same host: %v", err)
	}
}

// TestProxiesAreNoWayRound: what a proxy is asked to connect to is checked before
// it is asked, and the proxy itself is the operator's.
func TestProxiesAreNoWayRound(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	proxy := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		fmt.Fprint(w, "by proxy")
	})
	at, _ := url.Parse(proxy)
	transport := &http.Transport{Proxy: http.ProxyURL(at)}
	p := performer(t, Config{Transport: newGuard(transport, newPolicy(Egress{Deny: []string{"127.0.0.0/8", "*.internal"}, Name: "egress."}))})
	for uri, want := range map[string]string{
		"http://169.254.169.254/latest": "[egress.link-local]", "http://127.0.0.1:1/": "[egress.denied]", "http://db.internal/": "[egress.denied]",
		"http://bank.invalid/": "",
		// As getaddrinfo of a proxy reads addresses, and we do not.
		"http://2852039166/": "[egress.not-allowed]", "http://0xa9fea9fe/": "[egress.not-allowed]", "http://169.254.43518/": "[egress.not-allowed]",
		"http://0251.0376.0251.0376/": "[egress.not-allowed]", "http://127.1/": "[egress.not-allowed]", "http://0/": "[egress.not-allowed]",
		"http://localhost./": "[egress.denied]", "http://any.localhost/": "[egress.denied]",
		"http://[::ffff:0:a9fe:a9fe]/": "[egress.link-local]", "http://[64:ff9b:1::a9fe:a9fe]/": "[egress.link-local]",
	} {
		result, f := do(t, p, `{"uri":"`+uri+`"}`, "")
		if want == "" && (f != nil || string(result) != `"by proxy"`) || want != "" && (f == nil || !strings.Contains(f.Error.Detail, want)) {
			t.Errorf("%s: %s, %+v", uri, result, f)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("the proxy was asked %d times", n)
	}
}
