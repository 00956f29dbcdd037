package activity

import "net/http"

// once is a transport that does not repeat a request. net/http sends one again on
// its own, on connection after connection, when a kept one breaks under it and a
// header Idempotency-Key says that this does no harm. How often a command is
// tried is for its author and the operator to say. What is still sent again is a
// request of which nothing had been written, and one whose method only reads.
type once struct{ http.RoundTripper }

// keyHeaders are what net/http looks for, in these very letters. HTTP knows no
// case of names.
var keyHeaders = map[string]string{headerKey: "idempotency-key", "X-" + headerKey: "x-idempotency-key"}

// RoundTrip implements http.RoundTripper.
func (o once) RoundTrip(r *http.Request) (*http.Response, error) {
	sent := *r
	sent.Header = r.Header.Clone()
	for name, plain := range keyHeaders {
		if v, ok := sent.Header[name]; ok {
			delete(sent.Header, name)
			sent.Header[plain] = v
		}
	}
	return o.RoundTripper.RoundTrip(&sent)
}
