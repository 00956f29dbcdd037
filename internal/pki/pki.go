// Package pki signs certificates for tests.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
)

// Authority signs certificates.
type Authority struct {
	PEM []byte

	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

var serial atomic.Int64

// New is an authority of its own.
func New(name string) *Authority {
	a := &Authority{certificate: &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}}
	a.key = newKey()
	a.PEM = a.sign(a.certificate, a.key)
	block, _ := pem.Decode(a.PEM)
	a.certificate = must(x509.ParseCertificate(block.Bytes))
	return a
}

// Pair is a certificate and its key.
type Pair struct{ Certificate, Key []byte }

// Sign makes a certificate: of a client and of a server, for a day, where it does not say
// otherwise.
func (a *Authority) Sign(c x509.Certificate) Pair {
	if c.NotAfter.IsZero() {
		c.NotAfter = time.Now().Add(24 * time.Hour)
	}
	c.NotBefore = c.NotAfter.Add(-48 * time.Hour)
	if c.ExtKeyUsage == nil {
		c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	}
	key := newKey()
	der := must(x509.MarshalPKCS8PrivateKey(key))
	return Pair{a.sign(&c, key), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})}
}

func (a *Authority) sign(c *x509.Certificate, of *ecdsa.PrivateKey) []byte {
	c.SerialNumber = big.NewInt(serial.Add(1))
	der := must(x509.CreateCertificate(rand.Reader, c, a.certificate, of.Public(), a.key))
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// Pool has the authority in it.
func (a *Authority) Pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.certificate)
	return p
}

// TLS is the pair as a connection shows it.
func (p Pair) TLS() tls.Certificate { return must(tls.X509KeyPair(p.Certificate, p.Key)) }

// X509 is the certificate of the pair.
func (p Pair) X509() *x509.Certificate { return p.TLS().Leaf }

// Write puts the pair into two files of a folder, each whole or not at all.
func (p Pair) Write(t testing.TB, folder, name string) (certificate, key string) {
	t.Helper()
	certificate, key = filepath.Join(folder, name+".pem"), filepath.Join(folder, name+".key")
	Write(t, certificate, p.Certificate)
	Write(t, key, p.Key)
	return certificate, key
}

// Write puts a text into a file, whole or not at all.
func Write(t testing.TB, file string, text []byte) {
	t.Helper()
	if err := os.WriteFile(file+".new", text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
}

func newKey() *ecdsa.PrivateKey { return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
