package access

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/internal/pki"
	"github.com/aqueduct-engine/aqueduct/principal"
	"github.com/aqueduct-engine/aqueduct/problem"
)

func subject(name string, units ...string) x509.Certificate {
	return x509.Certificate{Subject: pkix.Name{CommonName: name, OrganizationalUnit: units}}
}

func withURIs(c x509.Certificate, uris ...string) x509.Certificate {
	for _, text := range uris {
		u, err := url.Parse(text)
		if err != nil {
			panic(err)
		}
		c.URIs = append(c.URIs, u)
	}
	return c
}

// E7: who holds a certificate of ours is known by what is in it, and nobody by another's.
func TestWhoHoldsACertificate(t *testing.T) {
	t.Parallel()
	ours, others := pki.New("ours"), pki.New("others")
	roles := map[string][]Role{"CN=billing": {Application}, "OU=ops": {Operator, Viewer}, "OU=billing": {Admin}, "URI=spiffe://shop/till": {Viewer}}
	if err := CheckHolders(roles); err != nil {
		t.Fatal(err)
	}
	c := &Certificates{Authorities: ours.Pool, Roles: roles, Now: time.Now}
	for name, k := range map[string]struct {
		by   *pki.Authority
		of   x509.Certificate
		want principal.Principal
		says string
	}{
		"by its name":        {ours, subject("billing"), principal.Principal{Name: "billing", Roles: []string{"application"}}, ""},
		"by its units":       {ours, subject("desk", "ops", "bees", "os:root"), principal.Principal{Name: "desk", Roles: []string{"operator", "viewer"}, Groups: []string{"ops", "bees"}}, ""},
		"a unit is no name":  {ours, subject("x", "billing"), principal.Principal{Name: "x", Roles: []string{"admin"}, Groups: []string{"billing"}}, ""},
		"a name is no unit":  {ours, subject("ops"), principal.Principal{Name: "ops", Roles: []string{}}, ""},
		"by its URI":         {ours, withURIs(subject("billing"), "spiffe://shop/till"), principal.Principal{Name: "spiffe://shop/till", Roles: []string{"application", "viewer"}}, ""},
		"of two URIs none":   {ours, withURIs(subject("pos"), "spiffe://shop/till", "spiffe://shop/x"), principal.Principal{Name: "pos", Roles: []string{}}, ""},
		"no name":            {ours, subject(""), principal.Principal{}, "is a name of up to 256 bytes"},
		"a name of lines":    {ours, subject("a\nb"), principal.Principal{}, "is a name of up to 256 bytes"},
		"many units":         {ours, subject("a", strings.Split(strings.Repeat("u,", MaxGroups), ",")...), principal.Principal{}, "organizational units"},
		"another's":          {others, subject("billing"), principal.Principal{}, "no authority of access.certificate-ca"},
		"expired":            {ours, x509.Certificate{Subject: pkix.Name{CommonName: "billing"}, NotAfter: time.Now().Add(-time.Minute)}, principal.Principal{}, "has expired"},
		"not yet valid":      {ours, x509.Certificate{Subject: pkix.Name{CommonName: "billing"}, NotAfter: time.Now().Add(100 * time.Hour)}, principal.Principal{}, "not valid yet"},
		"of servers":         {ours, x509.Certificate{Subject: pkix.Name{CommonName: "billing"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, principal.Principal{}, "not for clients"},
		"of our name, by it": {pki.New("ours"), subject("billing"), principal.Principal{}, "no authority of access.certificate-ca"},
	} {
		who, err := c.Holder([]*x509.Certificate{k.by.Sign(k.of).X509()})
		if k.says != "" {
			if problem.CodeOf(err) != "access.certificate-refused" || !strings.Contains(err.Error(), k.says) || who.Name != "" {
				t.Errorf("%s: %+v, %v", name, who, err)
			}
			continue
		}
		k.want.Kind = principal.Certificate
		if err != nil || !reflect.DeepEqual(who, k.want) {
			t.Errorf("%s: %+v, %v; want %+v", name, who, err, k.want)
		}
	}
}

// Of an authority that is believed no more, and after its end, a certificate is refused
// within a second, although it was good before.
func TestACertificateIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	ours, next := pki.New("ours"), pki.New("next")
	now, pool, asked := time.Now(), ours.Pool(), 0
	c := &Certificates{Authorities: func() *x509.CertPool { asked++; return pool }, Now: func() time.Time { return now }}
	end := now.Add(time.Hour)
	held := []*x509.Certificate{ours.Sign(x509.Certificate{Subject: pkix.Name{CommonName: "billing"}, NotAfter: end}).X509()}
	hold := func(what, says string) {
		t.Helper()
		if _, err := c.Holder(held); (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for range 5 {
		hold("good", "")
	}
	if asked != 1 {
		t.Errorf("of 5 at once %d were verified", asked)
	}
	pool = next.Pool()
	now = now.Add(time.Second)
	hold("its authority is gone", "no authority")
	pool = ours.Pool()
	hold("its authority is back", "")
	now = end.Add(time.Nanosecond)
	hold("at its end", "has expired")
}

// Roles are given to what a certificate has.
func TestHoldersAreChecked(t *testing.T) {
	t.Parallel()
	for holder, role := range map[string]Role{"billing": Viewer, "O=billing": Viewer, "CN=": Viewer, "CN=a": "king"} {
		if err := CheckHolders(map[string][]Role{holder: {role}}); problem.CodeOf(err) != "config.role" {
			t.Errorf("%s may be %s: %v", holder, role, err)
		}
	}
}
