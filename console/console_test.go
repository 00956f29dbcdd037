package console_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

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

func TestAConsoleNeedsAnAPI(t *testing.T) {
	t.Parallel()
	if _, err := console.Handler(console.Options{}); err == nil {
		t.Error("a console of nothing")
	}
}
