package scenarios_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"

	"github.com/cucumber/godog"
)

// sink is an HTTP server outside that gets CloudEvents.
type sink struct {
	server *httptest.Server
	mu     sync.Mutex
	bodies [][]byte
	refuse int // this many requests
}

// ServeHTTP keeps an event.
func (s *sink) ServeHTTP(rw http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || req.Header.Get("Content-Type") != "application/cloudevents+json" || s.refuse > 0 {
		s.refuse--
		rw.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	s.bodies = append(s.bodies, body)
}

func (s *sink) address() *url.URL {
	if s == nil {
		return nil
	}
	u, err := url.Parse(s.server.URL)
	if err != nil {
		panic(err) // a server names itself rightly
	}
	return u
}

// lifecycles are the steps about lifecycle events.
func (w *world) lifecycles(sc *godog.ScenarioContext) {
	sc.Step(`^a sink gets the lifecycle events$`, func() {
		w.sink = &sink{}
		w.sink.server = httptest.NewServer(w.sink)
		w.function("f")
		w.function("g")
	})
	sc.Step(`^the sink refuses the first (\d+) events$`, func(n int) { w.sink.refuse = n })
	sc.Step(`^the sink has got, of "([^"]+)":$`, func(id string, want *godog.DocString) error {
		return eventually(func() error { return w.sink.has(id, strings.TrimSpace(want.Content)) })
	})
}

// lifecycleEvent is what the steps look at in an event.
type lifecycleEvent struct {
	SpecVersion string `json:"specversion"`
	ID          string `json:"id"`
	Source      string `json:"source"`
	Subject     string `json:"subject"`
	Type        string `json:"type"`
	Sequence    string `json:"sequence"`
	Data        struct {
		Name     string          `json:"name"`
		Workflow string          `json:"workflow"`
		Task     string          `json:"task"`
		Keys     json.RawMessage `json:"correlationKeys"`
		Error    struct {
			Status int `json:"status"`
		} `json:"error"`
	} `json:"data"`
}

func (e lifecycleEvent) String() string {
	s := strings.TrimSuffix(strings.TrimPrefix(e.Type, "io.serverlessworkflow."), ".v1")
	if e.Data.Task != "" {
		s += " " + e.Data.Task
	}
	if e.Data.Error.Status != 0 {
		s += fmt.Sprint(" ", e.Data.Error.Status)
	}
	if len(e.Data.Keys) > 0 {
		s += " " + string(e.Data.Keys)
	}
	return s
}

// has compares the events of an instance, in the order in which each came
// first, and checks that their sequence says the same.
func (s *sink) has(id, want string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := map[string]bool{}
	var got []string
	last := ""
	for _, body := range s.bodies {
		var e lifecycleEvent
		if err := json.Unmarshal(body, &e); err != nil {
			return fmt.Errorf("%s: %w", body, err)
		}
		if e.Subject != id || seen[e.Source+" "+e.ID] {
			continue
		}
		seen[e.Source+" "+e.ID] = true
		got = append(got, e.String())
		named := strings.Contains(e.Data.Name+e.Data.Workflow, "-"+id+".t")
		if e.SpecVersion != "1.0" || e.ID == "" || !named || e.Sequence <= last {
			return fmt.Errorf("after sequence %s came %s", last, body)
		}
		last = e.Sequence
	}
	if all := strings.Join(got, "\n"); all != want {
		return fmt.Errorf("of %d events came\n%s", len(s.bodies), all)
	}
	return nil
}
