package console_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/console"
)

// bearing is an API that says what a request bears.
type bearing struct{ got []string }

func (b *bearing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.got = append(b.got, r.Header.Get("Authorization"))
	w.WriteHeader(http.StatusNotFound)
}

// loggedIn are logins of somebody who has a session.
type loggedIn struct{ session string }

func (l loggedIn) Of(*http.Request) (string, string, []string)    { return l.session, l.session, nil }
func (l loggedIn) Login(http.ResponseWriter, *http.Request) error { return nil }
func (l loggedIn) Callback(w http.ResponseWriter, _ *http.Request) error {
	w.WriteHeader(200)
	return nil
}
func (l loggedIn) Logout(w http.ResponseWriter, _ *http.Request) error {
	w.WriteHeader(200)
	return nil
}

// TestCookiesAreOfThisHostAlone: where a browser speaks TLS, also to a proxy that is named,
// no other host sets what the console keeps in it, and nothing of it goes in clear.
func TestCookiesAreOfThisHostAlone(t *testing.T) {
	t.Parallel()
	api := &bearing{}
	h, err := console.Handler(console.Options{API: api, Origins: []string{"https://flow.example/"}, Logins: loggedIn{}})
	if err != nil {
		t.Fatal(err)
	}
	send := func(method, at string, form url.Values, cookies ...string) *http.Response {
		r := httptest.NewRequest(method, at, strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Cookie", strings.Join(cookies, "; "))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Result()
	}
	for at, name := range map[string]string{
		"http://flow.example": "__Host-", "https://node.example": "__Host-", "http://node.example": "", "http://FLOW.example": "__Host-", "http://127.0.0.1": "",
	} {
		for path, form := range map[string]url.Values{"/console/sign-in": {"token": {"aq_x"}}, "/console/who": {"user": {"ann"}}} {
			set := send("POST", at+path, form).Header.Get("Set-Cookie")
			if name == "" && (strings.Contains(set, "Secure") || !strings.HasPrefix(set, "aqueduct-") || !strings.Contains(set, "Path=/console/;")) {
				t.Errorf("%s%s: %s", at, path, set)
			}
			if name != "" && (!strings.HasPrefix(set, name+"aqueduct-") || !strings.Contains(set, "; Path=/; ") || !strings.Contains(set, "; Secure")) {
				t.Errorf("%s%s: %s", at, path, set)
			}
		}
	}
	for _, c := range []struct{ at, cookies, bears string }{
		{"http://flow.example", "aqueduct-token=aq_x", ""},
		{"http://flow.example", "__Host-aqueduct-token=aq_x", "Bearer aq_x"},
		{"http://flow.example", "__Host-aqueduct-token=aq_x; __Host-aqueduct-token=aq_y", ""},
		{"http://127.0.0.1", "aqueduct-token=aq_x", "Bearer aq_x"},
	} {
		api.got = nil
		send("GET", c.at+"/console/audit", nil, c.cookies)
		if len(api.got) == 0 || api.got[0] != c.bears {
			t.Errorf("%s with %s bears %q", c.at, c.cookies, api.got)
		}
	}
	for _, c := range [][2]string{{"POST", "/console/logout"}, {"GET", "/console/login/callback"}} {
		set := send(c[0], "http://flow.example"+c[1], nil, "__Host-aqueduct-token=aq_x").Header.Get("Set-Cookie")
		if !strings.HasPrefix(set, "__Host-aqueduct-token=;") || !strings.Contains(set, "Max-Age=0") {
			t.Errorf("%s leaves the token: %s", c[1], set)
		}
	}
	for back, want := range map[string]string{
		"/console/instances?status=faulted": "/console/instances?status=faulted", "/console/": "/console/",
		`/console/../\evil.example`: "/console/tasks", "/console/..//evil.example": "/console/tasks", "//evil.example/console/": "/console/tasks",
		"https://evil.example/console/": "/console/tasks", "/console/%2e%2e/%2e%2e/x": "/console/tasks", "/console/..": "/console/tasks", `\\evil.example`: "/console/tasks", "/consoles": "/console/tasks",
	} {
		if got := send("POST", "http://127.0.0.1/console/who", url.Values{"user": {"ann"}, "back": {back}}).Header.Get("Location"); got != want {
			t.Errorf("back to %q leads to %q", back, got)
		}
	}
}

// ended are logins of somebody whose session has ended.
type ended struct{ loggedIn }

func (l ended) Of(*http.Request) (string, string, []string) { return l.session, "", nil }

// A session that counts goes before a token; one that has ended hides none.
func TestAnEndedSessionHidesNoToken(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		logins        console.Logins
		cookie, bears string
	}{
		{loggedIn{"aq_s"}, "aqueduct-token=aq_x", "Bearer aq_s"},
		{ended{loggedIn{"aq_s"}}, "aqueduct-token=aq_x", "Bearer aq_x"},
		{ended{loggedIn{"aq_s"}}, "", "Bearer aq_s"}, // the API says why
	} {
		api := &bearing{}
		h, err := console.Handler(console.Options{API: api, Logins: c.logins})
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest("GET", "http://127.0.0.1/console/audit", nil)
		r.Header.Set("Cookie", c.cookie)
		h.ServeHTTP(httptest.NewRecorder(), r)
		if len(api.got) == 0 || api.got[0] != c.bears {
			t.Errorf("%T with %q bears %q, not %q", c.logins, c.cookie, api.got, c.bears)
		}
	}
}

// TestARunGoesOnAtItsPage: what has more to do leads to the page that goes on with it.
func TestARunGoesOnAtItsPage(t *testing.T) {
	t.Parallel()
	api := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id": "p", "operation": "retry", "status": "running", "planned": 9, "open": 4, "asked": {"operation": "retry"}}`)
	})
	h, err := console.Handler(console.Options{API: api})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("POST", "http://127.0.0.1/console/bulk/p/run", nil))
	if got := w.Header().Get("Location"); got != "/console/bulk/p?go=on" {
		t.Errorf("it leads to %q", got)
	}
}
