// Package otlp sends spans to a receiver of OpenTelemetry, as OTLP over HTTP in JSON.
//
// Spans wait in a bounded queue: whoever records them never waits, and what has no room
// is dropped and counted. They are sent in batches; what a receiver cannot take now is
// tried again for a while, as the protocol says, and then dropped. Traces help people who
// look: nothing that a node does depends on them.
package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/aqueduct-engine/aqueduct/tracing"
)

// Limits of an exporter.
const (
	MaxQueue      = 8_192            // spans that wait; what comes then is dropped
	MaxBatch      = 512              // spans of one request
	MaxRetryAfter = 30 * time.Second // that a receiver may ask for
)

const (
	path         = "/v1/traces"
	every        = time.Second            // how long a span waits for others
	timeout      = 10 * time.Second       // of one request
	patience     = time.Minute            // how long one batch is tried again
	firstPause   = 500 * time.Millisecond // before a batch is sent again; it doubles with each
	longestPause = 10 * time.Second
	answerBytes  = 64 << 10 // of an answer that are read
	quietFor     = time.Minute
)

// Config is what an exporter is made of.
type Config struct {
	Endpoint *url.URL                    // of the receiver; /v1/traces is added
	Headers  func() (http.Header, error) // of each request, read each time; nil = none
	Resource []tracing.Attribute         // what sends
	Scope    string                      // what makes the spans
	Version  string                      // of that
	Log      *slog.Logger

	every, timeout, patience, firstPause time.Duration // of tests; 0 = as above
}

// Reasons for which spans are dropped.
const (
	Full    = "full"    // the queue had no room
	Refused = "refused" // the receiver does not take them
	Failed  = "failed"  // it could not be reached, or did not take them in time
	Stopped = "stopped" // the node has stopped
)

// Exporter sends spans. Its methods may be called from many goroutines.
type Exporter struct {
	Config
	to      string
	client  http.Client
	mu      sync.Mutex
	queue   []tracing.Span
	closed  bool
	full    chan struct{} // there is a batch
	closing chan struct{}
	done    chan struct{}
	work    context.Context
	end     context.CancelFunc
	quiet   time.Time // until when nothing is logged

	sent    atomic.Int64
	dropped map[string]*atomic.Int64
}

// Start makes an exporter and has it send, until it is closed.
func Start(c Config) *Exporter {
	if c.every == 0 {
		c.every, c.timeout, c.patience, c.firstPause = every, timeout, patience, firstPause
	}
	e := &Exporter{
		Config: c, to: strings.TrimSuffix(c.Endpoint.String(), "/") + path,
		client: http.Client{
			Transport:     http.DefaultTransport.(*http.Transport).Clone(),
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // headers are for the receiver alone
		},
		full: make(chan struct{}, 1), closing: make(chan struct{}), done: make(chan struct{}),
		dropped: map[string]*atomic.Int64{Full: {}, Refused: {}, Failed: {}, Stopped: {}},
	}
	e.work, e.end = context.WithCancel(context.Background())
	go e.run()
	return e
}

// Record takes spans. It never waits.
func (e *Exporter) Record(spans ...tracing.Span) {
	e.mu.Lock()
	reason, room := Full, MaxQueue-len(e.queue)
	if e.closed {
		reason, room = Stopped, 0
	}
	n := min(len(spans), room)
	e.queue = append(e.queue, spans[:n]...)
	ready := len(e.queue) >= MaxBatch
	e.mu.Unlock()
	if n < len(spans) {
		e.dropped[reason].Add(int64(len(spans) - n))
	}
	if ready {
		select {
		case e.full <- struct{}{}:
		default:
		}
	}
}

// Sent counts the spans that the receiver has taken.
func (e *Exporter) Sent() int64 { return e.sent.Load() }

// Dropped counts spans that it has not, by the reason.
func (e *Exporter) Dropped(reason string) int64 { return e.dropped[reason].Load() }

// Waiting counts the spans that wait to be sent.
func (e *Exporter) Waiting() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.queue)
}

// Close sends what waits, as long as ctx lasts, and drops the rest.
func (e *Exporter) Close(ctx context.Context) {
	e.mu.Lock()
	again := e.closed
	e.closed = true
	e.mu.Unlock()
	if !again {
		close(e.closing)
	}
	stop := context.AfterFunc(ctx, e.end)
	<-e.done
	stop()
	e.end()
}

// run sends batches until the exporter is closed and nothing waits.
func (e *Exporter) run() {
	defer close(e.done)
	tick := time.NewTicker(e.every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-e.full:
		case <-e.closing:
		}
		for {
			batch := e.take()
			if len(batch) == 0 {
				break
			}
			if ok := e.send(batch); !ok && e.isClosing() {
				for batch := e.take(); len(batch) > 0; batch = e.take() {
					e.dropped[Stopped].Add(int64(len(batch)))
				}
			}
			if len(batch) < MaxBatch && !e.isClosing() {
				break // what has come since waits for others
			}
		}
		if e.isClosing() && e.Waiting() == 0 {
			return
		}
	}
}

func (e *Exporter) isClosing() bool {
	select {
	case <-e.closing:
		return true
	default:
		return false
	}
}

// take takes a batch out of the queue.
func (e *Exporter) take() []tracing.Span {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := min(len(e.queue), MaxBatch)
	batch := append([]tracing.Span(nil), e.queue[:n]...)
	rest := copy(e.queue, e.queue[n:])
	clear(e.queue[rest:])
	e.queue = e.queue[:rest]
	return batch
}

// send sends a batch, again and again where that may help; false means that the
// receiver has not taken it, which is counted.
func (e *Exporter) send(batch []tracing.Span) bool {
	body := compressed(request(e.Resource, e.Scope, e.Version, batch))
	began, pause := time.Now(), e.firstPause
	for {
		rejected, err := e.post(body)
		if err == nil {
			e.sent.Add(int64(len(batch)) - min(rejected, int64(len(batch))))
			e.dropped[Refused].Add(min(rejected, int64(len(batch))))
			return true
		}
		var f *failure
		if errors.As(err, &f) && !f.again {
			e.drop(Refused, len(batch), err)
			return false
		}
		wait := pause
		if f != nil {
			wait = max(wait, f.after)
		}
		pause = min(2*pause, longestPause)
		if e.isClosing() {
			e.drop(Stopped, len(batch), err)
			return false
		}
		if time.Since(began)+wait > e.patience {
			e.drop(Failed, len(batch), err)
			return false
		}
		e.pause(wait)
	}
}

// pause waits, until the exporter is closed at most.
func (e *Exporter) pause(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-e.closing:
	}
}

// drop counts what is not sent, and says why: once in a while.
func (e *Exporter) drop(reason string, spans int, err error) {
	e.dropped[reason].Add(int64(spans))
	if now := time.Now(); now.After(e.quiet) {
		e.quiet = now.Add(quietFor)
		e.Log.Warn("spans were dropped", "receiver", e.Endpoint.Host, "spans", spans, "reason", reason, "error", err)
	}
}

// failure is an answer that takes no spans.
type failure struct {
	status int
	again  bool
	after  time.Duration
}

func (f *failure) Error() string { return fmt.Sprintf("the receiver answered %d", f.status) }

// post makes one request. rejected are the spans of it that the receiver does not want.
func (e *Exporter) post(body []byte) (rejected int64, err error) {
	ctx, cancel := context.WithTimeout(e.work, e.timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.to, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	if e.Headers != nil {
		own, err := e.Headers()
		if err != nil {
			return 0, err
		}
		r.Header = own
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Content-Encoding", "gzip")
	r.Header.Set("User-Agent", e.Scope+"/"+e.Version)
	resp, err := e.client.Do(r)
	if err != nil {
		if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
			err = wrapped.Err // without the address
		}
		return 0, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, answerBytes))
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return 0, &failure{status: resp.StatusCode, again: true, after: retryAfter(resp.Header.Get("Retry-After"))}
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return 0, &failure{status: resp.StatusCode}
	}
	if err != nil { // it has them, or nobody knows
		return 0, nil
	}
	return rejectedIn(answer), nil
}

// rejectedIn reads how many spans a receiver rejects; what it cannot read rejects none.
func rejectedIn(answer []byte) int64 {
	var said struct {
		Partial struct {
			Rejected any `json:"rejectedSpans"` // a text, as JSON writes such numbers, or a number
		} `json:"partialSuccess"`
	}
	if jsonv2.Unmarshal(answer, &said) != nil || said.Partial.Rejected == nil {
		return 0
	}
	n, err := strconv.ParseInt(fmt.Sprint(said.Partial.Rejected), 10, 64)
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// retryAfter reads the header of the name: seconds, or a date.
func retryAfter(value string) time.Duration {
	after := time.Duration(0)
	if seconds, err := strconv.Atoi(value); err == nil {
		after = time.Duration(min(seconds, int(MaxRetryAfter/time.Second))) * time.Second
	} else if at, err := http.ParseTime(value); err == nil {
		after = time.Until(at)
	}
	return min(max(after, 0), MaxRetryAfter)
}

func compressed(body []byte) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed) // a level that there is
	_, _ = w.Write(body)                            // into memory
	_ = w.Close()
	return b.Bytes()
}
