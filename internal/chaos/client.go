package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/aqueduct-engine/aqueduct/internal/chaos/judge"
)

// errVoid says that a restored backup has forgotten what is being worked on.
var errVoid = errors.New("forgotten by a restore")

// callTime bounds one request to a node; another node is asked then.
const callTime = 5 * time.Second

// client asks nodes for work and remembers what it was told. It speaks HTTP and
// shares no code with them.
type client struct {
	b    *fixture
	rand *rand.Rand
	name string
	kind string
	n    int
}

// answer is what a node has said.
type answer struct {
	status int
	code   string // of a problem
	body   []byte
}

// ask sends a request until a node has answered it: not with 5xx, which says
// that nothing is known. It may be repeated, for it is idempotent.
func (c *client) ask(ctx context.Context, method, path string, body any) (answer, error) {
	raw, err := json.Marshal(body)
	if err != nil {
		return answer{}, err
	}
	var last error
	for try := 0; ; try++ {
		if ctx.Err() != nil {
			return answer{}, errors.Join(context.Cause(ctx), last)
		}
		if try > 0 {
			c.b.count("request repeated")
			time.Sleep(50 * time.Millisecond)
		}
		base := c.b.someNode(c.rand.IntN(1 << 16))
		if base == "" {
			continue
		}
		a, err := c.once(ctx, method, base+path, raw)
		if err == nil && a.status < 500 && a.status != http.StatusTooManyRequests {
			return a, nil
		}
		if last = err; err == nil {
			c.b.count("answer " + a.code)
			last = fmt.Errorf("%d: %s", a.status, a.body)
		}
	}
}

func (c *client) once(ctx context.Context, method, url string, raw []byte) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(raw))
	if err != nil {
		return answer{}, err
	}
	if method != http.MethodGet {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.b.http.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 4<<20))
	a := answer{status: resp.StatusCode, body: body}
	if a.status >= 400 {
		var p struct{ Code string }
		_ = json.Unmarshal(body, &p) // not a problem: no code
		a.code = p.Code
	}
	return a, err
}

// work is one instance with its client.
type work struct {
	judge.Work
	mu   sync.Mutex
	done bool
}

func (w *work) note(change func(w *judge.Work)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.Work)
}

// run makes one work after the other until ctx ends; then it finishes the one
// that it is at, for as long as finish allows.
func (c *client) run(ctx, finish context.Context) {
	for ctx.Err() == nil {
		c.n++
		w, generation := c.b.begin(fmt.Sprintf("%s-%s-%d", c.kind, c.name, c.n), c.kind)
		during, cancel := context.WithCancelCause(finish)
		stop := context.AfterFunc(generation, func() { cancel(errVoid) })
		err := c.drive(during, w)
		stop()
		cancel(nil)
		c.b.end(w, err)
		switch c.kind {
		case fork, each:
			pause(ctx, time.Duration(500+c.rand.IntN(3000))*time.Millisecond)
		case listening:
			pause(ctx, time.Duration(c.rand.IntN(100))*time.Millisecond)
		}
	}
}

// drive does for one work what its kind asks for, and waits for its end.
func (c *client) drive(ctx context.Context, w *work) error {
	if c.kind == listening {
		return c.publish(ctx, w)
	}
	err := c.accepted(c.ask(ctx, http.MethodPost, "/v1/instances", map[string]any{
		"definition": "chaos/" + c.kind, "instanceId": w.ID, "businessKey": w.ID, "input": map[string]any{"of": w.ID},
	}))
	if err != nil {
		return err
	}
	w.note(func(w *judge.Work) { w.Acked = time.Now() })
	switch c.kind {
	case small:
		err = c.signal(ctx, w, "go", -1)
	case order:
		for n := 0; n < orderSignals && err == nil; n++ {
			err = c.signal(ctx, w, "step", n)
		}
	case mended:
		err = c.fix(ctx, w)
	case human:
		err = c.person(ctx, w)
	}
	if err != nil {
		return err
	}
	return c.ended(ctx, w)
}

// accepted is nil for an answer that says that it is done.
func (c *client) accepted(a answer, err error) error {
	if err == nil && a.status >= 300 {
		return fmt.Errorf("answer %d %s: %s", a.status, a.code, a.body)
	}
	return err
}

func (c *client) ended(ctx context.Context, w *work) error {
	select {
	case <-c.b.seen.wait(w.ID, "end"):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// signal sends and waits until it is acknowledged. One that is numbered counts,
// and has its place in the sequence of the client: it asks any node.
func (c *client) signal(ctx context.Context, w *work, kind string, n int) error {
	body := map[string]any{"type": kind, "data": n, "signalId": fmt.Sprintf("%s-%s-%d", w.ID, kind, n)}
	if n >= 0 {
		body["sender"], body["sequence"] = "chaos-"+c.name, n+1
	}
	a, err := c.ask(ctx, http.MethodPost, "/v1/instances/"+w.ID+"/signals", body)
	if err := c.accepted(a, err); err != nil {
		return fmt.Errorf("signal %d: %w", n, err)
	}
	var got struct{ Disposition string }
	if json.Unmarshal(a.body, &got) == nil {
		c.b.count("signal " + got.Disposition)
	}
	if n >= 0 {
		w.note(func(w *judge.Work) { w.Sent = append(w.Sent, n) })
	}
	return nil
}

// publish begins a work by an event.
func (c *client) publish(ctx context.Context, w *work) error {
	err := c.accepted(c.ask(ctx, http.MethodPost, "/v1/events", map[string]any{
		"specversion": "1.0", "id": w.ID, "source": "chaos", "type": "chaos.heard", "data": map[string]any{"of": w.ID},
	}))
	if err != nil {
		return err
	}
	w.note(func(w *judge.Work) { w.Acked = time.Now() })
	select {
	case <-c.b.seen.wait(w.ID, "end"):
	case <-time.After(answerMax): // the judge will say it
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// answerMax is how long a client waits for what its event began before it
// publishes the next.
const answerMax = 5 * time.Second

// found is what a node shows of an instance.
type found struct {
	Status string
	Output json.RawMessage
	Waits  []struct{ Kind, TaskID string }
}

func (c *client) show(ctx context.Context, id string) (found, error) {
	a, err := c.ask(ctx, http.MethodGet, "/v1/instances/"+url.PathEscape(id), nil)
	if err != nil || a.status == http.StatusNotFound {
		return found{}, err
	}
	var f found
	return f, errors.Join(c.accepted(a, nil), json.Unmarshal(a.body, &f))
}

// fix is an operator who retries what has failed, until it has not.
func (c *client) fix(ctx context.Context, w *work) error {
	for {
		f, err := c.show(ctx, w.ID)
		if err != nil {
			return err
		}
		if f.Status == "completed" {
			return nil
		}
		if f.Status == "faulted" {
			// A conflict says that another request of this client was faster.
			if _, err := c.ask(ctx, http.MethodPost, "/v1/instances/"+w.ID+"/operations", map[string]any{"operation": "retry"}); err != nil {
				return err
			}
			c.b.count("operator retried")
		}
		select {
		case <-c.b.seen.wait(w.ID, "end"):
			return nil
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// person claims the task and completes it, and is told so.
func (c *client) person(ctx context.Context, w *work) error {
	for {
		f, err := c.show(ctx, w.ID)
		if err != nil {
			return err
		}
		for _, t := range f.Waits {
			if t.TaskID == "" {
				continue
			}
			user := fmt.Sprintf("user-%s", c.name)
			path := "/v1/tasks/" + url.PathEscape(t.TaskID)
			if _, err := c.ask(ctx, http.MethodPost, path+"/claim", map[string]any{"user": user, "groups": []string{"chaos"}}); err != nil {
				return err
			}
			a, err := c.ask(ctx, http.MethodPost, path+"/complete", map[string]any{"user": user, "outcome": "yes"})
			if err != nil {
				return err
			}
			if a.status < 300 || a.code == "task.completed" {
				c.b.count("task completed")
				return nil
			}
			c.b.count("answer " + a.code)
		}
		if f.Status == "completed" {
			return nil
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
