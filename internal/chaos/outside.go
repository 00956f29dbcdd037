package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"

	"github.com/aqueduct-engine/aqueduct/internal/chaos/judge"
)

// mode is how the outside behaves for a while.
type mode string

const (
	healthy mode = ""
	stalls  mode = "stall" // it takes seconds, and then does its work
	refuses mode = "503"   // it says that it is too busy, and does nothing
	drops   mode = "drop"  // it closes the connection, and does nothing
	loses   mode = "lose"  // it does its work and closes the connection
)

var sick = []mode{stalls, refuses, drops, loses}

// stallTime is how long a call takes while the outside stalls.
const stallTime = 3 * time.Second

// outside is a host of the world: it performs effects, and remembers every
// request that it has got.
type outside struct {
	server *httptest.Server
	seen   *calls

	mu   sync.Mutex
	mode mode
}

// calls is what all hosts have got.
type calls struct {
	mu      sync.Mutex
	list    []judge.Call
	applied map[[2]string]int // by work and effect
	came    map[[2]string]chan struct{}
}

func newOutside(seen *calls) *outside {
	o := &outside{seen: seen}
	o.server = httptest.NewServer(o)
	return o
}

func (o *outside) set(m mode) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mode = m
}

// ServeHTTP performs an effect: {"effect": NAME, "of": WORK}. With "fails" of
// n, the first n performances are answered with 422.
func (o *outside) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, err := io.ReadAll(r.Body)
	var in struct {
		Effect string `json:"effect"`
		Of     string `json:"of"`
		Fails  int    `json:"fails"`
	}
	if err == nil {
		err = json.Unmarshal(raw, &in)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	sum := sha256.Sum256(raw)
	call := judge.Call{Key: r.Header.Get("Idempotency-Key"), Of: in.Of, Effect: in.Effect, Body: hex.EncodeToString(sum[:]), Applied: true}
	o.mu.Lock()
	m := o.mode
	o.mu.Unlock()
	switch m {
	case stalls:
		select {
		case <-time.After(stallTime):
		case <-r.Context().Done():
		}
	case refuses, drops:
		call.Applied = false
	}
	call.Answered = m == healthy || m == stalls
	n := o.seen.add(call)
	switch {
	case m == refuses:
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too busy", http.StatusServiceUnavailable)
	case m == drops || m == loses:
		panic(http.ErrAbortHandler)
	case n <= in.Fails:
		http.Error(w, "not yet", http.StatusUnprocessableEntity)
	default:
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"done": %q}`, in.Effect)
	}
}

// add remembers a call, and returns how often the effect was performed so far.
func (c *calls) add(call judge.Call) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	call.At = time.Now()
	c.list = append(c.list, call)
	at := [2]string{call.Of, call.Effect}
	if call.Applied {
		c.applied[at]++
		if c.applied[at] == 1 {
			close(c.first(at))
		}
	}
	return c.applied[at]
}

// first is closed when an effect is performed for the first time. The lock is
// held.
func (c *calls) first(at [2]string) chan struct{} {
	if c.came[at] == nil {
		c.came[at] = make(chan struct{})
	}
	return c.came[at]
}

// wait gives a channel that is closed when the work has had the effect.
func (c *calls) wait(work, effect string) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.first([2]string{work, effect})
}

func (c *calls) all() []judge.Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]judge.Call(nil), c.list...)
}
