package activity

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/signal"
	jsonv2 "github.com/go-json-experiment/json"
)

// headerKey carries the idempotency key of a command.
const headerKey = "Idempotency-Key"

// headerAck carries the path of the API at which a command is acknowledged, of
// a command that asks for it.
const headerAck = "Aqueduct-Ack"

// headerReverses carries the idempotency key of the call that this one compensates.
const headerReverses = "Aqueduct-Reverses"

// headerCorrelation carries the correlation id of an instance.
const headerCorrelation = "X-Correlation-Id"

// The forms of an HTTP result.
const (
	outputContent  = "content"  // the body
	outputResponse = "response" // request, status, headers and body
	outputRaw      = "raw"      // the body in base64
)

// call is the input of an HTTP command.
type call struct {
	Method   string                     `json:"method"`
	URI      string                     `json:"uri"`
	Path     string                     `json:"path"` // of the URI with its variables; "" = as it is
	Headers  map[string]json.RawMessage `json:"headers"`
	Query    map[string]json.RawMessage `json:"query"`
	Body     json.RawMessage            `json:"body"`
	Output   string                     `json:"output"`   // "" = content
	Redirect bool                       `json:"redirect"` // follow redirects instead of failing on them
	Auth     json.RawMessage            `json:"authentication"`
	Secrets  []lateRef                  `json:"secrets"` // where secrets are filled in
	Origins  []string                   `json:"origins"` // that the definition writes out: secrets go there
	Named    []string                   `json:"named"`   // secrets of the definition, which no answer may have

	uri     *url.URL
	shown   *call             // the same without its secrets, for results and messages
	keep    *secrecy          // what must not leave the attempt
	sent    map[string]string // headers of the request, as the result shows them
	begun   atomic.Bool       // something may have been sent
	status  int               // of the answer; 0 = none has come
	starved bool              // an answer came, and the node had no memory for it
	moved   bool              // another request was answered, to which the answer of the first had led
}

// parseCall reads and checks the input of an HTTP command.
func parseCall(input json.RawMessage) (*call, error) {
	c := &call{}
	if err := jsonv2.Unmarshal(input, c, jsonv2.RejectUnknownMembers(true)); err != nil {
		if wrong := (*jsonv2.SemanticError)(nil); errors.As(err, &wrong) && errors.Is(err, jsonv2.ErrUnknownName) {
			err = fmt.Errorf("unknown field %q", wrong.JSONPointer.LastToken())
		}
		return nil, fmt.Errorf("input of the call: %w", err)
	}
	c.Method = strings.ToUpper(c.Method)
	if c.Method == "" {
		c.Method = http.MethodGet
	}
	if !isToken(c.Method) {
		return nil, fmt.Errorf("method %q is not an HTTP method", c.Method)
	}
	switch c.Output {
	case "":
		c.Output = outputContent
	case outputContent, outputResponse, outputRaw:
	default:
		return nil, fmt.Errorf("output %q is none of %s, %s, %s", c.Output, outputContent, outputResponse, outputRaw)
	}
	u, err := url.Parse(c.URI)
	if err != nil {
		return nil, fmt.Errorf("uri: not a URI") // the parser's error quotes it whole, secrets included
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("uri: scheme %q is neither http nor https", u.Scheme)
	}
	if u.Hostname() == "" {
		return nil, fmt.Errorf("uri: names no host")
	}
	c.uri = u
	return c, c.addQuery()
}

// addQuery adds the query parameters to the URI; a list repeats its name.
func (c *call) addQuery() error {
	if len(c.Query) == 0 {
		return nil
	}
	q := url.Values{}
	for name, value := range c.Query {
		var list []json.RawMessage
		if json.Unmarshal(value, &list) != nil {
			list = []json.RawMessage{value}
		}
		for _, item := range list {
			text, err := scalar(item)
			if err != nil {
				return fmt.Errorf("query parameter %q: %w", name, err)
			}
			q.Add(name, text)
		}
	}
	if c.uri.RawQuery != "" { // as it is written: what Go cannot read is the receiver's to read
		c.uri.RawQuery += "&"
	}
	c.uri.RawQuery += q.Encode()
	return nil
}

// place names the request in messages, without the parts of the URI that may
// hold secrets.
func (c *call) place() string {
	return fmt.Sprintf("%s %s://%s%s", c.Method, c.uri.Scheme, c.uri.Host, c.uri.EscapedPath())
}

// request builds the HTTP request. What the author sets wins over trace and
// correlation headers; the idempotency key and where it is acknowledged win
// over what the author sets.
func (c *call) request(ctx context.Context, cmd engine.Command, key string) (*http.Request, error) {
	headers := http.Header{}
	carry(headers, "Traceparent", cmd.Headers[signal.HeaderTraceparent])
	carry(headers, "Tracestate", cmd.Headers["tracestate"])
	carry(headers, headerCorrelation, cmd.Headers[signal.HeaderCorrelation])
	for _, name := range slices.Sorted(maps.Keys(c.Headers)) { // of those that differ in case only the last is sent
		text, err := scalar(c.Headers[name])
		if err != nil {
			return nil, fmt.Errorf("header %q: %w", name, err)
		}
		if !isToken(name) || !isHeaderValue(text) {
			return nil, fmt.Errorf("header %q: not a header that HTTP can carry", name)
		}
		headers.Set(name, text)
	}
	carry(headers, headerKey, key)
	carry(headers, headerAck, ackPath(cmd))
	carry(headers, headerReverses, cmd.Reverses)
	body, err := c.body(headers)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, c.Method, c.uri.String(), body)
	if err != nil {
		return nil, fmt.Errorf("request: %w", err)
	}
	req.Header = headers
	req.Host = headers.Get("Host") // "" = the URI's
	c.sent = map[string]string{}
	for name := range headers {
		c.sent[name] = headers.Get(name)
	}
	return req, nil
}

// carry sets a header that the author did not write, unless it is empty or
// could not be carried.
func carry(h http.Header, name, value string) {
	if value != "" && isHeaderValue(value) {
		h.Set(name, value)
	}
}

// body is what the request sends: nothing for null, a string as text unless it
// is declared JSON, anything else as JSON.
func (c *call) body(headers http.Header) (io.Reader, error) {
	kind := headers.Get("Content-Type")
	var text *string
	if len(c.Body) == 0 || string(c.Body) == "null" {
		return nil, nil
	}
	if err := json.Unmarshal(c.Body, &text); err == nil && !isJSON(kind) {
		if kind == "" {
			headers.Set("Content-Type", "text/plain; charset=utf-8")
		}
		return strings.NewReader(*text), nil
	}
	if kind == "" {
		headers.Set("Content-Type", "application/json")
	} else if !isJSON(kind) {
		return nil, fmt.Errorf("body: only a string can be sent as %s", kind)
	}
	return bytes.NewReader(c.Body), nil
}

// scalar is a JSON string, number or boolean as text.
func scalar(raw json.RawMessage) (string, error) {
	var v any
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return "", fmt.Errorf("not a value: %w", err)
	}
	switch v := v.(type) {
	case string:
		return v, nil
	case json.Number:
		return v.String(), nil
	case bool:
		return fmt.Sprint(v), nil
	}
	return "", fmt.Errorf("neither a string nor a number nor a boolean")
}

// isToken reports whether s is a token of RFC 9110.
func isToken(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		alphabetic := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !alphabetic && !('0' <= c && c <= '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != ""
}

// isHeaderValue reports whether s has no control characters.
func isHeaderValue(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' && s[i] != '\t' || s[i] == 0x7f {
			return false
		}
	}
	return true
}
