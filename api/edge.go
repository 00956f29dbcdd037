package api

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aqueduct-engine/aqueduct/memory"
	"github.com/aqueduct-engine/aqueduct/principal"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
)

// Limits of a connection.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 30 * time.Second
	writeTimeout      = memory.Wait + MaxWait + 15*time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 32 << 10
	lateAfter         = time.Second // who waited longer is looked at again before they are told
)

// NewServer makes a server with the limits of this package; its caller
// listens: on the loopback interface, where nobody is asked who they are.
func NewServer(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeaderBytes, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
}

// edge stands around the routes: it refuses what must not reach them, gives a
// problem to what no route takes, and counts.
type edge struct {
	service  *service
	memory   *memory.Budget
	mux      *http.ServeMux
	log      *slog.Logger
	now      func() time.Time
	origin   *http.CrossOriginProtection
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	running  prometheus.Gauge
}

func (s *service) edge(mux *http.ServeMux) (http.Handler, error) {
	e := &edge{
		service: s, mux: mux, log: s.Log, now: s.Now, memory: s.Memory, origin: http.NewCrossOriginProtection(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "aqueduct_http_requests_total", Help: "Requests answered, by route and class of status.",
		}, []string{"route", "class"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "aqueduct_http_request_seconds", Help: "Duration of a request.", Buckets: prometheus.ExponentialBuckets(0.0005, 4, 9),
		}, []string{"route"}),
		running: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "aqueduct_http_requests_running", Help: "Requests being answered now.",
		}),
	}
	if s.Registerer == nil {
		return e, nil
	}
	for _, c := range []prometheus.Collector{e.requests, e.seconds, e.running} {
		if err := s.Registerer.Register(c); err != nil {
			return nil, fmt.Errorf("api: metrics: %w", err)
		}
	}
	return e, nil
}

// ServeHTTP implements http.Handler.
func (e *edge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	begun := e.now()
	out := &recorder{ResponseWriter: w}
	h, route := e.mux.Handler(r)
	e.running.Inc()
	defer func() {
		v := recover()
		e.running.Dec()
		if v == http.ErrAbortHandler {
			panic(v)
		}
		if v != nil {
			e.log.Error("panic in a request", "route", route, "panic", v, "stack", string(debug.Stack()))
			if out.status == 0 {
				refuseWith(out, newFailure(http.StatusInternalServerError, "internal", "the engine could not do it; its log says why", ""))
			}
		}
		if route == "" {
			route = "none" // the path is the client's: not a label
		}
		e.requests.WithLabelValues(route, "5xx") // zero, before one fails
		e.requests.WithLabelValues(route, out.class()).Inc()
		e.seconds.WithLabelValues(route).Observe(e.now().Sub(begun).Seconds())
	}()
	out.Header().Set(requestHeader, uuid.NewString())
	out.Header().Set("X-Content-Type-Options", "nosniff")
	out.Header().Set("Cache-Control", "no-store")
	switch {
	case e.service.Access == nil && !e.service.AnyHost && !isLoopback(r.Host):
		refuseWith(out, newFailure(http.StatusForbidden, "request.host", "the request is for another host than this one",
			"ask 127.0.0.1 or localhost; a proxy in front must say so in Host"))
	case e.origin.Check(r) != nil:
		refuseWith(out, newFailure(http.StatusForbidden, "request.cross-origin", "a browser sent the request on behalf of another site", ""))
	case !isText(r.URL):
		refuseWith(out, newFailure(http.StatusBadRequest, "request.invalid", "the address is not text in UTF-8", "escape the bytes of its UTF-8"))
	case route == "":
		e.lost(out, r, h)
	default:
		e.admitted(out, r, route)
	}
}

// admitted serves a request of whoever may make it.
func (e *edge) admitted(out *recorder, r *http.Request, route string) {
	who, err := e.service.admit(out, r, e.service.operations[route])
	if err != nil {
		f := e.service.refused(r.Context(), e.service.operations[route], err)
		refuseWith(out, f)
		if f.Status == http.StatusForbidden {
			asked := ""
			if e.service.operations[route] == operateInstance {
				asked = requested(r)
			}
			e.service.noteRefusal(r, who, route, asked, f.Code)
		}
		return
	}
	size := r.ContentLength
	most := int64(MaxDefinitionBytes)
	if e.service.operations[route] == publishAll {
		most = MaxPublicationBytes
	}
	if size < 0 || size > most {
		size = most // what is larger is refused at that
	}
	part, err := e.memory.Requests.Take(r.Context(), size*bodyFactor)
	if err != nil {
		refuseWith(out, newFailure(http.StatusServiceUnavailable, memory.CodeBusy, "the node has no memory for the request now", "try again"))
		return
	}
	defer part.Release()
	ctx, read := e.memory.Reads.Hold(principal.With(r.Context(), who))
	defer read.Release()
	out.read = read
	if r.Method == http.MethodGet || r.URL.Query().Has("wait") { // what was done is done, and who may not read what became of it is not told
		begun, asked := e.now(), r.Clone(r.Context())
		out.late = func() *failure { return e.late(begun, asked, route) }
	}
	r = r.WithContext(context.WithValue(ctx, recorderKey{}, out))
	if actor := who.Actor(); actor != who.Claimed {
		r.Header = r.Header.Clone()
		r.Header.Set(actorHeader, actor)
	}
	e.mux.ServeHTTP(out, r)
	e.service.noteRefusal(r, who, route, out.asked, out.refusal)
}

// late refuses to tell what was waited for to who may not read it any more.
func (e *edge) late(begun time.Time, r *http.Request, route string) *failure {
	if e.now().Sub(begun) < lateAfter {
		return nil
	}
	operation := e.service.operations[route]
	if _, err := e.service.admit(&silent{header: http.Header{}}, r, operation); err != nil {
		return e.service.refused(r.Context(), operation, err)
	}
	return nil
}

// reads takes the memory for what an operation reads, until its answer is
// written.
func (s *service) reads(ctx context.Context) error {
	_, err := s.Memory.Reads.Take(ctx, readBytes)
	return err
}

// isLoopback reports whether a Host header names this machine from inside. A
// name that an attacker's DNS points here is not among them.
func isLoopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback()
}

// isText reports whether an address is text in UTF-8 with its escapes undone: what is not
// would be looked for, and never found.
func isText(u *url.URL) bool {
	query, err := url.QueryUnescape(u.RawQuery)
	return err == nil && utf8.ValidString(query) && utf8.ValidString(u.Path)
}

// lost answers what no route takes: h is the multiplexer's own answer, 404 or
// 405.
func (e *edge) lost(w http.ResponseWriter, r *http.Request, h http.Handler) {
	probe := &silent{header: http.Header{}}
	h.ServeHTTP(probe, r)
	if probe.status == http.StatusMethodNotAllowed {
		allow := probe.header.Get("Allow")
		w.Header().Set("Allow", allow)
		refuseWith(w, newFailure(probe.status, "request.method", "the method is not one of this path", "one of "+allow))
		return
	}
	refuseWith(w, newFailure(http.StatusNotFound, "route.unknown", "nothing is at this path", "GET /openapi.json describes the API"))
}

// refuseWith writes a problem where huma does not.
func refuseWith(w http.ResponseWriter, f *failure) {
	if f.Code == memory.CodeBusy {
		w.Header().Set("Retry-After", busyAfter)
	}
	if f.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="aqueduct"`)
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(f.Status)
	_ = json.NewEncoder(w).Encode(f.Problem) // the client may be gone
}

// recorder remembers the status of an answer.
type recorder struct {
	http.ResponseWriter
	status  int
	read    *memory.Part    // for the answer; nil = none
	asked   string          // of an instance
	refusal string          // the code with which it is refused what the request asks for
	late    func() *failure // says whether it may still be told; nil = it may
	mute    bool            // it may not
}

func (r *recorder) WriteHeader(status int) {
	if late := r.late; late != nil {
		r.late = nil
		if f := late(); f != nil {
			r.mute, r.status = true, f.Status
			refuseWith(r.ResponseWriter, f)
		}
	}
	if r.mute {
		return
	}
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.WriteHeader(http.StatusOK)
	}
	if r.mute {
		return len(b), nil
	}
	if r.read != nil { // all that was read is in b now, which a slow client may take long to read
		r.read.Keep(int64(writtenFactor * len(b)))
		r.read = nil
	}
	return r.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// class is one of 1xx to 5xx.
func (r *recorder) class() string {
	if r.status == 0 {
		return "2xx"
	}
	return fmt.Sprintf("%dxx", r.status/100)
}

// silent keeps an answer's status and headers, and nothing else.
type silent struct {
	header http.Header
	status int
}

func (s *silent) Header() http.Header         { return s.header }
func (s *silent) WriteHeader(status int)      { s.status = status }
func (s *silent) Write(b []byte) (int, error) { return len(b), nil }
