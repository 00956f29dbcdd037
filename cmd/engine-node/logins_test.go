package main

import (
	"crypto/tls"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/aqueduct-engine/aqueduct/config"
	"github.com/aqueduct-engine/aqueduct/internal/await"
	"github.com/aqueduct-engine/aqueduct/internal/idp"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// loggingIn are two nodes on one database, whose people an identity provider knows.
func loggingIn(t *testing.T, change func(*config.Config)) (*idp.Server, [2]*node) {
	t.Helper()
	s := idp.Run()
	t.Cleanup(s.Close)
	c := config.Default()
	c.Store.URL = "sqlite://" + filepath.Join(t.TempDir(), "a.db")
	c.Access.Issuer, c.Access.Audience, c.Access.Client = s.URL, "console", "console"
	c.Access.Roles = "operator=ops; viewer=ops; author=ops; task-user=clerks"
	change(&c)
	var nodes [2]*node
	for i := range nodes {
		n, err := wire(t.Context(), c, "n"+string(rune('1'+i)), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(n.close)
		nodes[i] = n
	}
	return s, nodes
}

func unchanged(*config.Config) {}

func served(t *testing.T, n *node) string {
	t.Helper()
	server := httptest.NewServer(n.handler)
	t.Cleanup(server.Close)
	return server.URL
}

func ops(name string) map[string]any {
	return map[string]any{"sub": name, "groups": []string{"ops", "<b>"}}
}

// cookie is one that the browser has for the pages of a node; "" = none.
func (p *person) cookie(name string) string {
	p.t.Helper()
	u, err := url.Parse(p.base + "/console/")
	if err != nil {
		p.t.Fatal(err)
	}
	for _, c := range p.http.Jar.Cookies(u) {
		if c.Name == name {
			return c.Value
		}
	}
	return ""
}

// in logs somebody in, and says which page they see then.
func (p *person) in(wants string) string {
	p.t.Helper()
	res, err := p.http.Get(p.base + "/console/login?next=" + url.QueryEscape(wants))
	p.read("/login", res, err, http.StatusOK, []string{"Log out"})
	return res.Request.URL.RequestURI()
}

// E7: a person logs in by the identity provider, is known on every node, in the audit and
// on the page, and logs out on every node within a second.
func TestPeopleLogInAtTheConsole(t *testing.T) {
	t.Parallel()
	provider, nodes := loggingIn(t, unchanged)
	here, there := served(t, nodes[0]), served(t, nodes[1])
	provider.Agree(ops("anna"), time.Hour)
	p := atConsole(t, here)
	res, err := p.http.Get(here + "/console/instances?status=faulted")
	p.read("/instances", res, err, http.StatusUnauthorized, []string{`href="/console/login?next=%2Fconsole%2Finstances%3Fstatus%3Dfaulted"`})
	if at := p.in("/console/instances?status=faulted"); at != "/console/instances?status=faulted" {
		t.Error("after the login they are at", at)
	}
	p.page("/", "anna", ", of ops, &lt;b&gt;")
	first := p.cookie("aqueduct-session")
	if !strings.HasPrefix(first, "aq_s") || p.cookie("aqueduct-login") != "" {
		t.Errorf("cookies: %q, %q", first, p.cookie("aqueduct-login"))
	}
	p.press(http.StatusOK, "/definitions", url.Values{"source": {asking}}, "It is published.")
	a, err := nodes[0].store.Parts().Audit.Audit(t.Context(), backend.AuditQuery{Action: "publish"})
	if err != nil || len(a.Items) != 1 || a.Items[0].User != "anna" || a.Items[0].Kind != "user" || a.Items[0].Via != "console" {
		t.Errorf("%+v %v", a, err)
	}

	other := &person{t, p.http, there} // a cookie is a host's, whatever its port
	other.page("/instances", "anna")
	r, err := http.NewRequest(http.MethodPost, here+"/console/logout", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	if res, err = p.http.Do(r); err != nil || res.StatusCode != http.StatusForbidden {
		t.Error("another site's page logs somebody out", err)
	}
	if res.Body.Close(); p.page("/", "Log out") == "" || p.in("/console/") == "" {
		t.Error("no page")
	}
	second := p.cookie("aqueduct-session")
	if refuses := func(base, session string) bool { return pageOf(t, base, session) == http.StatusUnauthorized }; second == first || !refuses(here, first) {
		t.Error("a login goes on in the session that was there before")
	} else {
		p.press(http.StatusUnauthorized, "/logout", nil, "Log in")
		ended := time.Now()
		await.Until(t, "the other node to refuse it", func() (bool, any) { return refuses(there, second), "" })
		if took := time.Since(ended); took > time.Minute { // a second, on a machine that is busy
			t.Error("it went on elsewhere for", took)
		}
	}
	if p.cookie("aqueduct-session") != "" {
		t.Error("the browser keeps a session that is none")
	}
}

// pageOf asks for a page with a session, and says the status.
func pageOf(t *testing.T, base, session string) int {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, base+"/console/instances", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.AddCookie(&http.Cookie{Name: "aqueduct-session", Value: session})
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	return res.StatusCode
}

// What is no answer to a login that this browser has begun logs nobody in; nor does what
// the provider gives to somebody else.
func TestWhatLogsNobodyIn(t *testing.T) {
	t.Parallel()
	provider, nodes := loggingIn(t, unchanged)
	base := served(t, nodes[0])
	// sent is a browser that was sent to the provider, and what the provider answers.
	sent := func() (p *person, back *url.URL) {
		p = atConsole(t, base)
		p.http.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
			if r.URL.Path == "/console/login/callback" {
				return http.ErrUseLastResponse
			}
			return nil
		}
		res, err := p.http.Get(base + "/console/login")
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if back, err = res.Location(); err != nil {
			t.Fatal(err)
		}
		p.http.CheckRedirect = nil
		return p, back
	}
	comes := func(what string, p *person, back *url.URL, status int, says ...string) {
		t.Helper()
		res, err := p.http.Get(back.String())
		if p.read(what, res, err, status, says); p.cookie("aqueduct-session") != "" && status != http.StatusOK {
			t.Errorf("%s: there is a session", what)
		}
	}
	with := func(u *url.URL, name, value string) *url.URL {
		c, q := *u, u.Query()
		q.Set(name, value)
		c.RawQuery = q.Encode()
		return &c
	}

	p, back := sent()
	comes("nobody agrees", p, back, http.StatusForbidden, "access.login-failed", "access_denied nobody &lt;is&gt; here")
	provider.Agree(ops("anna"), time.Hour)
	p, back = sent()
	comes("another state", p, with(back, "state", "x"), http.StatusForbidden, "access.login-failed")
	comes("its own answer, after that", p, back, http.StatusOK, "anna") // who forges an answer ends no login
	p, back = sent()
	stranger := atConsole(t, base)
	comes("another browser", stranger, back, http.StatusForbidden, "access.login-failed", "has not begun the login")
	comes("the browser that has begun", p, back, http.StatusOK, "anna")
	again, _ := sent()
	comes("a code that was used", again, with(back, "state", again.cookieState()), http.StatusForbidden, "access.login-failed", "invalid_grant")
	p, back = sent()
	_, others := sent()
	comes("a code of another login", p, with(back, "code", others.Query().Get("code")), http.StatusForbidden, "access.login-failed")
	p, back = sent()
	comes("another issuer", p, with(back, "iss", "https://evil.example"), http.StatusForbidden, "another provider")
	for name, claims := range map[string]map[string]any{
		"another nonce": {"nonce": "x"}, "another audience": {"aud": "payroll"}, "expired": {"exp": 1},
	} {
		of := ops("anna")
		for k, v := range claims {
			of[k] = v
		}
		provider.Agree(of, time.Hour)
		p, back = sent()
		comes(name, p, back, http.StatusUnauthorized, "access.token-refused")
	}
	provider.Agree(map[string]any{"sub": "anna", "groups": []string{strings.Repeat("g", 4000)}}, time.Hour)
	p, back = sent()
	comes("large groups", p, back, http.StatusForbidden, "access.oidc-groups")
	provider.Agree(ops("anna"), time.Hour)
	p, back = sent()
	provider.Away(true)
	comes("the provider is away", p, back, http.StatusServiceUnavailable, "access.unavailable")
	provider.Away(false)
	for _, next := range []string{"https://evil.example/", "//evil.example/console/", "/v1/instances", `/console/\evil`, "/console/login", "/console/../v1"} {
		if at := atConsole(t, base).in(next); !strings.HasPrefix(at, "/console/") || strings.Contains(at, "evil") {
			t.Errorf("%s leads to %s", next, at)
		}
	}
}

// cookieState is the state of the login that a browser has begun.
func (p *person) cookieState() string {
	state, _, _ := strings.Cut(p.cookie("aqueduct-login"), ".")
	return state
}

// Where the browser speaks TLS, to the node or to a proxy in front, the cookie is one that
// no other host sets; elsewhere nobody logs in over plain HTTP.
func TestWhereTheCookieIsBound(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	provider, nodes := loggingIn(t, func(c *config.Config) {
		c.Access.Origins, c.Access.Secret = "https://flow.example", secret
	})
	provider.Agree(ops("anna"), time.Hour)
	provider.Confide("s3cret")
	server := httptest.NewTLSServer(nodes[0].handler)
	t.Cleanup(server.Close)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &person{t, &http.Client{Jar: jar, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}}}, server.URL}
	if p.in("/console/"); !strings.HasPrefix(p.cookie("__Host-aqueduct-session"), "aq_s") || p.cookie("aqueduct-session") != "" {
		t.Error("by TLS the cookie is", p.cookie("__Host-aqueduct-session"), p.cookie("aqueduct-session"))
	}

	ask := func(path, host string, cookies ...*http.Cookie) *http.Response {
		r := httptest.NewRequest(http.MethodGet, "http://"+host+path, nil)
		r.Header.Set("X-Forwarded-Proto", "https") // which nobody believes
		for _, c := range cookies {
			r.AddCookie(c)
		}
		w := httptest.NewRecorder()
		nodes[0].handler.ServeHTTP(w, r)
		return w.Result()
	}
	begun := ask("/console/login", "flow.example")
	to, err := begun.Location()
	if err != nil || to.Query().Get("redirect_uri") != "https://flow.example/console/login/callback" {
		t.Fatal("the provider is to send them to", to, err)
	}
	c := begun.Cookies()[0]
	if c.Name != "__Host-aqueduct-login" || !c.Secure || !c.HttpOnly || c.Path != "/" || c.Domain != "" || c.SameSite != http.SameSiteLaxMode {
		t.Errorf("%+v", c)
	}
	if res := ask("/console/login", "other.example"); res.StatusCode != http.StatusForbidden || len(res.Cookies()) != 0 {
		t.Error("over plain HTTP somebody logs in:", res.Status)
	}
	session := p.cookie("__Host-aqueduct-session")
	for name, c := range map[string][]*http.Cookie{
		"without the prefix": {{Name: "aqueduct-session", Value: session}},
		"two of the name":    {{Name: "__Host-aqueduct-session", Value: session}, {Name: "__Host-aqueduct-session", Value: "x"}},
	} {
		if res := ask("/console/instances", "flow.example", c...); res.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: %s", name, res.Status)
		}
	}
	res := ask("/console/instances", "flow.example", &http.Cookie{Name: "__Host-aqueduct-session", Value: session})
	if text, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusOK || !strings.Contains(string(text), "anna") {
		t.Errorf("%s %v", res.Status, err)
	}
	if res := ask("/v1/instances", "flow.example", &http.Cookie{Name: "__Host-aqueduct-session", Value: session}); res.StatusCode != http.StatusUnauthorized {
		t.Error("the API takes a cookie:", res.Status) // which a browser sends for any page
	}
}

// While the database is away it is said that nobody knows whether a session counts: nobody
// is asked to log in again, and nobody is told that they are out.
func TestSessionsWhileTheDatabaseIsAway(t *testing.T) {
	t.Parallel()
	provider, nodes := loggingIn(t, unchanged)
	provider.Agree(ops("anna"), time.Hour)
	p := atConsole(t, served(t, nodes[0]))
	p.in("/console/")
	session := p.cookie("aqueduct-session")
	if err := nodes[0].store.Close(); err != nil {
		t.Fatal(err)
	}
	await.Until(t, "the verdict to be too old", func() (bool, any) {
		res, err := p.http.Get(p.base + "/console/instances")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusServiceUnavailable {
			t.Fatal(res.Status, err, string(text))
		}
		return strings.Contains(string(text), "access.unavailable"), string(text)
	})
	p.press(http.StatusServiceUnavailable, "/logout", nil, "access.unavailable", "it goes on")
	if p.cookie("aqueduct-session") != session {
		t.Error("the browser has forgotten a session that goes on")
	}
	p.press(http.StatusServiceUnavailable, "/logout", nil)
}

// E7, in a real browser: from a page to the identity provider, back to the page, and out.
func TestAPersonLogsInAtABrowser(t *testing.T) {
	provider, nodes := loggingIn(t, unchanged)
	provider.Agree(ops("anna"), time.Hour)
	b := atBrowser(t, served(t, nodes[0]))
	b.also = provider.URL
	b.open("/queues")
	b.says("Sign in")
	b.do(chromedp.Click(chromedp.CSS("a.login")))
	b.says("Queues")
	if at := value[string](b, "location.pathname"); at != "/console/queues" {
		t.Error("after the login the browser is at", at)
	}
	if seen := value[string](b, "document.cookie"); strings.Contains(seen, "aqueduct") {
		t.Error("a script sees the session:", seen)
	}
	b.do(chromedp.Click(chromedp.CSS("details.who summary")))
	b.says("You have logged in as anna")
	b.press("Log out")
	b.says("Sign in")
	b.open("/queues")
	b.says("Sign in")
}
