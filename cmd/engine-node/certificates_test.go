package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/aqueduct-engine/aqueduct/api"
	"github.com/aqueduct-engine/aqueduct/config"
	"github.com/aqueduct-engine/aqueduct/internal/pki"
	"github.com/aqueduct-engine/aqueduct/problem"
)

// shows is a node that speaks TLS: a listener, its files, and a clock that is put on.
type shows struct {
	*certificates
	t       *testing.T
	url     string
	files   config.TLS
	ca      *pki.Authority
	log     bytes.Buffer
	seconds atomic.Int64
	metrics *prometheus.Registry
}

func showing(t *testing.T) *shows {
	t.Helper()
	s := &shows{t: t, ca: pki.New("ours"), metrics: prometheus.NewRegistry()}
	folder := t.TempDir()
	s.files = config.TLS{Certificate: filepath.Join(folder, "node.pem"), Key: filepath.Join(folder, "node.key")}
	s.put(s.local(time.Hour))
	var err error
	now := func() time.Time { return time.Now().Add(time.Duration(s.seconds.Load()) * time.Second) }
	if s.certificates, err = newCertificates(s.files, "", now, slog.New(slog.NewTextHandler(&s.log, nil))); err != nil {
		t.Fatal(err)
	}
	s.measure(s.metrics)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.url = "https://" + l.Addr().String()
	server := api.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }), slog.New(slog.DiscardHandler))
	server.TLSConfig = s.server()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- serveHTTP(ctx, server, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s
}

// local is a certificate for this host that lasts so long.
func (s *shows) local(life time.Duration) pki.Pair {
	return s.ca.Sign(x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(life)})
}

// put writes the files, and lets the time pass for which the last look counts.
func (s *shows) put(p pki.Pair) {
	pki.Write(s.t, s.files.Certificate, p.Certificate)
	pki.Write(s.t, s.files.Key, p.Key)
	s.seconds.Add(1)
}

func (s *shows) client() *http.Client {
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: s.ca.Pool()}, ForceAttemptHTTP2: true}}
	s.t.Cleanup(c.CloseIdleConnections)
	return c
}

// asked makes a request, and says whether its connection was there before, which
// certificate that has, and what the node has answered.
func (s *shows) asked(c *http.Client) (before bool, number *big.Int, answer string) {
	s.t.Helper()
	ctx := httptrace.WithClientTrace(s.t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { before = i.Reused }})
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	res, err := c.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return before, res.TLS.PeerCertificates[0].SerialNumber, string(text)
}

// shown fails unless a new connection has a certificate.
func (s *shows) shown(what string, want pki.Pair) {
	s.t.Helper()
	if _, number, _ := s.asked(s.client()); number.Cmp(want.X509().SerialNumber) != 0 {
		s.t.Errorf("%s: certificate %s, want %s", what, number, want.X509().SerialNumber)
	}
}

// says is the value of a metric.
func (s *shows) says(name string) float64 {
	s.t.Helper()
	all, err := s.metrics.Gather()
	if err != nil {
		s.t.Fatal(err)
	}
	for _, m := range all {
		if m.GetName() == name {
			return m.GetMetric()[0].GetGauge().GetValue()
		}
	}
	s.t.Fatal("no metric", name)
	return 0
}

// A certificate that is renewed is the one of the next connection; those that are open
// stay, and files that are wrong leave what was good in force, and say so.
func TestTheCertificateIsReadAgain(t *testing.T) {
	t.Parallel()
	s := showing(t)
	long := s.client()
	_, first, proto := s.asked(long)
	if proto != "HTTP/2.0" {
		t.Error("it speaks", proto)
	}
	second := s.local(2 * time.Hour)
	s.put(second)
	if before, number, _ := s.asked(long); !before || number.Cmp(first) != 0 {
		t.Error("the open connection was dropped")
	}
	s.shown("renewed", second)
	if wrong, left := s.says("aqueduct_tls_certificate_files_wrong"), s.says("aqueduct_tls_certificate_expires_seconds"); wrong != 0 || left < 7000 || left > 7200 {
		t.Errorf("wrong %g, %g s left", wrong, left)
	}

	other := s.local(time.Hour)
	for name, bad := range map[string]pki.Pair{
		"no PEM":        {Certificate: []byte("x"), Key: second.Key},
		"another's key": {Certificate: other.Certificate, Key: second.Key},
		"no key":        {Certificate: other.Certificate},
		"expired":       s.local(-time.Hour),
	} {
		s.put(bad)
		s.shown(name, second)
		if wrong, left := s.says("aqueduct_tls_certificate_files_wrong"), s.says("aqueduct_tls_certificate_expires_seconds"); wrong != 1 || left < 7000 {
			t.Errorf("%s: wrong %g, %g s left", name, wrong, left)
		}
	}
	said := strings.Count(s.log.String(), "the one before stays")
	s.seconds.Add(5)
	if s.shown("wrong for long", second); said < 3 || strings.Count(s.log.String(), "the one before stays") != said {
		t.Errorf("it is to be said once of each: %s", s.log.String())
	}
	s.put(other)
	if s.shown("good again", other); s.says("aqueduct_tls_certificate_files_wrong") != 0 {
		t.Error("the files are still said to be wrong")
	}
	if before, _, _ := s.asked(long); !before {
		t.Error("the open connection was dropped")
	}
}

// What is older than TLS 1.2 is not spoken.
func TestOldTLSIsRefused(t *testing.T) {
	t.Parallel()
	s := showing(t)
	for version, ok := range map[uint16]bool{tls.VersionTLS10: false, tls.VersionTLS11: false, tls.VersionTLS12: true, tls.VersionTLS13: true} {
		c, err := tls.Dial("tcp", strings.TrimPrefix(s.url, "https://"), &tls.Config{RootCAs: s.ca.Pool(), MinVersion: tls.VersionTLS10, MaxVersion: version})
		if (err == nil) != ok {
			t.Errorf("%s: %v", tls.VersionName(version), err)
		}
		if err == nil {
			_ = c.Close()
		}
	}
}

// A node that cannot speak TLS as it is told does not start.
func TestNoCertificateIsNoNode(t *testing.T) {
	t.Parallel()
	_, err := newCertificates(config.TLS{Certificate: "/nonexistent/a", Key: "/nonexistent/b"}, "", time.Now, slog.New(slog.DiscardHandler))
	if p := (*problem.Error)(nil); !errors.As(err, &p) || p.Code != "config.certificate" {
		t.Error(err)
	}
}

// signs makes certificates of a script: pki authority NAME | sign NAME FILE COMMON-NAME [UNIT...].
// They are of this host, too.
func signs(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: pki authority NAME | sign NAME FILE COMMON-NAME [UNIT...]")
	}
	place := ts.MkAbs(args[1]) + ".pem"
	if args[0] == "authority" {
		a := pki.New(args[1])
		authorities.Store(place, a)
		ts.Check(os.WriteFile(place, a.PEM, 0o600))
		return
	}
	found, ok := authorities.Load(place)
	if !ok || args[0] != "sign" || len(args) < 4 {
		ts.Fatalf("pki: %q", args)
	}
	c := x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	c.Subject.CommonName, c.Subject.OrganizationalUnit = args[3], args[4:]
	p := found.(*pki.Authority).Sign(c)
	ts.Check(os.WriteFile(ts.MkAbs(args[2])+".pem", p.Certificate, 0o600))
	ts.Check(os.WriteFile(ts.MkAbs(args[2])+".key", p.Key, 0o600))
}

// authorities are those of all scripts, by their files.
var authorities sync.Map
