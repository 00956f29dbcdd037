package provider

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"sync"
	"time"
)

const (
	maxAnswer = 1 << 20     // bytes of the provider's keys, or of what it says of itself
	between   = time.Second // two requests for the same
)

// awayError says that the provider has not answered, or not as it should.
type awayError struct{ cause error }

func (e *awayError) Error() string { return e.cause.Error() }
func (e *awayError) Unwrap() error { return e.cause }

// isAway says that an error is not of what the provider has answered.
func isAway(err error) bool {
	var away *awayError
	var asked *url.Error // also of a client whose patience ends, which leaves out why
	return errors.As(err, &away) || errors.As(err, &asked) || os.IsTimeout(err)
}

// sparing asks the provider for the same thing at most once a second, and reads no
// endless answer: who sends tokens of keys that nobody has would have it asked with
// each. Those that come meanwhile wait for one answer together.
type sparing struct {
	next http.RoundTripper

	mu              sync.Mutex
	asked, answered map[string]time.Time // by URL; there are two
}

// RoundTrip implements http.RoundTripper.
func (s *sparing) RoundTrip(r *http.Request) (*http.Response, error) {
	asked, err := s.pause(r)
	if err != nil {
		return nil, &awayError{err}
	}
	answer, err := s.next.RoundTrip(r)
	if err != nil {
		return nil, &awayError{err}
	}
	if answer.StatusCode != http.StatusOK {
		_ = answer.Body.Close() // nobody reads it
		return nil, &awayError{fmt.Errorf("%s answers %s", r.URL, answer.Status)}
	}
	s.mu.Lock()
	s.answered[r.URL.String()] = asked
	s.mu.Unlock()
	answer.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(answer.Body, maxAnswer), answer.Body}
	return answer, nil
}

// last is when an address was asked for last, or will be, and when for what was answered last.
func (s *sparing) last(address string) (asked, answered time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[address], s.answered[address]
}

// pause waits for the turn of a request, and says when that is.
func (s *sparing) pause(r *http.Request) (time.Time, error) {
	s.mu.Lock()
	now, url := time.Now(), r.URL.String()
	due := s.asked[url].Add(between)
	if due.Before(now) {
		due = now
	}
	s.asked[url] = due
	s.mu.Unlock()
	select {
	case <-time.After(due.Sub(now)):
		return due, nil
	case <-r.Context().Done():
		return due, r.Context().Err()
	}
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}
