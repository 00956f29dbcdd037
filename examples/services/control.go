package main

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// maxSlow bounds how slow a path can be made.
const maxSlow = 10 * time.Minute

// control is what makes a path misbehave.
type control struct {
	Fail   int    `json:"fail"`   // next requests that fail; -1 = all
	Status int    `json:"status"` // of a failed request; 0 = 503
	Slow   string `json:"slow"`   // delay of every request, such as "1.5s"
	After  bool   `json:"after"`  // fail and be slow after the effect: the answer is lost, not the request
	delay  time.Duration
}

// check completes a control or says what is wrong with it.
func (c *control) check() error {
	if c.Fail < -1 {
		return fmt.Errorf("fail is %d: write a number of requests, or -1 for all", c.Fail)
	}
	if c.Status == 0 {
		c.Status = http.StatusServiceUnavailable
	}
	if c.Status < 300 || c.Status > 599 {
		return fmt.Errorf("status is %d: write one from 300 to 599", c.Status)
	}
	if c.Slow == "" {
		return nil
	}
	d, err := time.ParseDuration(c.Slow)
	if err != nil || d < 0 || d > maxSlow {
		return fmt.Errorf("slow is %q: write a duration from 0s to %s", c.Slow, maxSlow)
	}
	c.delay = d
	return nil
}

// trouble is what a control makes of one request.
type trouble struct {
	status int // 0 = none
	delay  time.Duration
	after  bool
}

// meet takes one request's share of trouble from the control of its path: the
// one set for the path itself, or for the nearest path above it.
func (w *world) meet(path string) trouble {
	for p := path; p != ""; p = p[:max(strings.LastIndexByte(p, '/'), 0)] {
		c := w.controls[p]
		if c == nil {
			continue
		}
		t := trouble{delay: c.delay, after: c.After}
		if c.Fail != 0 {
			t.status = c.Status
		}
		if c.Fail > 0 {
			c.Fail--
		}
		return t
	}
	return trouble{}
}

func (w *world) setControl(path string, c *control) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c == nil {
		delete(w.controls, path)
		return
	}
	w.controls[path] = c
}

func (w *world) allControls() map[string]control {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := map[string]control{}
	for path, c := range w.controls {
		all[path] = *c
	}
	return all
}
