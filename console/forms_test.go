package console_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/console"
)

// emptyConsole is that of a node that has nothing.
func emptyConsole(t *testing.T) http.Handler {
	t.Helper()
	api := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"items": []}`)
	})
	h, err := console.Handler(console.Options{API: api})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// Who sends a form slowly, or a body where there is no form, keeps no page from anybody, nor
// what pages need; and a form that has arrived is read as it was sent.
func TestFormsThatDoNotArriveKeepNoPageWaiting(t *testing.T) {
	t.Parallel()
	h := emptyConsole(t)
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	t.Cleanup(s.CloseClientConnections)
	for i := range 3 * 2 * console.MaxPages {
		what := []string{"POST /console/who", "POST /console/bulk/x/run", "GET /console/schedules"}[i%3]
		c, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		if _, err := io.WriteString(c, what+" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || !strings.Contains(line, " 100 ") { // it is being read
			t.Fatalf("%q %v", line, err)
		}
	}
	c := http.Client{Timeout: 9 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, path := range []string{"/console/static/console.css", "/console/schedules"} {
		r, err := c.Get(s.URL + path)
		if err != nil || r.StatusCode != http.StatusOK {
			t.Fatal(path, r, err)
		}
		_ = r.Body.Close()
	}
	r, err := c.Post(s.URL+"/console/who", "application/x-www-form-urlencoded", strings.NewReader("user=ann&groups=clerks"))
	if err != nil || r.StatusCode != http.StatusSeeOther || !strings.Contains(r.Header.Get("Set-Cookie"), "ann|clerks") {
		t.Fatal(r, err)
	}
	_ = r.Body.Close()
}

// A form that is too large is refused on its page.
func TestAFormIsBounded(t *testing.T) {
	t.Parallel()
	h := emptyConsole(t)
	r := httptest.NewRequest("POST", "http://127.0.0.1/console/definitions", strings.NewReader("source="+strings.Repeat("a", console.MaxFormBytes)))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusRequestEntityTooLarge || !strings.Contains(w.Body.String(), "a form has at most") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// bounded is an answer that knows until when it must have been read.
type bounded struct {
	*httptest.ResponseRecorder
	until time.Time
}

func (b *bounded) SetWriteDeadline(until time.Time) error {
	b.until = until
	return nil
}

// A page that nobody reads gives its place back soon.
func TestAPageIsReadWithinItsTime(t *testing.T) {
	t.Parallel()
	h := emptyConsole(t)
	w := &bounded{ResponseRecorder: httptest.NewRecorder()}
	h.ServeHTTP(w, httptest.NewRequest("GET", "http://127.0.0.1/console/schedules", nil))
	if w.Code != http.StatusOK || w.until.IsZero() || time.Until(w.until) > 10*time.Second {
		t.Errorf("%d, until %s", w.Code, w.until)
	}
}

// A form that is shown again, for its request may have been done, asks for the same.
func TestAFormThatIsShownAgainAsksForTheSame(t *testing.T) {
	t.Parallel()
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodPost {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = io.WriteString(w, `{"status": 503, "code": "store.outcome-unknown", "title": "t", "detail": "d"}`)
			return
		}
		_, _ = io.WriteString(w, `{"items": [], "id": "i", "status": "waiting", "may": ["signal-instance", "trigger-event"]}`)
	})
	h, err := console.Handler(console.Options{API: api})
	if err != nil {
		t.Fatal(err)
	}
	for path, form := range map[string]string{
		"/instances/i/signal": "request=r-1&type=paid", "/lifecycles/shop/loan/trigger": "request=r-1&reference=L&event=submit",
	} {
		r := httptest.NewRequest("POST", "http://127.0.0.1/console"+path, strings.NewReader(form))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), `name="request" value="r-1"`) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// What people write is sent as they have written it: around JSON and names alone blanks are taken away.
func TestTextsKeepTheirBlanks(t *testing.T) {
	t.Parallel()
	var asked, why string
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			body, _ := io.ReadAll(r.Body)
			asked, why = string(body), r.Header.Get("X-Aqueduct-Reason")
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id": "k", "kind": "nobody", "may": [], "form": {"schema": {"properties": {"s": {"type": "string"}, "n": {"type": "number"}, "none": {"type": "string"}}}}}`)
	})
	h, err := console.Handler(console.Options{API: api})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, form, asks, why string }{
		{"/tasks/k/comment", "comment=++a%0D%0A+b+", `"text":"  a\n b "`, ""},
		{"/tasks/k/complete", "field.s=+,+&field.n=+7+&field.none=", `"data":{"n":7,"s":" , "}`, ""},
		{"/tasks/k/complete", "field.s=+", `"data":{"s":" "}`, ""},
		{"/tasks/k/delegate", "to=+bob+", `"to":"bob"`, ""},
		{"/dead-letters/k/discard", "sure=yes&after=0&why=++CHG-17+", "", "  CHG-17 "},
		{"/dead-letters/k/edit", "after=0&body=+{}+&why=+", "", ""},
		{"/instances/plan?status=faulted", "operation=retry&why=+so", `"status":"faulted"`, " so"},
	} {
		r := httptest.NewRequest("POST", "http://127.0.0.1/console"+c.path, strings.NewReader(c.form))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		asked, why = "", ""
		if h.ServeHTTP(w, r); w.Code != http.StatusSeeOther || !strings.Contains(asked, c.asks) || why != c.why {
			t.Errorf("%s: %d, asked %s because %q: %s", c.path, w.Code, asked, why, w.Body)
		}
	}
}
