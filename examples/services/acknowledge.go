package main

import (
	"context"
	"net/http"
	"strings"
	"time"
)

// Limits of acknowledging.
const (
	ackTries   = 20
	ackPause   = 250 * time.Millisecond // between them
	ackTimeout = 5 * time.Second        // of one
)

// acknowledge tells the node that what it delivered is processed: path is what
// the node gave with it. It goes on for a while when the node is away; a node
// that hears nothing delivers again.
func (w *world) acknowledge(ctx context.Context, path string) {
	client := http.Client{Timeout: ackTimeout}
	for range ackTries {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.node+path, strings.NewReader(`{"outcome":"processed"}`))
		if err != nil {
			return // the path is none
		}
		req.Header.Set("Content-Type", "application/json")
		if resp, err := client.Do(req); err == nil {
			resp.Body.Close()
			if resp.StatusCode < http.StatusInternalServerError {
				return
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(ackPause):
		}
	}
}
