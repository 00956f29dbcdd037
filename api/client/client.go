// Package client speaks to the HTTP API of a node.
//
// Every method is one request; none is repeated by the package. What the API
// refuses comes back as a [*problem.Error] with the API's code; a node that
// does not answer is the problem api.unreachable. The types of this package
// are the documents of the API.
package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
	jsonv2 "github.com/go-json-experiment/json"
)

// maxAnswerBytes bounds what is read of one answer.
const maxAnswerBytes = 64 << 20

// Client speaks to one node. It may be used from many goroutines. Its field Actor
// says who asks, for the stream.
type Client struct {
	*caller
	definitionCalls
	instanceCalls
	taskCalls
	operatorCalls
	commandCalls
}

// What a client asks, by what it is about.
type (
	definitionCalls struct{ *caller } // definitions, their schedules and migrations
	instanceCalls   struct{ *caller } // instances, lifecycles, what is said to them and of their commands
	taskCalls       struct{ *caller } // human tasks
	operatorCalls   struct{ *caller } // dead letters, queues, targets
	commandCalls    struct{ *caller } // commands that are not done yet
)

// caller makes requests to one node.
type caller struct {
	base   string
	http   *http.Client
	Actor  string // who asks, for the stream; "" = nobody says
	Token  string // sent with every request; "" = none
	Reason string // why it is done, for the audit

	// Bearer gives the token of a request, in the place of Token, for one that expires: "" =
	// none. It is called by each, and from many goroutines; nil = Token does.
	Bearer func(context.Context) (string, error)
}

// New makes a client of the node at an http(s) URL; hc nil means
// http.DefaultClient.
func New(base string, hc *http.Client) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, problem.New(problem.Invalid, "api.address", "%q is not the address of a node", base).
			WithHint("write http://127.0.0.1:8080")
	}
	if hc == nil {
		hc = http.DefaultClient
	}
	c := &caller{base: strings.TrimSuffix(base, "/"), http: hc}
	return &Client{c, definitionCalls{c}, instanceCalls{c}, taskCalls{c}, operatorCalls{c}, commandCalls{c}}, nil
}

// request is one call: what it sends, and where its answer goes.
type request struct {
	method  string
	path    string
	query   url.Values
	headers map[string]string
	body    []byte
	into    any // nil = the answer is not read
}

// send makes a request and returns the answer's status.
func (c *caller) send(ctx context.Context, r request) (int, error) {
	target := c.base + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, bytes.NewReader(r.body))
	if err != nil {
		return 0, fmt.Errorf("client: %s %s: %w", r.method, r.path, err)
	}
	req.Header.Set("Accept", "application/json")
	for name, value := range map[string]string{"X-Aqueduct-Actor": c.Actor, "X-Aqueduct-Reason": c.Reason} {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	if err := c.identify(req); err != nil {
		return 0, err
	}
	for name, value := range r.headers {
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	res, err := c.http.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		var cause *url.Error
		if errors.As(err, &cause) {
			err = cause.Err
		}
		var stranger *tls.CertificateVerificationError
		if errors.As(err, &stranger) {
			return 0, problem.Wrap(stranger.Err, problem.Denied, "api.certificate", "the certificate of %s is not believed", c.base).
				WithHint("name who signs it, or reach the node by a name that is in it: engine-node takes --ca-file")
		}
		return 0, problem.Wrap(err, problem.Unavailable, "api.unreachable", "no node answers at %s", c.base).
			WithHint("start one with `engine-node serve`, or name another with --server")
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswerBytes))
	if err != nil {
		return res.StatusCode, problem.Wrap(err, problem.Unavailable, "api.unreachable", "the answer of %s broke off", c.base)
	}
	if res.StatusCode >= http.StatusBadRequest {
		return res.StatusCode, refusal(res.StatusCode, body)
	}
	switch into := r.into.(type) {
	case nil:
	case *[]byte:
		*into = body
	default:
		if err := jsonv2.Unmarshal(body, into); err != nil {
			return res.StatusCode, problem.Wrap(err, problem.Internal, "api.answer", "the answer to %s %s is not understood", r.method, r.path)
		}
	}
	return res.StatusCode, nil
}

// identify has a request say who asks.
func (c *caller) identify(req *http.Request) (err error) {
	token := c.Token
	if c.Bearer != nil {
		if token, err = c.Bearer(req.Context()); err != nil {
			return err
		}
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return nil
}

// refusal turns a problem document back into the problem it was made of.
func refusal(status int, body []byte) error {
	var doc Problem
	if jsonv2.Unmarshal(body, &doc) != nil || doc.Code == "" {
		return problem.New(kind(status), "api.answer", "the server answered %d %s, which is not a node's answer", status, http.StatusText(status))
	}
	p := problem.New(kind(status), doc.Code, "%s", doc.Detail)
	p.Hint = doc.Hint
	for _, w := range doc.Where {
		p.Where = append(p.Where, problem.Place(w))
	}
	return p
}

// kind is the inverse of the server's choice of a status.
func kind(status int) problem.Kind {
	switch status {
	case http.StatusNotFound:
		return problem.NotFound
	case http.StatusConflict:
		return problem.Conflict
	case http.StatusUnauthorized, http.StatusForbidden:
		return problem.Denied
	case http.StatusRequestEntityTooLarge:
		return problem.TooLarge
	case http.StatusServiceUnavailable, http.StatusBadGateway, http.StatusGatewayTimeout, http.StatusRequestTimeout:
		return problem.Unavailable
	}
	if status >= http.StatusInternalServerError {
		return problem.Internal
	}
	return problem.Invalid
}

// get, post and remove are the three forms of a call.
func get[T any](ctx context.Context, c *caller, path string, query url.Values) (T, error) {
	var out T
	err := c.get(ctx, path, query, &out)
	return out, err
}

//go:noinline
func (c *caller) get(ctx context.Context, path string, query url.Values, into any) error {
	_, err := c.send(ctx, request{method: http.MethodGet, path: path, query: query, into: into})
	return err
}

func post[T any](ctx context.Context, c *caller, path string, body any) (T, int, error) {
	var out T
	status, err := c.post(ctx, path, body, &out)
	return out, status, err
}

func (c *caller) post(ctx context.Context, path string, body, into any) (int, error) {
	r, err := jsonRequest(path, body, into)
	if err != nil {
		return 0, err
	}
	return c.send(ctx, r)
}

func jsonRequest(path string, body, into any) (request, error) {
	r := request{method: http.MethodPost, path: path, into: into}
	if body == nil {
		return r, nil
	}
	var err error
	if r.body, err = json.Marshal(body); err != nil {
		return r, problem.Wrap(err, problem.Invalid, "request.invalid", "the request is not JSON")
	}
	r.headers = map[string]string{"Content-Type": "application/json"}
	return r, nil
}

// values makes a query of the parameters that are not empty.
//
//go:noinline
func values(pairs ...string) url.Values {
	q := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	return q
}

// List bounds a list: Limit 0 means the server's default, After is the Next of
// the page before.
type List struct {
	After string
	Limit int
}

//go:noinline
func (l List) in(q url.Values) url.Values {
	if l.After != "" {
		q.Set("after", l.After)
	}
	if l.Limit > 0 {
		q.Set("limit", strconv.Itoa(l.Limit))
	}
	return q
}

// wait is the query of a bounded wait.
func wait(d time.Duration) url.Values {
	if d <= 0 {
		return nil
	}
	return values("wait", d.String())
}
