package api

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aqueduct-engine/aqueduct/memory"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
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
			{http.MethodPost, "/v1/instances", `{"definition":"a/b","input":1}`, budget.Reads},
			{http.MethodPost, "/v1/instances/i/rewind", `{"to":1}`, budget.Reads},
			{http.MethodGet, "/v1/definitions/a/b/1/source", "", budget.Reads},
		}
		for _, r := range requests {
			part, err := r.pool.Take(t.Context(), r.pool.Size())
			if err != nil {
				t.Fatal(err)
			}
			b.acts = 0
			begun := time.Now()
			w := call(h, r.method, r.path, r.body, "Content-Type", "application/json")
			var p struct{ Code string }
			err = json.Unmarshal(w.Body.Bytes(), &p)
			if w.Code != http.StatusServiceUnavailable || p.Code != memory.CodeBusy || w.Header().Get("Retry-After") != "1" || time.Since(begun) != memory.Wait {
				t.Errorf("%s: %d %s after %s (%v)", r.path, w.Code, w.Body, time.Since(begun), err)
			}
			if b.acts > 0 && r.pool == budget.Reads {
				t.Errorf("%s was done, and is to be tried again", r.path)
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

// rowOf are instances that are all the same.
type rowOf struct {
	backend.InstanceReader
	row projections.Instance
}

func (r rowOf) Instance(_ context.Context, id string) (projections.Instance, error) {
	r.row.ID = id
	return r.row, nil
}

// TestWhatIsDoneIsNotAskedForAgain: an answer whose instance cannot be shown says what was
// done, with what the row says, or the id alone: who was told to try again would do it twice.
func TestWhatIsDoneIsNotAskedForAgain(t *testing.T) {
	t.Parallel()
	busy := func() error {
		return problem.New(problem.Unavailable, memory.CodeBusy, "no memory").WithHint("try again")
	}
	row := rowOf{row: projections.Instance{Definition: "shop/loan", DefVersion: "1", Status: "faulted", Position: "pay", Version: 7, ErrorType: "e"}}
	for _, c := range []struct {
		method, path, body string
		reader             backend.InstanceReader
		status             int
		says               string
	}{
		{"POST", "/v1/instances/i/operations", `{"operation":"skip"}`, row, 200, `"id":"i","definition":"shop/loan"`},
		{"POST", "/v1/instances/i/operations", `{"operation":"skip"}`, gone{}, 200, `"id":"i"`},
		{"POST", "/v1/instances", `{"definition":"shop/loan","instanceId":"i"}`, row, 201, `"status":"faulted"`},
		{"POST", "/v1/instances", `{"definition":"shop/loan","instanceId":"i"}`, gone{}, 201, `"disposition":"applied"`},
		{"POST", "/v1/instances?wait=1s", `{"definition":"shop/loan","instanceId":"i"}`, gone{}, 201, `"id":"i"`},
		{"POST", "/v1/lifecycles/shop/loan/L/events", `{"event":"submit"}`, row, 201, `"disposition":"applied","state":"pay","status":"faulted","error":{"type":"e"}`},
		{"POST", "/v1/lifecycles/shop/loan/L/events", `{"event":"submit"}`, gone{}, 201, `"disposition":"applied","state":"","status":""`},
		{"POST", "/v1/instances/i/rewind", `{"to":1}`, row, 200, `"stateVersion":7`},
	} {
		b := &node{unread: busy, snap: snapshot.Snapshot{InstanceID: "i", Position: 1}}
		b.InstanceReader, b.StreamReader = c.reader, counted{}
		w := call(handler(t, b), c.method, c.path, c.body)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.says) || b.acts != 1 {
			t.Errorf("%s with %T: %d %s, done %d times", c.path, c.reader, w.Code, w.Body, b.acts)
		}
	}
}

// gone are rows that cannot be read.
type gone struct{ backend.InstanceReader }

func (gone) Instance(context.Context, string) (projections.Instance, error) {
	return projections.Instance{}, store.ErrNotFound
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
