package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/aqueduct-engine/aqueduct/internal/await"
)

// banks are the outside that pays: each idempotent by key, and not well when a
// script wants it so. It pays all the same; what is lost is its answer.
type banks struct {
	mu     sync.Mutex
	byName map[string]*bank
}

type bank struct {
	fails    map[string]int    // next requests, by path, that are answered with 503 after they were done
	holds    string            // path of requests that are done, and not answered
	bodies   map[string]string // by path and key
	paid     map[string]int    // effects by path
	requests map[string]int    // by path
	refused  []string          // keys that came without a name, or with another body
}

func (b *banks) of(name string) *bank {
	if b.byName[name] == nil {
		b.byName[name] = &bank{fails: map[string]int{}, bodies: map[string]string{}, paid: map[string]int{}, requests: map[string]int{}}
	}
	return b.byName[name]
}

func (b *banks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // it has not come as a whole
	}
	name, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/bank/"), "/")
	status, holds := b.pay(name, "/"+path, r.Header.Get("Idempotency-Key"), string(body))
	if holds {
		<-r.Context().Done()
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]int{"status": status}) // the caller may have left
}

// pay does what is asked once a key, and says how it is answered.
func (b *banks) pay(name, path, key, body string) (status int, holds bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.of(name)
	a.requests[path]++
	at := path + " " + key
	before, done := a.bodies[at]
	switch {
	case key == "", done && before != body:
		a.refused = append(a.refused, at)
		return http.StatusUnprocessableEntity, false
	case !done:
		a.bodies[at] = body
		a.paid[path]++
	}
	if a.fails[path] > 0 {
		a.fails[path]--
		return http.StatusServiceUnavailable, false
	}
	return http.StatusOK, a.holds == path
}

// said is what a bank has done at a path.
func (b *banks) said(name, path string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.of(name)
	out := fmt.Sprintf("paid %d, asked %d", a.paid[path], a.requests[path])
	if len(a.refused) > 0 {
		out += fmt.Sprintf(", refused %q", a.refused)
	}
	return out
}

// command is bank NAME fails PATH N | holds PATH | well | done PATH PAID ASKED. The last
// waits until the bank was asked that often, and has paid as much; ASKED+ is so
// often or more.
func (b *banks) command(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: bank NAME fails PATH N | holds PATH | well | done PATH PAID ASKED")
	}
	if args[1] == "done" && len(args) == 5 {
		b.wait(ts, args[0], args[2], args[3], args[4])
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.of(args[0])
	clear(a.fails)
	a.holds = ""
	switch {
	case args[1] == "fails" && len(args) == 4:
		times, err := strconv.Atoi(args[3])
		ts.Check(err)
		a.fails[args[2]] = times
	case args[1] == "holds" && len(args) == 3:
		a.holds = args[2]
	case args[1] != "well":
		ts.Fatalf("a bank does not %v", args[1:])
	}
}

func (b *banks) wait(ts *testscript.TestScript, name, path, paid, asked string) {
	exactly, least := "paid "+paid+", asked "+asked, strings.HasSuffix(asked, "+")
	for w := new(await.Wait); ; {
		said := b.said(name, path)
		var got, times, want int
		_, _ = fmt.Sscanf(said, "paid %d, asked %d", &got, &times)
		_, err := fmt.Sscan(strings.TrimSuffix(asked, "+"), &want)
		ts.Check(err)
		if said == exactly || least && times >= want && said == fmt.Sprintf("paid %s, asked %d", paid, times) {
			return
		}
		if times > want && !least || !w.Again(betweenLooks, said) {
			ts.Fatalf("bank %s %s: %s, want %s", name, path, said, exactly)
		}
	}
}
