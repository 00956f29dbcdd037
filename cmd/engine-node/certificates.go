package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/aqueduct-engine/aqueduct/config"
	"github.com/aqueduct-engine/aqueduct/problem"
)

// lookAgain is how long what the files of a certificate say counts.
const lookAgain = time.Second

// certificates are those by which a node is known to who connects. The files are read
// again when somebody connects or asks for metrics, at most once a second: so a node that
// nobody asks reads nothing. Connections that are open stay; files that are wrong leave
// what was good in force.
type certificates struct {
	files []string // certificate and key, and of the authorities whose certificates others show, where they do
	now   func() time.Time
	log   *slog.Logger

	looking sync.Mutex // held by who reads the files: others go on with what there is
	looked  time.Time
	read    [][]byte // what the files had in them last

	mu      sync.RWMutex
	good    *tls.Config
	expires time.Time
	wrong   error // with what was read last
}

// newCertificates reads them; authorities is the file of those who sign what others show,
// "" = nobody does. Problem: config.certificate.
func newCertificates(files config.TLS, authorities string, now func() time.Time, log *slog.Logger) (*certificates, error) {
	c := &certificates{files: []string{files.Certificate, files.Key}, now: now, log: log}
	if authorities != "" {
		c.files = append(c.files, authorities)
	}
	c.look(context.Background())
	if c.good == nil {
		return nil, problem.Wrap(c.wrong, problem.Invalid, "config.certificate", "the API cannot speak TLS").
			WithHint("tls.certificate and tls.key name files of PEM that belong together, access.certificate-ca one with certificates, and the node's user may read them")
	}
	if !c.expires.After(now()) {
		log.Error("the certificate of the API has expired: clients refuse it", "file", files.Certificate, "expired", c.expires)
	}
	return c, nil
}

// server is how a listener speaks TLS.
func (c *certificates) server() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		c.look(hello.Context())
		c.mu.RLock()
		defer c.mu.RUnlock()
		return c.good, nil
	}}
}

// look reads the files, if they have not been read just now, and takes what is new in
// them.
func (c *certificates) look(ctx context.Context) {
	if !c.looking.TryLock() {
		return
	}
	defer c.looking.Unlock()
	if now := c.now(); now.Sub(c.looked) < lookAgain {
		return
	}
	c.looked = c.now()
	var texts [][]byte
	for _, file := range c.files {
		text, err := os.ReadFile(file)
		if err != nil {
			c.read = nil
			c.keep(ctx, err)
			return
		}
		texts = append(texts, text)
	}
	if slices.EqualFunc(c.read, texts, bytes.Equal) {
		return
	}
	c.read = texts
	made, expires, err := configOf(texts[0], texts[1])
	if err == nil && c.good != nil && !expires.After(c.now()) {
		err = fmt.Errorf("%s has expired: %s", c.files[0], expires.UTC().Format(time.RFC3339))
	}
	if err == nil && len(texts) > 2 {
		// Whom to believe is decided at each request, and told then: see access.Certificates.
		made.ClientAuth, made.ClientCAs = tls.RequestClientCert, x509.NewCertPool()
		if !made.ClientCAs.AppendCertsFromPEM(texts[2]) {
			err = fmt.Errorf("%s has no certificate in it", c.files[2])
		}
	}
	if err != nil {
		c.keep(ctx, err)
		return
	}
	c.mu.Lock()
	c.good, c.expires, c.wrong = made, expires, nil
	c.mu.Unlock()
	c.log.InfoContext(ctx, "the API speaks TLS by a certificate", "file", c.files[0], "expires", expires)
}

// authorities are those who sign what others show, as the file says it now.
func (c *certificates) authorities() *x509.CertPool {
	c.look(context.Background())
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.good.ClientCAs
}

// keep stays with what was good, and says why.
func (c *certificates) keep(ctx context.Context, wrong error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.good != nil && (c.wrong == nil || c.wrong.Error() != wrong.Error()) {
		c.log.ErrorContext(ctx, "the files of the API's certificate are wrong: the one before stays", "error", wrong, "expires", c.expires)
	}
	c.wrong = wrong
}

// configOf makes what a listener needs of the text of two files; expires is when the
// first of the chain does.
func configOf(certificate, key []byte) (made *tls.Config, expires time.Time, err error) {
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, expires, err
	}
	for _, der := range pair.Certificate {
		of, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, expires, err
		}
		if expires.IsZero() || of.NotAfter.Before(expires) {
			expires = of.NotAfter
		}
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2", "http/1.1"}}, expires, nil
}

// measure registers what is measured of them.
func (c *certificates) measure(metrics prometheus.Registerer) {
	metrics.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "aqueduct_tls_certificate_expires_seconds", Help: "Until the certificate of the API that is in force expires, or one of those that signed it."},
			func() float64 {
				c.look(context.Background())
				c.mu.RLock()
				defer c.mu.RUnlock()
				return c.expires.Sub(c.now()).Seconds()
			}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "aqueduct_tls_certificate_files_wrong", Help: "1 = the files of the API's certificate are wrong, and the one before stays in force."},
			func() float64 {
				c.look(context.Background())
				c.mu.RLock()
				defer c.mu.RUnlock()
				if c.wrong != nil {
					return 1
				}
				return 0
			}),
	)
}

// reachedBy says what is true of the way to the API: whether others can read it.
func reachedBy(c config.Config, log *slog.Logger) {
	if c.TLS.On() || !c.Access.Asks() || c.OnLoopback() {
		return
	}
	log.Warn("the API speaks HTTP beyond this host: whoever reads the network reads the tokens in it",
		"listen", c.Listen, "hint", "set tls.certificate and tls.key, or let nothing but a proxy with TLS reach it")
}
