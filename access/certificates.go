package access

import (
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/aqueduct-engine/aqueduct/principal"
	"github.com/aqueduct-engine/aqueduct/problem"
)

// maxHolder bounds the name of who holds a certificate, in bytes, as that of the actor of
// a signal.
const maxHolder = 256

// Certificates are those of programs: X.509, signed by an authority of ours. Who holds one
// is its URI, where it has exactly one, as those of SPIFFE do, else its common name: names
// of hosts are several, in no order, and say where something runs and not what it is. Its
// organizational units are the groups of who holds it.
type Certificates struct {
	// Authorities are those whose signature counts now. They are asked for again when a
	// verdict is older than a second: who is signed by one that is gone is refused then, on
	// connections that are open, too.
	Authorities func() *x509.CertPool
	// Roles are what who holds one may do, by what is in it: CN=NAME, OU=UNIT or URI=URI.
	Roles map[string][]Role
	Now   func() time.Time

	mu    sync.Mutex
	known map[[sha256.Size]byte]time.Time // when a certificate was found to be good
}

// CheckHolders refuses roles that are none, or of what no certificate has. Problem:
// config.role.
func CheckHolders(roles map[string][]Role) error {
	for holder, may := range roles {
		if err := CheckRoles(may); err != nil {
			return problem.Wrap(err, problem.Invalid, "config.role", "what holders of a certificate of %.100q may do", holder).WithHint("the roles are %s", strings.Join(Roles, ", "))
		}
		if kind, name, ok := strings.Cut(holder, "="); !ok || name == "" || !slices.Contains([]string{"CN", "OU", "URI"}, kind) {
			return problem.New(problem.Invalid, "config.role", "%.100q is nothing that a certificate has", holder).
				WithHint("write ROLE=CN=NAME, ROLE=OU=UNIT or ROLE=URI=URI")
		}
	}
	return nil
}

// Holder says who holds a certificate, the first of a chain, which they have proved by the
// connection. Problem: access.certificate-refused.
func (c *Certificates) Holder(chain []*x509.Certificate) (principal.Principal, error) {
	leaf := chain[0]
	if err := c.verify(chain); err != nil {
		return principal.Principal{}, err
	}
	who := principal.Principal{Name: leaf.Subject.CommonName, Kind: principal.Certificate, Roles: []string{}}
	has := []string{"CN=" + leaf.Subject.CommonName}
	if len(leaf.URIs) == 1 {
		who.Name = leaf.URIs[0].String()
		has = append(has, "URI="+who.Name)
	}
	for _, unit := range leaf.Subject.OrganizationalUnit {
		has = append(has, "OU="+unit)
	}
	switch {
	case who.Name == "" || len(who.Name) > maxHolder || strings.ContainsFunc(who.Name, unicode.IsControl):
		return principal.Principal{}, distrusted("neither its URI nor its common name is a name of up to 256 bytes")
	case len(leaf.Subject.OrganizationalUnit) > MaxGroups:
		return principal.Principal{}, distrusted("it names more than 50 organizational units")
	}
	for _, h := range has {
		who.Roles = append(who.Roles, c.Roles[h]...)
	}
	slices.Sort(who.Roles)
	who.Roles = slices.Compact(who.Roles)
	who.Groups = principal.Believed(slices.Clone(leaf.Subject.OrganizationalUnit))
	return who, nil
}

// verify finds out whether a certificate counts now, or did within the last second.
func (c *Certificates) verify(chain []*x509.Certificate) error {
	id, now := sha256.Sum256(chain[0].Raw), c.Now()
	c.mu.Lock()
	since, ok := c.known[id]
	c.mu.Unlock()
	if age := now.Sub(since); ok && age >= 0 && age < fresh && now.Before(chain[0].NotAfter) {
		return nil
	}
	between := x509.NewCertPool()
	for _, i := range chain[1:] {
		between.AddCert(i)
	}
	_, err := chain[0].Verify(x509.VerifyOptions{
		Roots: c.Authorities(), Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	var invalid x509.CertificateInvalidError
	var stranger x509.UnknownAuthorityError
	switch {
	case err == nil:
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return distrusted("it has expired, or is not valid yet")
	case errors.As(err, &invalid) && invalid.Reason == x509.IncompatibleUsage:
		return distrusted("it is not for clients")
	case errors.As(err, &stranger):
		return distrusted("no authority of access.certificate-ca has signed it")
	default:
		return distrusted("it, or one that signed it, is not what it must be")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil || len(c.known) >= maxVerdicts {
		c.known = map[[sha256.Size]byte]time.Time{}
	}
	c.known[id] = now
	return nil
}

func distrusted(why string) error {
	return problem.New(problem.Denied, "access.certificate-refused", "the certificate is not believed: %s", why).
		WithHint("have an authority that the node believes sign another, for clients")
}
