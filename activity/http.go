package activity

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/memory"
)

// Limits of an HTTP command.
const (
	MaxRedirects    = 10        // followed by one request
	MaxRetryAfter   = time.Hour // longest delay that a server may ask for
	maxExcerptBytes = 512       // of an error answer's body, quoted in the failure
)

// request performs an HTTP command. What it returns has none of the secrets in
// keep, nor those that the command, its tokens or its address have.
func (p *Performer) request(ctx context.Context, c engine.Command, key string, keep *secrecy) (json.RawMessage, *engine.Failure) {
	result, failure := p.attempt(ctx, c, key, keep)
	if failure != nil {
		return nil, keep.failure(failure)
	}
	return keep.value(result), nil
}

// prepared reads a command and fills in its secrets, as far as they may go
// where the command goes.
func (p *Performer) prepared(c engine.Command, keep *secrecy) (*call, *engine.Failure) {
	full, display, refs, err := p.filled(c.Input, keep)
	if err != nil {
		return nil, secretFailure(err)
	}
	call, err := parseCall(full)
	if err == nil {
		call.shown, err = parseCall(display)
	}
	if err != nil {
		return nil, permanent(TypeValidation, http.StatusBadRequest, "invalid HTTP call", err.Error())
	}
	call.keep, call.Secrets = keep, refs
	if password, ok := call.uri.User.Password(); ok {
		keep.add(password)
	}
	sent, asked := call.uses()
	if err = p.bound(sent, call.Origins, call.uri); err == nil {
		err = p.boundToken(asked, call.Origins, call.uri)
	}
	if err != nil {
		return nil, secretFailure(err)
	}
	return call, nil
}

func (p *Performer) attempt(ctx context.Context, c engine.Command, key string, keep *secrecy) (json.RawMessage, *engine.Failure) {
	call, failure := p.prepared(c, keep)
	if failure != nil {
		return nil, failure
	}
	limit := c.Timeout
	set(&limit, p.config.Timeout)
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	result, failure := p.send(limited, call, c, key)
	switch over := failure != nil && failure.Retry && limited.Err() != nil; {
	case over && ctx.Err() != nil:
		return nil, maybe(interrupted(c.Target), call.begun.Load())
	case over:
		f := retryable(TypeTimeout, http.StatusRequestTimeout, "timeout", fmt.Sprintf("%s: no complete answer within %s", call.shown.place(), limit))
		f.Ill = !call.starved
		return nil, maybe(f, call.begun.Load())
	}
	if failure != nil && call.begun.Load() {
		failure.Open = !failure.Unknown && (call.moved || !Refuses(call.status, call.Method))
	}
	return result, failure
}

// send makes the request and reads its answer.
func (p *Performer) send(ctx context.Context, call *call, c engine.Command, key string) (json.RawMessage, *engine.Failure) {
	req, err := call.request(ctx, c, key)
	if err == nil {
		_, err = call.shown.request(ctx, c, key) // for the headers that the result may show
	}
	if err != nil {
		return nil, permanent(TypeValidation, http.StatusBadRequest, "invalid HTTP call", err.Error())
	}
	shows, failure := p.proof(ctx, call)
	if failure != nil {
		return nil, failure
	}
	// Once there is a connection, the request may be on it.
	req = req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { call.begun.Store(true) },
	}))
	client := *p.client
	if !call.Redirect {
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	} else {
		client.CheckRedirect = call.redirected
	}
	notBegun := func() { call.begun.Store(false) } // until the next request is
	resp, failure, err := p.exchange(&client, req, shows, notBegun, func() (proof, *engine.Failure) { return p.proof(ctx, call) })
	if failure != nil {
		return nil, failure
	}
	if err != nil {
		return nil, unreachable(ctx, call, err)
	}
	defer resp.Body.Close()
	call.status, call.moved = resp.StatusCode, resp.Request != nil && resp.Request.Method != req.Method
	if status, ok := ctx.Value(statusKey{}).(*int); ok {
		*status = call.status
	}
	if told(c) && !refused(resp.StatusCode, call.Redirect) {
		_, _ = io.CopyN(io.Discard, resp.Body, smallBytes) // the connection may serve again
		return nil, nil
	}
	body, part, err := p.read(ctx, resp)
	if err != nil {
		call.starved = errors.As(err, new(starvedError))
		return nil, unreachable(ctx, call, err)
	}
	defer part.Release()
	if refused(resp.StatusCode, call.Redirect) {
		f := failureOfStatus(call, resp, body)
		f.Ill = f.Retry
		return nil, f
	}
	if int64(len(body)) > p.config.MaxResponseBytes {
		return nil, tooLarge("limit.response", "response", int(p.config.MaxResponseBytes))
	}
	if call.Output == outputRaw {
		body = call.keep.bytes(body) // before it is encoded
	}
	return shape(call.shown, resp, body)
}

// smallBytes is how much of an answer is read before memory is taken for it, and
// answerFactor how much it takes for each byte: as it came, searched for secrets,
// as JSON, and in the message and the snapshot that get it.
const (
	smallBytes   = 32 << 10
	answerFactor = 5
)

// read reads the body of an answer, and one byte more than it may have. Memory
// for a large one is taken for as long as the context holds it.
func (p *Performer) read(ctx context.Context, resp *http.Response) (body []byte, part *memory.Part, err error) {
	most := p.config.MaxResponseBytes + 1
	body, err = io.ReadAll(io.LimitReader(resp.Body, min(most, smallBytes)))
	if err != nil || int64(len(body)) < min(most, smallBytes) {
		return body, nil, err
	}
	if n := resp.ContentLength; n > 0 && n < most {
		most = n
	}
	if part, err = p.config.Memory.Take(ctx, most*answerFactor); err != nil {
		return nil, nil, starvedError{err}
	}
	whole := bytes.NewBuffer(make([]byte, 0, most+bytes.MinRead))
	whole.Write(body)
	if _, err = io.Copy(whole, io.LimitReader(resp.Body, p.config.MaxResponseBytes+1-int64(len(body)))); err != nil {
		part.Release()
		return nil, nil, err
	}
	p.config.Memory.Keep(ctx, part, int64(whole.Len())*answerFactor) // it waits so for its commit
	return whole.Bytes(), part, err
}

// starvedError says that an answer came and the node had no memory for it, which
// says nothing about who sent it.
type starvedError struct{ error }

func (e starvedError) Unwrap() error { return e.error }

// unreachable is the failure of a request that got no answer. The URL that net/http
// puts in its errors is dropped, since its query may hold a secret. A request
// that its caller gave up says nothing about the host.
func unreachable(ctx context.Context, call *call, err error) *engine.Failure {
	var tooFar redirectError
	if errors.As(err, &tooFar) {
		return permanent(TypeCommunication, http.StatusBadGateway, "redirect refused", call.shown.place()+": "+tooFar.Error())
	}
	if refused := notAllowed(err); refused != nil {
		return egressFailure(refused)
	}
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	f := retryable(TypeCommunication, http.StatusServiceUnavailable, "request failed", fmt.Sprintf("%s: %v", call.shown.place(), err))
	f.Ill = ctx.Err() == nil && !errors.As(err, new(starvedError))
	return maybe(f, call.begun.Load())
}

// refused reports whether a status is an error: by the DSL everything outside
// 200-299, or outside 200-399 where redirects are allowed.
func refused(status int, redirect bool) bool {
	return status < 200 || status >= 400 || status >= 300 && !redirect
}

// failureOfStatus turns an error status into a failure.
func failureOfStatus(call *call, resp *http.Response, body []byte) *engine.Failure {
	detail := fmt.Sprintf("%s: answered %s", call.shown.place(), resp.Status)
	if to := resp.Header.Get("Location"); to != "" && resp.StatusCode < 400 {
		detail += ", a redirect, which the call does not allow"
	} else if text := excerpt(call.keep.bytes(body)); text != "" { // a secret that is cut would not be found
		detail += ": " + text
	}
	title := http.StatusText(resp.StatusCode)
	if title == "" {
		title = "status " + strconv.Itoa(resp.StatusCode)
	}
	f := permanent(TypeCommunication, resp.StatusCode, title, detail)
	if f.Retry = MayPass(resp.StatusCode); f.Retry || resp.StatusCode == http.StatusConflict { // which may be of its own key
		f.After = retryAfter(resp.Header)
	}
	return maybe(f, LeavesOpen(resp.StatusCode))
}

// MayPass reports whether another attempt may have another status.
func MayPass(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return status >= 500
}

// LeavesOpen reports whether a status does not say what was done: a gateway
// that got no answer speaks for itself, not for who should have it.
func LeavesOpen(status int) bool {
	return status == http.StatusBadGateway || status == http.StatusGatewayTimeout
}

// Refuses reports whether a status says that nothing was done: a 4xx of a server that did
// not wait in vain for the request, and a redirect of what only asks. Any other error, and
// an answer that cannot be read, leaves open what was done.
func Refuses(status int, method string) bool {
	asks := method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
	return status >= 400 && status < 500 && status != http.StatusRequestTimeout || asks && status >= 300 && status < 400
}

// excerpt is the beginning of an error answer, for people to read.
func excerpt(body []byte) string {
	text := strings.TrimSpace(strings.ToValidUTF8(string(body[:min(len(body), maxExcerptBytes)]), ""))
	if len(body) > maxExcerptBytes {
		text += " ..."
	}
	return text
}

// retryAfter reads the Retry-After header: seconds, or a date, which is taken
// relative to the server's own Date so that clocks need not agree. What it
// cannot read is no delay.
func retryAfter(h http.Header) time.Duration {
	value := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, err := strconv.ParseInt(value, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) { // then it is the nearest
		return time.Duration(min(max(seconds, 0), int64(MaxRetryAfter/time.Second))) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	sent, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return 0
	}
	return min(max(at.Sub(sent), 0), MaxRetryAfter)
}

// shape makes the result of an accepted answer in the form the call asks for.
func shape(call *call, resp *http.Response, body []byte) (json.RawMessage, *engine.Failure) {
	if call.Output == outputRaw {
		return encode(base64.StdEncoding.EncodeToString(body)), nil
	}
	content, err := content(resp.Header.Get("Content-Type"), body)
	if err != nil {
		return nil, permanent(TypeCommunication, http.StatusBadGateway, "unreadable response", fmt.Sprintf("%s: %v", call.place(), err))
	}
	if call.Output == outputContent {
		return content, nil
	}
	headers := map[string]string{}
	for name, values := range resp.Header {
		headers[name] = strings.Join(values, ", ")
	}
	return encode(map[string]any{
		"request":    map[string]any{"method": call.Method, "uri": call.uri.String(), "headers": call.sent},
		"statusCode": resp.StatusCode,
		"headers":    headers,
		"content":    content,
	}), nil
}

// content is a body as a JSON value: parsed when it is JSON, null when there is
// none, otherwise a string; of what is not text in UTF-8, in base64.
func content(contentType string, body []byte) (json.RawMessage, error) {
	if len(body) == 0 {
		return json.RawMessage("null"), nil
	}
	switch text := utf8.Valid(body); {
	case !text && isJSON(contentType):
		return nil, fmt.Errorf("the body is declared JSON and is not text in UTF-8; ask for output: %s", outputRaw)
	case !text:
		return encode(base64.StdEncoding.EncodeToString(body)), nil
	case !isJSON(contentType):
		return encode(string(body)), nil
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, body); err != nil {
		return nil, fmt.Errorf("the body is declared JSON and is not: %w", err)
	}
	return compact.Bytes(), nil
}

func isJSON(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	return err == nil && (kind == "application/json" || strings.HasSuffix(kind, "+json"))
}

// encode writes a value that is made of strings, numbers, maps and valid JSON
// only, which cannot fail.
func encode(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("activity: encode: %v", err))
	}
	return b
}

// redirectError ends a request that was sent on too often or astray.
type redirectError string

func (e redirectError) Error() string { return string(e) }

func checkRedirect(req *http.Request, via []*http.Request) error {
	if via[0].Header.Get("Referer") == "" {
		req.Header.Del("Referer") // net/http writes the last address there, with its query
	}
	if req.URL.Scheme != "http" && req.URL.Scheme != "https" {
		return redirectError("redirected to the scheme " + strconv.Quote(req.URL.Scheme))
	}
	if len(via) > MaxRedirects { // with the first request
		return redirectError(fmt.Sprintf("redirected more than %d times", MaxRedirects))
	}
	return nil
}
