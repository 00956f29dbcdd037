package activity

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	jsonv2 "github.com/go-json-experiment/json"
)

// Limits of tokens.
const (
	MaxTokens        = 1_024            // kept in memory
	DefaultTokenLife = 5 * time.Minute  // of a token whose authority does not say
	tokenMargin      = 30 * time.Second // before its end a token is not used any more
	maxTokenBytes    = 256 << 10        // of an authority's answer
	discoveryPath    = "/.well-known/openid-configuration"
	tokenPath        = "/oauth2/token"
	formEncoding     = "application/x-www-form-urlencoded"
)

// grant is how a token is asked for.
type grant struct {
	Use       string    `json:"use"`
	Authority string    `json:"authority"`
	Grant     string    `json:"grant"`
	Client    client    `json:"client"`
	Request   encoding  `json:"request"`
	Issuers   []string  `json:"issuers"`
	Scopes    []string  `json:"scopes"`
	Audiences []string  `json:"audiences"`
	Username  string    `json:"username"`
	Password  string    `json:"password"`
	Subject   *subject  `json:"subject"`
	Actor     *subject  `json:"actor"`
	Endpoints endpoints `json:"endpoints"`
}

type client struct {
	ID             string `json:"id"`
	Secret         string `json:"secret"`
	Authentication string `json:"authentication"`
}

type encoding struct {
	Encoding string `json:"encoding"`
}

type endpoints struct {
	Token string `json:"token"`
}

type subject struct {
	Token string `json:"token"`
	Type  string `json:"type"`
}

// token is what an authority gave, in the memory of this node only.
type token struct {
	value string
	until time.Time
}

// tokens asks authorities for tokens, and keeps them until shortly before they end.
type tokens struct {
	client  *http.Client
	timeout time.Duration                                    // of a request
	bound   func(names, origins []string, to *url.URL) error // whether secrets may be sent there

	mu    sync.Mutex
	kept  map[string]token // by everything that they were asked with
	loads singleflight.Group
}

func (t *tokens) get(key string, now time.Time) (token, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k, ok := t.kept[key]
	return k, ok && now.Before(k.until)
}

func (t *tokens) put(key string, k token) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.kept == nil {
		t.kept = map[string]token{}
	}
	for old := range t.kept { // a map is walked in random order: some go, then
		if len(t.kept) < MaxTokens {
			break
		}
		delete(t.kept, old)
	}
	t.kept[key] = k
}

func (t *tokens) drop(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.kept, key)
}

// granted makes the proof of a call that needs a token.
func (p *Performer) granted(ctx context.Context, g grant, discover bool, c *call) (proof, *engine.Failure) {
	if f := p.fill(g.Use, &g, c.keep); f != nil {
		return proof{}, f
	}
	g.kept(c.keep)
	to := recipients{origins: c.Origins}
	_, to.names = c.uses()
	if g.Use != "" {
		to.origins = append(slices.Clone(to.origins), g.Authority, g.Endpoints.Token) // the operator writes them in the secret
	}
	if at, err := url.Parse(g.endpoint(discover)); err == nil { // a wrong one is told by who asks it
		if err := p.bound(to.names, to.origins, at); err != nil {
			return proof{}, secretFailure(err)
		}
	}
	raw, _ := json.Marshal(g) // plain data cannot fail
	sum := sha256.Sum256(fmt.Appendf(raw, "%t", discover))
	key := hex.EncodeToString(sum[:])
	k, ok := p.tokens.get(key, time.Now())
	if !ok {
		var got singleflight.Result
		select {
		case got = <-p.tokens.loads.DoChan(key, func() (any, error) {
			k, err := p.tokens.obtain(context.WithoutCancel(ctx), g, discover, to) // it is for all who wait; each request has a timeout
			if err == nil {
				p.tokens.put(key, k)
			}
			return k, err
		}):
		case <-ctx.Done():
			got.Err = ctx.Err()
		}
		if got.Err != nil {
			var f *tokenFailure
			if errors.As(got.Err, &f) {
				failed := *f.failure // that of each who waits
				return proof{}, &failed
			}
			return proof{}, retryable(typeAuthentication, http.StatusUnauthorized, "no token", got.Err.Error())
		}
		k = got.Val.(token)
	}
	c.keep.add(k.value)
	pr := bearing(k.value)
	pr.renew = func() { p.tokens.drop(key) }
	return pr, nil
}

// recipients are who may get the secrets of a grant.
type recipients struct {
	names   []string // of the secrets
	origins []string // that the definition, or the secret itself, writes out
}

// kept remembers what is secret of a grant, also as it is sent.
func (g grant) kept(keep *secrecy) {
	keep.add(g.Client.Secret, g.Password, url.QueryEscape(g.Client.ID)+":"+url.QueryEscape(g.Client.Secret))
	for _, s := range []*subject{g.Subject, g.Actor} {
		if s != nil {
			keep.add(s.Token)
		}
	}
}

// tokenFailure carries a failure through those who wait for the same token.
type tokenFailure struct{ failure *engine.Failure }

func (f *tokenFailure) Error() string { return f.failure.Error.Detail }

func refusedToken(retry bool, code, format string, args ...any) error {
	e := problem.New(problem.Denied, code, format, args...)
	f := permanent(typeAuthentication, http.StatusUnauthorized, "no token", e.Error())
	f.Retry = retry
	return &tokenFailure{f}
}

// obtain asks an authority for a token.
func (t *tokens) obtain(ctx context.Context, g grant, discover bool, to recipients) (token, error) {
	endpoint, err := t.tokenEndpoint(ctx, g, discover, to)
	if err != nil {
		return token{}, err
	}
	req, err := g.request(ctx, endpoint)
	if err != nil {
		return token{}, refusedToken(false, "auth.authority", "authority %q has no usable address of its token endpoint", g.Authority)
	}
	var answer struct {
		Access  string          `json:"access_token"`
		Expires json.RawMessage `json:"expires_in"` // a number, or one in quotes
		Type    string          `json:"token_type"`
	}
	if err := t.ask(req, &answer); err != nil {
		return token{}, err
	}
	if answer.Access == "" {
		return token{}, refusedToken(false, "auth.token", "%s gave no access_token", place(req.URL))
	}
	if answer.Type != "" && !strings.EqualFold(answer.Type, "bearer") {
		return token{}, refusedToken(false, "auth.token", "%s gave a token of type %q, not bearer", place(req.URL), answer.Type)
	}
	if err := g.issuer(answer.Access, req.URL); err != nil {
		return token{}, err
	}
	life := DefaultTokenLife
	if s, err := strconv.ParseInt(strings.Trim(string(answer.Expires), `"`), 10, 64); err == nil && s > 0 {
		life = time.Duration(min(s, 365*24*3600)) * time.Second
	}
	return token{value: answer.Access, until: time.Now().Add(life - min(tokenMargin, life/2))}, nil
}

// place names a URL in messages, without what may hold secrets.
func place(u *url.URL) string { return u.Scheme + "://" + u.Host + u.EscapedPath() }

// endpoint is what a grant asks first: the token endpoint, or the document that
// names it.
func (g grant) endpoint(discover bool) string {
	base := strings.TrimSuffix(g.Authority, "/")
	path := g.Endpoints.Token
	switch {
	case discover:
		return base + discoveryPath
	case path == "":
		path = tokenPath
	case strings.Contains(path, "://"):
		return path
	}
	return base + "/" + strings.TrimPrefix(path, "/")
}

// tokenEndpoint finds where tokens are given. What an authority names may be
// another host, as far as the operator does not bind the secrets to others, and
// never less protected than the authority.
func (t *tokens) tokenEndpoint(ctx context.Context, g grant, discover bool, to recipients) (string, error) {
	at := g.endpoint(discover)
	if !discover {
		return at, nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return "", refusedToken(false, "auth.authority", "authority %q is not a URL", g.Authority)
	}
	var found struct {
		Token string `json:"token_endpoint"`
	}
	if err := t.ask(req, &found); err != nil {
		return "", err
	}
	u, err := url.Parse(found.Token)
	if err != nil || found.Token == "" {
		return "", refusedToken(false, "auth.authority", "%s names no token_endpoint", place(req.URL))
	}
	if req.URL.Scheme == "https" && u.Scheme != "https" {
		return "", refusedToken(false, "auth.authority", "%s names a token_endpoint without TLS", place(req.URL))
	}
	if err := t.bound(to.names, append(slices.Clone(to.origins), found.Token), u); err != nil {
		return "", &tokenFailure{secretFailure(err)}
	}
	return found.Token, nil
}

// request is the request for a token.
func (g grant) request(ctx context.Context, endpoint string) (*http.Request, error) {
	form := url.Values{"grant_type": {g.Grant}}
	add := func(name, value string) {
		if value != "" {
			form.Set(name, value)
		}
	}
	basic := g.Client.Authentication == "client_secret_basic"
	if !basic {
		add("client_id", g.Client.ID)
		if g.Client.Authentication != "none" {
			add("client_secret", g.Client.Secret)
		}
	}
	add("scope", strings.Join(g.Scopes, " "))
	add("audience", strings.Join(g.Audiences, " "))
	add("username", g.Username)
	add("password", g.Password)
	if g.Grant == "refresh_token" && g.Subject != nil {
		add("refresh_token", g.Subject.Token)
	} else if g.Subject != nil {
		add("subject_token", g.Subject.Token)
		add("subject_token_type", g.Subject.Type)
	}
	if g.Actor != nil {
		add("actor_token", g.Actor.Token)
		add("actor_token_type", g.Actor.Type)
	}
	kind, body := formEncoding, form.Encode()
	if g.Request.Encoding == "application/json" {
		fields := map[string]string{}
		for name := range form {
			fields[name] = form.Get(name)
		}
		kind, body = g.Request.Encoding, string(encode(fields))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", kind)
	req.Header.Set("Accept", "application/json")
	if basic {
		req.SetBasicAuth(url.QueryEscape(g.Client.ID), url.QueryEscape(g.Client.Secret))
	}
	return req, nil
}

// ask sends a request to an authority and reads its answer in JSON.
func (t *tokens) ask(req *http.Request, into any) error {
	if req.URL.Scheme != "http" && req.URL.Scheme != "https" || req.URL.Host == "" {
		return refusedToken(false, "auth.authority", "%q is not an HTTP URL", place(req.URL))
	}
	c := *t.client
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	ctx, cancel := context.WithTimeout(req.Context(), t.timeout)
	defer cancel()
	resp, err := c.Do(req.WithContext(ctx))
	if refused := notAllowed(err); refused != nil {
		return &tokenFailure{egressFailure(refused)}
	}
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return refusedToken(true, "auth.unreachable", "%s cannot be reached: %v", place(req.URL), err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxTokenBytes+1))
	switch {
	case err != nil:
		return refusedToken(true, "auth.unreachable", "%s cannot be read: %v", place(req.URL), err)
	case resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests:
		return refusedToken(true, "auth.unreachable", "%s answered %s", place(req.URL), resp.Status)
	case resp.StatusCode != http.StatusOK:
		var why struct {
			Error       string `json:"error"`
			Description string `json:"error_description"`
		}
		_ = jsonv2.Unmarshal(body, &why) // what is not JSON says nothing
		return refusedToken(false, "auth.refused", "%s answered %s %s", place(req.URL), resp.Status, excerpt([]byte(strings.TrimSpace(why.Error+" "+why.Description))))
	case len(body) > maxTokenBytes:
		return refusedToken(false, "auth.token", "%s answered with more than %d bytes", place(req.URL), maxTokenBytes)
	}
	if err := jsonv2.Unmarshal(body, into); err != nil {
		return refusedToken(false, "auth.token", "%s did not answer in JSON of the form of OAuth 2", place(req.URL))
	}
	return nil
}

// issuer checks who issued a token, where the policy names issuers and the
// token is a JWT. Its signature is for the server that gets it to check.
func (g grant) issuer(access string, from *url.URL) error {
	parts := strings.Split(access, ".")
	if len(g.Issuers) == 0 || len(parts) != 3 {
		return nil
	}
	var claims struct {
		Issuer string `json:"iss"`
	}
	if raw, err := base64.RawURLEncoding.DecodeString(parts[1]); err == nil {
		_ = jsonv2.Unmarshal(raw, &claims) // what is no JWT has no issuer
	}
	if claims.Issuer != "" && !slices.Contains(g.Issuers, claims.Issuer) {
		return refusedToken(false, "auth.issuer", "%s gave a token issued by %q, which the policy does not name", place(from), claims.Issuer)
	}
	return nil
}
