package client

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// TLS says how a client speaks to a node whose address is https: whom it believes, and by
// which certificate it is known itself.
type TLS struct {
	CA          string // file of PEM: who signs certificates of nodes; "" = whom the host believes
	Certificate string // file of PEM; "" = the client has none
	Key         string // file of PEM, that of Certificate
}

// HTTP makes what New takes. The client's own certificate is read again for each
// connection: one that is renewed needs no new client. Problem: api.certificate.
func (t TLS) HTTP() (*http.Client, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CA != "" {
		text, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, problem.Wrap(err, problem.Invalid, "api.certificate", "nobody is known whose certificates to believe")
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, problem.New(problem.Invalid, "api.certificate", "%s has no certificate in it", t.CA).WithHint("it is to be a file of PEM, with who signs the certificates of nodes")
		}
	}
	if t.Certificate != "" || t.Key != "" {
		if _, err := t.own(); err != nil {
			return nil, err
		}
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return t.own() }
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = c
	return &http.Client{Transport: transport}, nil
}

func (t TLS) own() (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(t.Certificate, t.Key)
	if err != nil {
		return nil, problem.Wrap(err, problem.Invalid, "api.certificate", "the client has no certificate of its own").
			WithHint("name a file of PEM with the certificate, and one with its key")
	}
	return &pair, nil
}
