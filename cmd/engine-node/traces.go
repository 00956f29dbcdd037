package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/aqueduct-engine/aqueduct/config"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/store/backend"
	"github.com/aqueduct-engine/aqueduct/tracing"
	"github.com/aqueduct-engine/aqueduct/tracing/otlp"
)

// flushTimeout is how long spans that wait are sent when a node stops.
const flushTimeout = 5 * time.Second

// trace has spans of the node made and sent, where somebody gets them.
func (n *node) trace(ctx context.Context, c config.Config, parts backend.Parts, metrics prometheus.Registerer, log *slog.Logger, to *runtime.Config) error {
	if c.Tracing.Endpoint == "" {
		return nil
	}
	endpoint, err := url.Parse(c.Tracing.Endpoint)
	if err != nil {
		return problem.New(problem.Invalid, "config.url", "tracing.endpoint is not an http or https URL")
	}
	headers := headersFile(c.Tracing.HeadersFile)
	if _, err := headers(); err != nil {
		return err
	}
	key, err := parts.Identity.Key(ctx)
	if err != nil {
		return fmt.Errorf("key: %w", err)
	}
	n.spans = otlp.Start(otlp.Config{
		Endpoint: endpoint, Headers: headers, Scope: "aqueduct", Version: version(), Log: log,
		Resource: []tracing.Attribute{
			{Key: "service.name", Text: c.Tracing.Service, IsText: true},
			{Key: "service.version", Text: version(), IsText: true},
			{Key: "service.instance.id", Text: n.name, IsText: true},
		},
	})
	system := "aqueduct"
	if c.Store.Oracle() {
		system = "oracle_aq"
	}
	tracer := tracing.New(tracing.Config{Key: key, Ratio: c.Tracing.Ratio, System: system, Sink: n.spans.Record, Now: parts.Clock.Now})
	to.Traces, to.Performer = tracer, tracer.Performer(n.performer)
	n.flush = min(flushTimeout, c.DrainTimeout)
	metrics.MustRegister(
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "aqueduct_spans_sent_total", Help: "Spans that the receiver of tracing.endpoint has taken."},
			func() float64 { return float64(n.spans.Sent()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "aqueduct_spans_waiting", Help: "Spans that wait to be sent."},
			func() float64 { return float64(n.spans.Waiting()) }),
	)
	for _, reason := range []string{otlp.Full, otlp.Refused, otlp.Failed, otlp.Stopped} {
		metrics.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "aqueduct_spans_dropped_total", Help: "Spans that the receiver has not taken, by why.", ConstLabels: prometheus.Labels{"reason": reason},
		}, func() float64 { return float64(n.spans.Dropped(reason)) }))
	}
	return nil
}

// untraced sends the spans that wait, when the node has stopped.
func (n *node) untraced() {
	if n.spans == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), n.flush)
	defer cancel()
	n.spans.Close(ctx)
}

// headersFile reads the headers that a file has, a line NAME: VALUE for each, every time
// it is asked: they have credentials, which change.
func headersFile(file string) func() (http.Header, error) {
	return func() (http.Header, error) {
		headers := http.Header{}
		if file == "" {
			return headers, nil
		}
		raw, err := os.ReadFile(file)
		if err != nil {
			return nil, problem.Wrap(err, problem.Invalid, "config.unreadable", "tracing.headers-file cannot be read").
				WithHint("name a file that this user may read")
		}
		for i, line := range strings.Split(string(raw), "\n") {
			if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
				continue
			}
			name, value, ok := strings.Cut(line, ":")
			if value = strings.TrimSpace(value); !ok || !isHeaderName(name) || strings.ContainsFunc(value, unicode.IsControl) {
				return nil, problem.New(problem.Invalid, "config.type", "%s, line %d: is not NAME: VALUE", file, i+1) // it may be a secret
			}
			headers.Set(name, value)
		}
		return headers, nil
	}
}

func isHeaderName(s string) bool {
	return s != "" && strings.Trim(s, "-_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == ""
}
