package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/api/client"
)

// A feed has each dead letter that comes once, one that was committed late too, and
// none that was there before, whatever is discarded meanwhile.
func TestAFeedHasEachNewDeadLetterOnce(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	page := func(ids string) []client.DeadLetter {
		var list []client.DeadLetter
		for _, id := range strings.Fields(ids) { // a letter is a second of its own
			list = append(list, client.DeadLetter{ID: id, DiedAt: at.Add(time.Duration(id[0]-'a') * time.Second)})
		}
		return list
	}
	f := &deadLetterFeed{seen: map[string]time.Time{}}
	old := client.DeadLetter{ID: "old", DiedAt: at.Add(-time.Hour)}
	for i, step := range []struct {
		list []client.DeadLetter
		want string
	}{
		{page("c a"), ""},
		{page("e d c a"), "d e"},
		{page("e d c b a"), "b"},
		{append(page("f e"), old), "f"},
		{nil, ""},
		{page("g"), "g"},
	} {
		var got []string
		for _, d := range f.fresh(step.list) {
			got = append(got, d.ID)
		}
		if !slices.Equal(got, strings.Fields(step.want)) {
			t.Errorf("step %d: got %q, want %q", i, got, step.want)
		}
	}
}

// restarting is a node whose dead letters are got as it goes down, while it is away,
// while it comes up, and when it is there again with more of them than a page has.
type restarting struct {
	mu    sync.Mutex
	asked int
	died  time.Time
}

func (r *restarting) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	deadLetter := func(i int) string {
		return fmt.Sprintf(`{"id":"l%d","queue":"signal","reason":"signal.not-json","diedAt":%q}`, i, r.died.Add(time.Duration(i)*time.Hour).Format(time.RFC3339))
	}
	answer := func(next string, ids ...int) {
		var items []string
		for _, i := range ids {
			items = append(items, deadLetter(i))
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"items":[%s],"next":%q}`, strings.Join(items, ","), next)
	}
	after := req.URL.Query().Get("after")
	switch {
	case r.asked == 1:
		answer("", 1)
	case r.asked == 2:
		answer("", 2, 1)
	case r.asked == 3 || r.asked == 4:
		panic(http.ErrAbortHandler) // the connection breaks off
	case r.asked == 5:
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, `{"status":503,"code":"store.unreachable","detail":"the database cannot be reached"}`)
	case after == "":
		answer("p2", 6, 5)
	case after == "p2":
		answer("p3", 4, 3)
	default:
		answer("", 2, 1)
	}
}

// Who watches dead letters sees each once, also those that died while no node answered.
func TestAWatchGoesOnOverARestart(t *testing.T) {
	t.Parallel()
	node := httptest.NewServer(&restarting{died: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)})
	defer node.Close()
	var out, complaints bytes.Buffer
	if code := Run(t.Context(), []string{"--server", node.URL, "dlq", "watch", "--count", "5"}, nil, &out, &complaints); code != 0 {
		t.Fatalf("exit %d: %s", code, &complaints)
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		got = append(got, strings.Fields(line)[1])
	}
	if want := []string{"l2", "l3", "l4", "l5", "l6"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if n := strings.Count(complaints.String(), "asked again"); n != 1 || !strings.Contains(complaints.String(), "api.unreachable") {
		t.Errorf("%d complaints: %s", n, &complaints)
	}
}

// Where one of those that are named cannot be replayed, or discarded, it is said what was done
// before, and what is left.
func TestWhatWasDoneIsSaidWhereOneFails(t *testing.T) {
	t.Parallel()
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		status := map[string]int{"bad": http.StatusNotFound, "away": http.StatusServiceUnavailable}[strings.Split(r.URL.Path, "/")[3]]
		if status == 0 {
			fmt.Fprint(w, `{"edit":0}`)
			return
		}
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"status":%d,"code":"test.refused","detail":"no"}`, status)
	}))
	defer node.Close()
	for _, c := range []struct {
		args, want string
		code       int
	}{
		{"--json dlq replay a bad c d", `"replayed": 1, "edited": 0, "gone": 0, "failed": 1, "left": 2 }`, exitNotFound},
		{"--json dlq replay a away c", `"replayed": 1, "edited": 0, "gone": 0, "failed": 0, "left": 2 }`, exitFailed},
		{"dlq replay a bad c", "replayed 1, of these 0 as they were edited; 0 were gone, 1 failed, 1 are left", exitNotFound},
		{"dlq replay bad", "", exitNotFound},
		{"--json dlq discard a bad c d", `"discarded": 1, "failed": 1, "left": 2 }`, exitNotFound},
		{"--json dlq discard a b", `"discarded": 2, "failed": 0, "left": 0 }`, exitOK},
		{"dlq discard a bad c", "discarded 1; 1 failed, 1 are left", exitNotFound},
		{"dlq discard a b", "discard: b", exitOK},
		{"dlq discard bad", "", exitNotFound},
	} {
		var out, complaints bytes.Buffer
		code := Run(t.Context(), append([]string{"--server", node.URL}, strings.Fields(c.args)...), nil, &out, &complaints)
		if got := strings.Join(strings.Fields(out.String()), " "); code != c.code || !strings.HasSuffix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: exit %d: %s\n%s", c.args, code, got, &complaints)
		}
	}
}
