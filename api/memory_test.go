package api

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aqueduct-engine/aqueduct/memory"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// TestBusyNode: a request for whose body, or for what it reads, there is no
// memory waits a bounded time, and is told when to come again; the node says
// meanwhile that it lives. A request that finds memory gives all of it back, and
// most of it before a slow client has read the answer.
func TestBusyNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		budget := memory.New(512 << 20)
		b := &node{snap: snapshot.Snapshot{InstanceID: "i"}}
		h := within(t, b, budget)
		requests := []struct {
			method, path, body string
			pool               *memory.Pool
		}{
			{http.MethodPost, "/v1/instances/i/signals", `{"type":"t"}`, budget.Requests},
			{http.MethodPost, "/v1/instances/i/operations", `{"operation":"suspend"}`, budget.Reads},
			{http.MethodGet, "/v1/definitions/a/b/1/source", "", budget.Reads},
		}
		for _, r := range requests {
			part, err := r.pool.Take(t.Context(), r.pool.Size())
			if err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			w := call(h, r.method, r.path, r.body, "Content-Type", "application/json")
			var p struct{ Code string }
			err = json.Unmarshal(w.Body.Bytes(), &p)
			if w.Code != http.StatusServiceUnavailable || p.Code != memory.CodeBusy || w.Header().Get("Retry-After") != "1" || time.Since(begun) != memory.Wait {
				t.Errorf("%s: %d %s after %s (%v)", r.path, w.Code, w.Body, time.Since(begun), err)
			}
			if w := call(h, http.MethodGet, "/healthz", ""); w.Code != http.StatusOK {
				t.Errorf("a busy node is not live: %d", w.Code)
			}
			part.Release()
			r := httptest.NewRequest(r.method, "http://localhost"+r.path, strings.NewReader(r.body))
			r.Header.Set("Content-Type", "application/json")
			out := &slow{ResponseRecorder: httptest.NewRecorder(), read: budget.Reads}
			if h.ServeHTTP(out, r); out.Code >= 500 && out.Code != http.StatusInternalServerError || out.taken > 1<<20 {
				t.Errorf("%s with memory: %d, %d bytes while it is written", r.URL, out.Code, out.taken)
			}
		}
		budget.Each(func(name string, p *memory.Pool) {
			if p.Used() != 0 {
				t.Errorf("%s: %d taken", name, p.Used())
			}
		})
	})
}

// slow is a client; it notes what is taken while it reads.
type slow struct {
	*httptest.ResponseRecorder
	read  *memory.Pool
	taken int64
}

func (s *slow) Write(b []byte) (int, error) {
	s.taken = s.read.Used()
	return s.ResponseRecorder.Write(b)
}
