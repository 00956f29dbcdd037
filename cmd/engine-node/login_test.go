package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/aqueduct-engine/aqueduct/internal/await"
	"github.com/aqueduct-engine/aqueduct/internal/idp"
	"github.com/aqueduct-engine/aqueduct/problem"
)

// What a provider answers when a login begins is held to what RFC 8628 says before
// anybody is asked to do something.
func TestWhatAProviderAsksForIsBounded(t *testing.T) {
	t.Parallel()
	good := oauth2.DeviceAuthResponse{DeviceCode: "d", UserCode: "AB-CD", VerificationURI: "https://id.example/device", Interval: 1, Expiry: time.Now().Add(time.Minute)}
	for name, change := range map[string]func(*oauth2.DeviceAuthResponse){
		"a script":           func(a *oauth2.DeviceAuthResponse) { a.VerificationURI = "javascript:alert(1)" },
		"a file":             func(a *oauth2.DeviceAuthResponse) { a.VerificationURIComplete = "file:///etc/passwd" },
		"no host":            func(a *oauth2.DeviceAuthResponse) { a.VerificationURI = "https:///x" },
		"an escape":          func(a *oauth2.DeviceAuthResponse) { a.VerificationURI = "https://id.example/\u009b2J" },
		"no address":         func(a *oauth2.DeviceAuthResponse) { a.VerificationURI = "" },
		"no code":            func(a *oauth2.DeviceAuthResponse) { a.UserCode = "" },
		"no device":          func(a *oauth2.DeviceAuthResponse) { a.DeviceCode = "" },
		"a negative pause":   func(a *oauth2.DeviceAuthResponse) { a.Interval = -1 },
		"a pause of a year ": func(a *oauth2.DeviceAuthResponse) { a.Interval = 365 * 24 * 3600 },
	} {
		a := good
		change(&a)
		if err := bounded(&a); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	for _, expiry := range []time.Time{{}, time.Now().Add(1000 * time.Hour)} {
		a := good
		a.Expiry = expiry
		if err := bounded(&a); err != nil || time.Until(a.Expiry) > loginMax {
			t.Errorf("%v: until %s", err, a.Expiry)
		}
	}
}

// renewing is a provider that gives tokens which are renewed at each use, and somebody who has
// logged in to a server with it; meanwhile is done before it answers.
func renewing(t *testing.T, server string, meanwhile func(credentials)) (*idp.Server, visitor) {
	t.Helper()
	door := httptest.NewUnstartedServer(nil)
	provider := idp.New("http://" + door.Listener.Addr().String())
	a := visitor{&app{env: []string{"XDG_CONFIG_HOME=" + t.TempDir()}}, server}
	file := func() (credentials, string) {
		all, path, err := a.credentials()
		if err != nil {
			t.Error(err)
		}
		return all, path
	}
	door.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/token" {
			all, path := file()
			meanwhile(all)
			if err := all.write(path); err != nil {
				t.Error(err)
			}
		}
		provider.Handler().ServeHTTP(w, r)
	})
	door.Start()
	t.Cleanup(door.Close)
	provider.Agree(map[string]any{"sub": "anna"}, early-time.Second)
	all, path := file()
	all[server] = credential{Issuer: provider.URL, ClientID: "cli", Token: "over", Refresh: "refresh-0"}
	if err := all.write(path); err != nil {
		t.Fatal(err)
	}
	return provider, a
}

// A command that takes longer than a token lives goes on with the next one.
func TestALoginIsRenewedWhileACommandRuns(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var shown []string
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		shown = append(shown, r.Header.Get("Authorization"))
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"edit":0}`)
	}))
	t.Cleanup(node.Close)
	_, of := renewing(t, node.URL, func(credentials) {})
	of.app.server, of.err, of.page = node.URL, io.Discard, &page{out: io.Discard, now: time.Now}
	root := of.root()
	root.SetArgs([]string{"--server", node.URL, "dlq", "replay", "a", "b", "c"})
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	slices.Sort(shown)
	if len(slices.Compact(slices.Clone(shown))) != 3 || !strings.HasPrefix(shown[0], "Bearer ey") || slices.Contains(shown, "Bearer over") {
		t.Errorf("tokens: %q", shown)
	}
}

// Where a provider does not renew a login for now, its token is used until it is over.
func TestATokenIsUsedUntilItIsOver(t *testing.T) {
	t.Parallel()
	provider, of := renewing(t, "http://n", func(credentials) {})
	over := func(at time.Time) {
		all, file, err := of.credentials()
		if err != nil {
			t.Fatal(err)
		}
		k := all["http://n"]
		k.Expires = at
		all["http://n"] = k
		if err := all.write(file); err != nil {
			t.Fatal(err)
		}
	}
	brief := func() context.Context { // in which a provider is asked once
		ctx, cancel := context.WithTimeout(t.Context(), renewPause)
		t.Cleanup(cancel)
		return ctx
	}
	s := &session{of: of}
	first, err := s.bearer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	provider.Away(true)
	if again, err := s.bearer(brief()); err != nil || again != first {
		t.Errorf("%q %v", again, err)
	}
	other := &session{of: of} // another command
	if again, err := other.bearer(brief()); err != nil || again != first {
		t.Errorf("another command: %q %v", again, err)
	}
	s.has.Expires = time.Now().Add(-time.Second)
	over(s.has.Expires)
	if _, err := s.bearer(brief()); problem.CodeOf(err) != "cli.login" {
		t.Error("it is shown when it is over:", err)
	}
	provider.Away(false)
	if next, err := s.bearer(t.Context()); err != nil || next == first || next == "" {
		t.Errorf("%q %v", next, err)
	}
}

// A login that is renewed leaves those to other servers as other runs have left them, and
// itself where somebody has ended it meanwhile.
func TestARenewalKeepsWhatOthersWrite(t *testing.T) {
	t.Parallel()
	for name, ended := range map[string]bool{"another": false, "logged out": true} {
		_, of := renewing(t, "http://n", func(all credentials) {
			all["http://other"] = credential{Refresh: "rotated"}
			if ended {
				delete(all, "http://n")
			}
		})
		k, err := of.credential(t.Context())
		if err != nil || k.Refresh != "refresh-1" {
			t.Errorf("%s: %+v %v", name, k, err)
		}
		all, _, err := of.credentials()
		if err != nil || all["http://other"].Refresh != "rotated" || (all["http://n"].Refresh == "refresh-1") == ended {
			t.Errorf("%s: %+v %v", name, all, err)
		}
	}
}

// Of commands that run at once, one renews a login, and all have it: a provider takes a refresh token
// for a stolen one when it comes twice, and ends the login.
func TestOneRenewsForAll(t *testing.T) {
	t.Parallel()
	var asks atomic.Int32
	both := make(chan struct{})
	provider, of := renewing(t, "http://n", func(credentials) {
		if asks.Add(1) == 2 {
			close(both)
		}
		select { // the other, who asks meanwhile unless they wait
		case <-both:
		case <-time.After(time.Second):
		}
	})
	provider.Agree(map[string]any{"sub": "anna"}, time.Hour)
	got := make(chan string)
	for range 2 {
		go func() {
			k, err := of.credential(t.Context())
			if err != nil {
				t.Error(err)
			}
			got <- k.Refresh
		}()
	}
	if a, b := <-got, <-got; a != "refresh-1" || b != "refresh-1" || provider.Asked("/token") != 1 {
		t.Errorf("%s, %s: the provider was asked %d times", a, b, provider.Asked("/token"))
	}
}

// A provider that is away for a moment ends no login, nor does one whose token is of no use: the
// refresh token that came with it counts, and the one before does not.
func TestALoginOutlivesATrouble(t *testing.T) {
	t.Parallel()
	provider, of := renewing(t, "http://n", func(credentials) {})
	provider.Agree(map[string]any{"sub": "anna", "aud": "another"}, time.Hour)
	if _, err := of.credential(t.Context()); problem.CodeOf(err) != "cli.login" {
		t.Error("a token for another is taken:", err)
	}
	provider.Agree(map[string]any{"sub": "anna"}, time.Hour)
	provider.Away(true)
	asked := provider.Asked("/.well-known/openid-configuration")
	got := make(chan credential)
	go func() {
		k, err := of.credential(t.Context())
		if err != nil {
			t.Error(err)
		}
		got <- k
	}()
	await.Until(t, "a second try", func() (bool, any) {
		n := provider.Asked("/.well-known/openid-configuration")
		return n >= asked+2, n
	})
	provider.Away(false)
	if k := <-got; k.Refresh != "refresh-2" {
		t.Errorf("%+v", k)
	}
}
