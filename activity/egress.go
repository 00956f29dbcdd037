package activity

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
)

// typeAuthorization is raised when a call is not allowed.
const typeAuthorization = errorTypes + "authorization"

// Egress says where requests may go. A rule is an address, a range of addresses
// such as 10.0.0.0/8, a host, or *.DOMAIN for all below it. Rules of addresses
// hold for what a name is resolved to, at the moment of the connection. The zero
// value refuses what nobody means: addresses of one link, where clouds keep the
// credentials of a machine, and those that are none of a host.
type Egress struct {
	Allow []string         // when there are any, only what one of them fits
	Deny  []string         // wins over Allow
	Own   []netip.AddrPort // where the node itself listens: never
	Name  string           // of the settings, for people: NAMEallow and NAMEdeny
}

// linkOnly are ranges that only a rule of addresses in Allow opens.
var linkOnly = []netip.Prefix{
	netip.MustParsePrefix("169.254.0.0/16"), // link-local, and the metadata of most clouds
	netip.MustParsePrefix("fe80::/10"),
	netip.MustParsePrefix("fd00:ec2::/32"),      // metadata of AWS
	netip.MustParsePrefix("100.100.100.200/32"), // of Alibaba Cloud
	netip.MustParsePrefix("192.0.0.192/32"),     // of Oracle Cloud
	netip.MustParsePrefix("168.63.129.16/32"),   // of Azure
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("::/128"),
	netip.MustParsePrefix("224.0.0.0/4"),
	netip.MustParsePrefix("255.255.255.255/32"),
	netip.MustParsePrefix("ff00::/8"),
}

// embedding are ranges of IPv6 in which the address of IPv4 stands from a byte on.
var embedding = []struct {
	prefix netip.Prefix
	at     int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12},    // NAT64
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12},  // NAT64 of a network's own
	{netip.MustParsePrefix("::ffff:0:0:0/96"), 12}, // translated
	{netip.MustParsePrefix("::/96"), 12},           // compatible
	{netip.MustParsePrefix("2002::/16"), 2},        // 6to4
}

// policy is an Egress that is compiled.
type policy struct {
	egress      Egress
	allow, deny rules
	addresses   func() ([]net.Addr, error) // of this host
}

type rules struct {
	ranges []netip.Prefix
	hosts  []HostPattern
}

// newPolicy panics for a rule that is none: that is a bug of the program.
func newPolicy(e Egress) *policy {
	return &policy{egress: e, allow: newRules(e.Allow), deny: newRules(e.Deny), addresses: net.InterfaceAddrs}
}

func newRules(texts []string) (r rules) {
	for _, t := range texts {
		if prefix, err := netip.ParsePrefix(t); err == nil {
			if a := prefix.Addr(); a.Is4In6() && prefix.Bits() >= 96 { // addresses are compared as those of IPv4
				prefix = netip.PrefixFrom(a.Unmap(), prefix.Bits()-96)
			}
			r.ranges = append(r.ranges, prefix.Masked())
		} else if addr, err := netip.ParseAddr(strings.Trim(t, "[]")); err == nil {
			r.ranges = append(r.ranges, netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen()))
		} else if u, err := url.Parse("https://" + strings.TrimPrefix(t, "*.")); err == nil && u.Host != "" && !strings.ContainsAny(t, "/@?#:") {
			r.hosts = append(r.hosts, HostPattern(t))
		} else {
			panic(fmt.Sprintf("activity: egress rule %q is no address, range or host", t))
		}
	}
	return r
}

func (r rules) host(name string) bool {
	u := &url.URL{Scheme: "https", Host: name}
	return slices.ContainsFunc(r.hosts, func(h HostPattern) bool { return h.fits(u) })
}

func (r rules) address(a netip.Addr) bool {
	return slices.ContainsFunc(r.ranges, func(p netip.Prefix) bool { return p.Contains(a) })
}

// check refuses a connection to an address that a name stands for.
func (p *policy) check(host string, at netip.AddrPort) error {
	host = strings.TrimSuffix(host, ".")
	a := at.Addr().WithZone("").Unmap()
	written := a // of which a range may be denied, too, as well as the address of IPv4 in it
	for _, e := range embedding {
		if b := a.As16(); a.Is6() && e.prefix.Contains(a) && !a.IsLoopback() && !a.IsUnspecified() {
			a = netip.AddrFrom4([4]byte(b[e.at : e.at+4]))
		}
	}
	refuse := func(code, why, hint string, args ...any) error {
		return problem.New(problem.Denied, code, "a connection to %s (%s) is refused: %s", host, at, why).WithHint(hint, args...)
	}
	name := p.egress.Name
	switch allowed := p.allow.address(a); {
	case p.own(netip.AddrPortFrom(a, at.Port())):
		return refuse("egress.own", "this node itself listens there", "a workflow starts another by run, and publishes events by emit")
	case p.deny.host(host) || p.deny.address(a) || p.deny.address(written):
		return refuse("egress.denied", "a rule of "+name+"deny", "change %sdeny if it is meant to be reached", name)
	case allowed:
		return nil
	case slices.ContainsFunc(linkOnly, func(r netip.Prefix) bool { return r.Contains(a) }):
		return refuse("egress.link-local", "link-local, metadata and unspecified addresses are", "name the address in %sallow if it is meant to be reached", name)
	case len(p.egress.Allow) > 0 && !p.allow.host(host):
		return refuse("egress.not-allowed", "no rule of "+name+"allow fits", "name the host or its address in %sallow", name)
	}
	return nil
}

func (p *policy) own(at netip.AddrPort) bool {
	if at.Addr().IsUnspecified() {
		return slices.ContainsFunc(p.egress.Own, func(o netip.AddrPort) bool { return o.Port() == at.Port() })
	}
	return slices.ContainsFunc(p.egress.Own, func(o netip.AddrPort) bool {
		return o.Port() == at.Port() && (o.Addr().Unmap() == at.Addr() || o.Addr().IsUnspecified() && (at.Addr().IsLoopback() || p.ofHost(at.Addr())))
	})
}

// ofHost says whether an address is one of this host, as they are now: who listens at every
// address of it listens there, too. Where nobody can say, it may be.
func (p *policy) ofHost(a netip.Addr) bool {
	all, err := p.addresses()
	return err != nil || slices.ContainsFunc(all, func(has net.Addr) bool {
		prefix, err := netip.ParsePrefix(has.String())
		return err == nil && prefix.Addr().WithZone("").Unmap() == a
	})
}

// proxied marks the context of a request whose connection goes to a proxy.
type proxied struct{}

// guard is a transport that keeps to a policy. A connection is checked when it
// is made, with the address that was resolved for it, so that redirects, and
// names that mean another address a moment later, are checked as well. A proxy
// connects for us: then the address that this host finds for the name is checked
// before the request is sent.
type guard struct {
	*http.Transport
	policy *policy
}

// newGuard guards a copy of a transport.
func newGuard(t *http.Transport, p *policy) *guard {
	t = t.Clone()
	t.DialTLSContext = nil
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		d := net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}
		if ctx.Value(proxied{}) == nil {
			host, _, _ := net.SplitHostPort(address)
			d.ControlContext = func(_ context.Context, _, resolved string, _ syscall.RawConn) error {
				at, err := netip.ParseAddrPort(resolved)
				if err != nil {
					return fmt.Errorf("address %s: %w", resolved, err)
				}
				return p.check(host, at)
			}
		}
		return d.DialContext(ctx, network, address)
	}
	return &guard{Transport: t, policy: p}
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	if g.Proxy == nil {
		return g.Transport.RoundTrip(r)
	}
	proxy, err := g.Proxy(r)
	if err != nil || proxy == nil {
		return g.Transport.RoundTrip(r) // which fails in the same way
	}
	if err := g.throughProxy(r); err != nil {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, err
	}
	return g.Transport.RoundTrip(r.WithContext(context.WithValue(r.Context(), proxied{}, true)))
}

// throughProxy checks where a proxy is asked to connect to. A name that this
// host cannot resolve is checked by rules of hosts alone.
func (g *guard) throughProxy(r *http.Request) error {
	host := r.URL.Hostname()
	port, err := strconv.ParseUint(portOf(r.URL), 10, 16)
	if err != nil {
		return fmt.Errorf("%s is no port", portOf(r.URL))
	}
	var addresses []netip.Addr
	switch bare := strings.ToLower(strings.TrimSuffix(host, ".")); {
	case bare == "localhost" || strings.HasSuffix(bare, ".localhost"):
		addresses = []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback()}
	case numeric(bare):
		return problem.New(problem.Denied, "egress.not-allowed", "a connection to %s is refused: it is a number and no address as it is written", host).
			WithHint("write the address in its four numbers from 0 to 255")
	default:
		addresses, err = net.DefaultResolver.LookupNetIP(r.Context(), "ip", host)
	}
	if err != nil {
		addresses = []netip.Addr{netip.MustParseAddr("192.0.2.1")} // an address of nobody
	}
	for _, a := range addresses {
		if err := g.policy.check(host, netip.AddrPortFrom(a, uint16(port))); err != nil {
			return err
		}
	}
	return nil
}

// numeric says that a host is no address and that the C library of a proxy would
// take it for one: 2852039166, 0xa9.0xfe.43518 and the like, whose last part is a
// number (https://url.spec.whatwg.org/#ends-in-a-number-checker).
func numeric(host string) bool {
	if _, err := netip.ParseAddr(host); err == nil {
		return false
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	if _, err := strconv.ParseUint(last, 0, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return true
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}

// notAllowed is the refusal of an egress policy in an error; nil = none.
func notAllowed(err error) *problem.Error {
	var p *problem.Error
	if errors.As(err, &p) && strings.HasPrefix(p.Code, "egress.") {
		return p
	}
	return nil
}

func egressFailure(p *problem.Error) *engine.Failure {
	return permanent(typeAuthorization, http.StatusForbidden, "not allowed", p.Error())
}
