package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/aqueduct-engine/aqueduct/access"
	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/api"
	"github.com/aqueduct-engine/aqueduct/audit"
	"github.com/aqueduct-engine/aqueduct/config"
	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/definition/openworkflow"
	"github.com/aqueduct-engine/aqueduct/memory"
	"github.com/aqueduct-engine/aqueduct/principal"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/runtime/service"
	"github.com/aqueduct-engine/aqueduct/sql/embedded"
	"github.com/aqueduct-engine/aqueduct/sql/oracle"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite"
	"github.com/aqueduct-engine/aqueduct/sql/sqlite/files"
	"github.com/aqueduct-engine/aqueduct/sql/steps"
	"github.com/aqueduct-engine/aqueduct/store/backend"
	"github.com/aqueduct-engine/aqueduct/tracing/otlp"
)

// database is what a node needs of its store.
type database interface {
	backend.Store
	definition.Repository
}

// node is everything of one node, wired.
type node struct {
	name      string
	store     database
	catalogue *definition.Catalogue
	performer *activity.Performer
	runtime   *runtime.Runtime
	handler   http.Handler
	log       *slog.Logger
	look      definition.StepCheck
	set       *steps.Set
	past      *past
	shown     *certificates  // by which the API is known; nil = it speaks HTTP
	beside    bool           // the nodes that run what is published are others
	spans     *otlp.Exporter // nil = nobody gets any
	flush     time.Duration  // how long those that wait are sent when the node stops
}

// compiling takes the memory for definitions that are compiled.
func compiling(pool *memory.Pool) definition.Taker {
	return func(ctx context.Context, bytes int64) (func(), error) {
		part, err := pool.Take(ctx, bytes)
		return part.Release, err
	}
}

// wire builds a node by hand. It does not work until its runtime runs, but its
// services do.
func wire(ctx context.Context, c config.Config, name string, log *slog.Logger) (*node, error) {
	return wireOn(ctx, c, name, log, nil)
}

// wireOn is wire for one that compares its settings with those of the nodes on the
// database first; nil = it does not.
func wireOn(ctx context.Context, c config.Config, name string, log *slog.Logger, compare func(*config.Config, backend.Parts) error) (*node, error) {
	metrics := prometheus.NewRegistry()
	budget := memoryBudget(c.MemoryLimit, metrics)
	set, err := stepsOf(c.Steps)
	if err != nil {
		return nil, err
	}
	db, err := openWith(ctx, c, set, name, budget.Pages, log)
	if err != nil {
		return nil, err
	}
	ofProcess(metrics, db)
	n, parts := &node{name: name, store: db, log: log, set: set, look: lookAt(db, set), past: &past{config: c}}, db.Parts()
	if compare != nil {
		if err := compare(&c, parts); err != nil {
			n.store.Close()
			return nil, err
		}
	}
	n.catalogue = definition.New(db, openworkflow.Parsers(), parts.Clock.Now)
	sink, err := sinkURL(c.Events.Sink)
	if err != nil {
		n.store.Close()
		return nil, err
	}
	n.catalogue.Bound(budget.Definitions, compiling(budget.Compiles))
	n.performer = activity.New(activities(c, sink, budget, metrics, log))
	n.catalogue.ResolveWith(n.performer)
	n.catalogue.CheckSteps(n.checkStep)
	rc := working(c)
	rc.Store, rc.Definitions, rc.Performer, rc.Log, rc.Metrics = parts, n.catalogue, n.performer, log, metrics
	rc.Memory, rc.CacheBytes, rc.WaitingBytes = budget, int(budget.Snapshots), min(c.Activity.WaitingBytes, int(budget.Waiting))
	if err = n.trace(ctx, c, parts, metrics, log, &rc); err != nil {
		n.close()
		return nil, err
	}
	if n.runtime, err = runtime.New(ctx, rc); err != nil {
		n.close()
		return nil, err
	}
	if n.handler, err = n.api(ctx, c, parts, budget, metrics, log); err != nil {
		n.close()
		return nil, err
	}
	return n, nil
}

// api is what the node answers.
func (n *node) api(ctx context.Context, c config.Config, parts backend.Parts, budget *memory.Budget, metrics *prometheus.Registry, log *slog.Logger) (http.Handler, error) {
	if c.TLS.On() {
		var err error
		if n.shown, err = newCertificates(c.TLS, c.Access.CA, time.Now, log); err != nil {
			return nil, err
		}
		n.shown.measure(metrics)
	}
	tokens := access.NewTokens(parts.Tokens, parts.Clock.Now, log)
	gate, logins, err := gate(c.Access, parts.Tokens, tokens, n.shown, parts.Clock.Now, log)
	if err != nil {
		return nil, err
	}
	secret, err := parts.Identity.Key(ctx)
	if err != nil {
		return nil, err
	}
	answers, err := api.New(api.Config{
		Access: gate, Secret: secret, Login: login(c.Access), AnyHost: c.Access.Anybody, Tokens: tokens, Auditor: &audit.Log{Writer: parts.Writer, Now: parts.Clock.Now},
		Activities: &service.Activities{Activities: parts.Activities, Clock: parts.Clock}, Past: n.past,
		Bulk:    &service.Bulk{Bulk: parts.Bulk, Plans: parts.Plans, Audit: parts.Audit, Operator: n.runtime.Operator, Migrator: n.runtime.Migrator, DeadLetters: n.runtime.DeadLetters, Now: parts.Clock.Now},
		Starter: n.runtime, Signaller: n.runtime, Tasks: n.runtime, Commenter: n.runtime, Operator: n.runtime, Acknowledger: n.runtime, DeadLetters: n.runtime, Dispatcher: n.runtime, Publisher: n.catalogue, Migrator: n.runtime,
		Memory: budget, Definitions: n.store, Reader: rows(parts), Ready: (&readiness{store: parts.Prober}).ready, Now: parts.Clock.Now, Version: version(), Log: log, Registerer: metrics,
		Metrics: promhttp.HandlerFor(metrics, promhttp.HandlerOpts{EnableOpenMetrics: true}),
	})
	if err != nil {
		return nil, err
	}
	return withConsole(answers, logins, config.List(c.Access.Origins))
}

// activities is how functions and HTTP calls are performed.
func activities(c config.Config, sink *url.URL, budget *memory.Budget, metrics prometheus.Registerer, log *slog.Logger) activity.Config {
	return activity.Config{
		Memory: budget.Answers, Sink: sink, SinkMode: c.Events.SinkMode, SinkAuthorization: secretOf(c.Events.SinkSecret),
		Timeout: c.Activity.Timeout, MaxResponseBytes: int64(c.Activity.ResponseBytes), MaxResultBytes: c.Activity.ResultBytes,
		IdlePerHost: c.Activity.PerHost,
		Policy:      activity.Policy{MaxAttempts: c.Activity.Attempts, Initial: c.Activity.Delay, Max: c.Activity.DelayMax},
		Secrets:     activity.SecretStore{Prefix: c.Secrets.Prefix, Lookup: os.LookupEnv, Dir: c.Secrets.Dir},
		SecretHosts: secretHosts(c.Secrets),
		Egress:      activity.Egress{Allow: config.List(c.Egress.Allow), Deny: config.List(c.Egress.Deny), Own: own(c.Listen), Name: "egress."},
		FetchEgress: activity.Egress{Allow: config.List(c.Egress.FetchAllow), Deny: config.List(c.Egress.FetchDeny), Own: own(c.Listen), Name: "egress.fetch-"},
		Metrics:     metrics, Log: log,
	}
}

// ofProcess registers what is measured of the process, and of its store.
func ofProcess(metrics *prometheus.Registry, db database) {
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if p, ok := db.(interface{ Pauses() []oracle.Pause }); ok {
		metrics.MustRegister(pauses(p.Pauses))
	}
}

// rows are those that the API shows.
func rows(p backend.Parts) api.Reader {
	return api.Reader{Instances: p.Instances, Streams: p.Streams, Tasks: p.Tasks, DeadLetters: p.DeadLetters, Backlog: p.Backlog, Members: p.Members, Audit: p.Audit, Activities: p.Activities, Moments: p.Moments, Plans: p.Plans}
}

// openStore opens the database that an address names; an embedded one keeps so
// many bytes of pages, 0 = its default.
func openStore(ctx context.Context, c config.Store, q config.Queue, name string, pages int64, log *slog.Logger) (database, error) {
	return openWith(ctx, config.Config{Store: c, Queue: q}, &steps.Set{}, name, pages, log)
}

// openWith is openStore for a node whose turns may have steps of the application.
func openWith(ctx context.Context, all config.Config, set *steps.Set, name string, pages int64, log *slog.Logger) (database, error) {
	c, q := all.Store, all.Queue
	if dsn, ok := c.DataSource(); ok {
		s, err := oracle.Open(ctx, oracle.Options{
			DSN: dsn, Password: c.Rotating(), Schema: c.SchemaOwner(), Node: name, Version: version(), Wait: q.Wait, Log: log, Apart: !c.OneBlock,
			Consumers: max(q.SignalConsumers, q.ScheduleConsumers, q.CommandConsumers),
			Notices:   cmp.Or(q.Notices, -1),
			Steps:     set, Traced: all.Tracing.OracleAction,
		})
		if err == nil {
			if err = prepareSteps(ctx, s, set, all.Steps.Tables); err != nil {
				s.Close()
			}
		}
		if err != nil {
			return nil, err
		}
		return s, nil
	}
	path, ok := c.SQLite()
	if !ok {
		return nil, problem.New(problem.Invalid, "store.unsupported", "%s names no store", scheme(c.URL)).
			WithHint("write sqlite://PATH or oracle://USER@HOST:PORT/SERVICE")
	}
	durability := sqlite.Full
	if c.Durability == config.Normal {
		durability = sqlite.ProcessCrash
	}
	s, err := embedded.Open(ctx, sqlite.Options{
		Path: path, Node: name, Durability: durability, Group: c.Group, Cache: int(pages), Log: log, Perform: embedded.Steps(set),
	})
	if err == nil {
		if err = s.Runs(ctx, version()); err == nil {
			err = prepareSteps(ctx, s, set, all.Steps.Tables)
		}
		if err != nil {
			s.Close()
		}
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// sinkURL is where events are published; nil = nowhere.
func sinkURL(text string) (*url.URL, error) {
	if text == "" {
		return nil, nil
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, problem.New(problem.Invalid, "config.url", "events.sink is not an http or https URL") // the parser's error quotes it whole
	}
	return u, nil
}

// own is where a node listens.
func own(listen string) []netip.AddrPort {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return nil // config has checked it
	}
	if host != "localhost" {
		at, err := netip.ParseAddrPort(listen)
		if err != nil {
			return nil
		}
		return []netip.AddrPort{at}
	}
	n, _ := strconv.ParseUint(port, 10, 16)
	return []netip.AddrPort{netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(n)), netip.AddrPortFrom(netip.IPv6Loopback(), uint16(n))}
}

// memoryBudget shares the memory of the node out, and shows how it is used.
func memoryBudget(limit int, metrics *prometheus.Registry) *memory.Budget {
	total := int64(limit)
	if total == 0 {
		total = memory.Available()
	}
	memory.Set(total)
	b := memory.New(total)
	b.Each(func(name string, p *memory.Pool) {
		label := prometheus.Labels{"pool": name}
		metrics.MustRegister(
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "aqueduct_memory_used_bytes", Help: "Bytes of a pool of the memory budget that are taken.", ConstLabels: label},
				func() float64 { return float64(p.Used()) }),
			prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "aqueduct_memory_limit_bytes", Help: "Bytes that a pool of the memory budget has.", ConstLabels: label},
				func() float64 { return float64(p.Size()) }),
			prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "aqueduct_memory_waits_total", Help: "Times that something waited for a pool of the memory budget.", ConstLabels: label},
				func() float64 { return float64(p.Waits()) }),
		)
	})
	return b
}

// secretHosts says where secrets may be sent.
func secretHosts(c config.Secrets) map[string][]activity.HostPattern {
	bound, _ := c.Bound() // config has checked it
	hosts := map[string][]activity.HostPattern{}
	for name, list := range bound {
		for _, h := range list {
			hosts[name] = append(hosts[name], activity.HostPattern(h))
		}
	}
	return hosts
}

func scheme(address string) string {
	s, _, _ := strings.Cut(address, "://")
	return s
}

// readyEvery is how often readiness makes a commit, however often it is asked.
const readyEvery = time.Second

// readiness says whether the store takes commits: by a commit, which a node that
// nobody asks does not make. Many who ask at once share it.
type readiness struct {
	mu    sync.Mutex
	store backend.Prober
	asked time.Time
	last  error
}

func (r *readiness) ready(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); now.Sub(r.asked) >= readyEvery {
		// Who asks may leave; the others want the answer.
		r.last = r.store.Probe(context.WithoutCancel(ctx))
		r.asked = time.Now()
	}
	return r.last
}

func (n *node) close() {
	n.untraced()
	n.performer.Close()
	n.past.close()
	if err := n.store.Close(); err != nil {
		n.log.Error("the store was not closed in order", "error", err)
	}
}

// nodeName is a name that no other node of the store has.
func nodeName(wanted string) string {
	if wanted != "" {
		return wanted
	}
	host, err := os.Hostname()
	if err != nil {
		host = "node"
	}
	return host + "-" + uuid.NewString()[:8]
}

// makeFolder makes the folder of an embedded store.
func makeFolder(c config.Store) error {
	path, ok := c.SQLite()
	if !ok {
		return nil
	}
	return files.MakeFolder(filepath.Dir(path), c.Group)
}

// peer opens the database that --store names, beside the nodes that run on it.
func (a *app) peer(ctx context.Context) (*node, error) {
	url, err := storeURL(a.store)
	if err != nil {
		return nil, err
	}
	l, err := config.Load(config.Source{Env: append(a.settings(), "AQUEDUCT_STORE_URL="+url)})
	if err != nil {
		return nil, err
	}
	c := l.Config
	c.TLS, c.Access.CA = config.TLS{}, "" // nobody connects to it
	if path, ok := c.Store.SQLite(); ok {
		if _, err := os.Stat(path); err != nil {
			return nil, missing(err, path).WithHint("make it: %s migrate --store %s", a.self, c.Store.URL)
		}
	}
	log := slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: slog.LevelError}))
	n, err := wireOn(ctx, c, "cli-"+uuid.NewString(), log, func(c *config.Config, parts backend.Parts) error { return asTheNodes(ctx, c, parts) })
	if n != nil {
		n.beside = true
	}
	return n, err
}

// missing is the answer where no file is.
func missing(err error, path string) *problem.Error {
	return problem.Wrap(errors.Unwrap(err), problem.NotFound, "store.missing", "there is no database at %s", path)
}

// storeURL checks what --store says; a bare path is meant as an SQLite file.
func storeURL(text string) (string, error) {
	if !strings.Contains(text, "://") {
		return "sqlite://" + text, nil
	}
	if s := scheme(text); s != "sqlite" && s != "oracle" {
		return "", usage("--store: %q is the address of no store", s+"://").WithHint("write sqlite://PATH or oracle://USER@HOST:PORT/SERVICE")
	}
	return text, nil
}

// settings is the environment without what is not a setting of a node.
func (a *app) settings() []string {
	return slices.DeleteFunc(slices.Clone(a.env), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return slices.Contains([]string{serverVariable, tokenVariable, tokenFileVariable, caVariable, certVariable, keyVariable}, name)
	})
}

// inProcess is a client of a handler in this process: of who may open the database,
// by the account on this host.
func inProcess(h http.Handler) *http.Client {
	return &http.Client{Transport: direct{h, principal.Principal{Name: account(), Kind: principal.User, Via: principal.CLI, Speaks: true}}}
}

// account is who runs this program, by the host.
func account() string {
	u, err := user.Current()
	if err != nil {
		return "uid " + strconv.Itoa(os.Getuid())
	}
	return u.Username
}

// direct is a transport without a network.
type direct struct {
	handler http.Handler
	who     principal.Principal
}

// RoundTrip implements http.RoundTripper.
func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r.Body = http.NoBody
	}
	r.Host = r.URL.Host
	w := &answer{header: http.Header{}}
	d.handler.ServeHTTP(w, r.WithContext(principal.With(r.Context(), d.who)))
	return &http.Response{
		Status: fmt.Sprint(w.status), StatusCode: w.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.header, Body: io.NopCloser(&w.body), ContentLength: int64(w.body.Len()), Request: r,
	}, nil
}

// answer is a response that is kept in memory.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

func (a *answer) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(b)
}

// unusual is a limit that every turn records, where it is not the default.
func unusual(limit, usual int) int {
	if limit == usual {
		return 0
	}
	return limit
}
