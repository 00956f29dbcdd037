package console_test

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/console"
)

// However many look, so many pages are made at once, and everybody gets theirs: a
// page holds all that it shows, which the API's own memory no longer counts.
func TestPagesAreMadeInTurns(t *testing.T) {
	t.Parallel()
	var now, most atomic.Int64
	enough := make(chan struct{})
	api := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := now.Add(1)
		defer now.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		if n == console.MaxPages {
			select {
			case <-enough:
			default:
				close(enough)
			}
		}
		<-enough // nobody goes on until so many are there
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"items": []}`)
	})
	h, err := console.Handler(console.Options{API: api})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 5 * console.MaxPages {
		all.Go(func() {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("GET", "http://127.0.0.1/console/schedules", nil))
			if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "No schedule") {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
	all.Wait()
	if m := most.Load(); m != console.MaxPages {
		t.Errorf("%d pages at once, not %d", m, console.MaxPages)
	}
}

// slow is an identity provider that does not answer.
type slow struct{ came, leave chan struct{} }

func (s slow) Of(*http.Request) (bearer, name string, groups []string) { return "", "", nil }
func (s slow) Login(w http.ResponseWriter, r *http.Request) error {
	s.came <- struct{}{}
	<-s.leave
	return nil
}
func (s slow) Callback(w http.ResponseWriter, r *http.Request) error { return s.Login(w, r) }
func (s slow) Logout(http.ResponseWriter, *http.Request) error       { return nil }

// Those who wait for the identity provider keep no page from those who are in.
func TestLoginsKeepNoPageWaiting(t *testing.T) {
	t.Parallel()
	api := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"items": []}`)
	})
	s := slow{make(chan struct{}), make(chan struct{})}
	h, err := console.Handler(console.Options{API: api, Logins: s})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range console.MaxLogins {
		path := []string{"/console/login", "/console/login/callback?code=x"}[i%2]
		all.Go(func() { h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "http://127.0.0.1"+path, nil)) })
	}
	for range console.MaxPages { // as many as there may be pages, at least
		<-s.came
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "http://127.0.0.1/console/schedules", nil).WithContext(ctx))
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "No schedule") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	close(s.leave)
	for range console.MaxLogins - console.MaxPages {
		<-s.came
	}
	all.Wait()
}

// Those who compare versions, migrate or rewind keep no page from anybody.
func TestSlowPagesKeepNoOtherWaiting(t *testing.T) {
	t.Parallel()
	came, leave := make(chan struct{}), make(chan struct{})
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := r.URL.Path; strings.Contains(p, "/diff/") || strings.HasSuffix(p, "/migrations") || strings.HasSuffix(p, "/rewind") {
			came <- struct{}{}
			<-leave
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"items": []}`)
	})
	h, err := console.Handler(console.Options{API: api})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range max(console.MaxPages, console.MaxSlow) {
		method, path, _ := strings.Cut([]string{
			"GET /console/definitions/a/b/1/compare/2", "POST /console/definitions/a/b/1/compare/2", "GET /console/instances/i/rewind?to=1",
		}[i%3], " ")
		all.Go(func() { h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(method, "http://127.0.0.1"+path, nil)) })
		<-came
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "http://127.0.0.1/console/schedules", nil).WithContext(ctx))
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "No schedule") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	close(leave)
	all.Wait()
}

func TestAConsoleNeedsAnAPI(t *testing.T) {
	t.Parallel()
	if _, err := console.Handler(console.Options{}); err == nil {
		t.Error("a console of nothing")
	}
}

// What is not counted to the end says so.
func TestCountsOfALifecycleAreBounded(t *testing.T) {
	t.Parallel()
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		q := r.URL.Query()
		switch {
		case strings.HasSuffix(r.URL.Path, "/source"):
			_, _ = io.WriteString(w, `{"states": {"A": {}}}`)
		case q.Get("status") == "waiting" && q.Get("where") == "" && q.Get("limit") == "500":
			_, _ = io.WriteString(w, `{"items": [{"id": "i", "state": "A", "status": "waiting"}], "next": "x"}`)
		case strings.HasPrefix(r.URL.Path, "/v1/instances"):
			_, _ = io.WriteString(w, `{"items": []}`)
		default:
			_, _ = io.WriteString(w, `{"items": [{"name": "a/b", "version": "1.0.0"}]}`)
		}
	})
	h, err := console.Handler(console.Options{API: api})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "http://127.0.0.1/console/lifecycles/a/b", nil))
	if page := w.Body.String(); !strings.Contains(page, "the newest 500 are counted; there are more") || !strings.Contains(page, "1 here") {
		t.Errorf("%s", page)
	}
}

// The script is the same to those who take it packed and to those who do not.
func TestTheScriptIsPacked(t *testing.T) {
	t.Parallel()
	h, err := console.Handler(console.Options{API: http.NotFoundHandler()})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(takes string) *httptest.ResponseRecorder {
		r, w := httptest.NewRequest("GET", "http://127.0.0.1/console/static/htmx.min.js", nil), httptest.NewRecorder()
		r.Header.Set("Accept-Encoding", takes)
		h.ServeHTTP(w, r)
		return w
	}
	packed, plain := ask("gzip, br"), ask("")
	unpacked, err := gzip.NewReader(packed.Body)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(unpacked)
	if err != nil || string(text) != plain.Body.String() || !strings.HasPrefix(string(text), "var htmx=") || packed.Header().Get("Content-Encoding") != "gzip" || plain.Header().Get("Content-Encoding") != "" {
		t.Errorf("%v, %d bytes and %d, %.40s", err, len(text), plain.Body.Len(), text)
	}
}

// Where there may be more instances than could be looked at, nobody is offered to migrate them
// at once: that would be refused.
func TestAComparisonThatHasNotSeenAllSaysSo(t *testing.T) {
	t.Parallel()
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/v1/me" { // so everything is offered
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = io.WriteString(w, `{"live": 7, "left": 7, "more": true, "positions": [{"pointer": "/do/0/a", "to": "/do/0/a", "instances": 7}]}`)
	})
	h, err := console.Handler(console.Options{API: api})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", "http://127.0.0.1/console/definitions/a/b/1/compare/2", nil))
	page := w.Body.String()
	if !strings.Contains(page, "7, and perhaps more") || !strings.Contains(page, "bulk plan migrate") || strings.Contains(page, "Migrate 7") {
		t.Errorf("%d %s", w.Code, page)
	}
}
