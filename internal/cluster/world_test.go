package cluster

import (
	"encoding/json"
	"fmt"
	"net/http"
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
	var of struct {
		Instance string `json:"instance"`
	}
	if err := json.NewDecoder(r.Body).Decode(&of); err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	instance := of.Instance
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
