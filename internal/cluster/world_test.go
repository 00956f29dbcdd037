package cluster

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
)

// world counts effects: calls under one key are one effect.
type world struct {
	mu       sync.Mutex
	effects  map[string]map[string]bool // keys by instance
	attempts int
}

func (w *world) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("Idempotency-Key")
	instance, _, _ := strings.Cut(key, "/")
	w.mu.Lock()
	defer w.mu.Unlock()
	w.attempts++
	if w.effects[instance] == nil {
		w.effects[instance] = map[string]bool{}
	}
	w.effects[instance][key] = true
	rw.Header().Set("Content-Type", "application/json")
	fmt.Fprint(rw, `{"told": true}`)
}

// counts is how many effects each instance has had.
func (w *world) counts() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := map[string]int{}
	for id, keys := range w.effects {
		n[id] = len(keys)
	}
	return n
}
