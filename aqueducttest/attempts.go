package aqueducttest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	jsonv2 "github.com/go-json-experiment/json"
)

// job is a command that stubs perform, as a node performs it.
type job struct {
	command  engine.Command
	call     Call
	failures int  // attempts before the next one
	unknown  bool // one of them may have done it without an answer
	open     bool // or with an answer that does not say that it has not
}

// command has stubs perform a command.
func (w driver) command(e engine.Entry) {
	w.t.Helper()
	j := &job{command: *e.Command, call: Call{Name: e.Command.Target, Input: e.Command.Input, Pointer: e.Command.Pointer, Key: e.Command.Key}}
	j.call.inside = engine.Inside(j.call.Name)
	var request struct {
		Method string `json:"method"`
		URI    string `json:"uri"`
	}
	if j.call.Name == activity.TargetHTTP && jsonv2.Unmarshal(j.call.Input, &request) == nil {
		uri, _, _ := strings.Cut(request.URI, "?")
		j.call.Name, j.call.http = strings.ToUpper(request.Method)+" "+uri, true
	}
	w.attempt(j)
}

// attempt is the next attempt at a command.
func (w driver) attempt(j *job) {
	w.t.Helper()
	c := j.call
	c.At, c.Attempt = w.now, j.failures+1
	w.calls = append(w.calls, c)
	if j.command.Token == "" { // nobody waits for an answer
		return
	}
	s := w.stub(c)
	if s == nil {
		return
	}
	a := s.next()
	limit := j.command.Timeout
	if limit == 0 {
		limit = activity.DefaultTimeout
	}
	switch {
	case j.command.Ack > 0 && a.never:
		return
	case j.command.Ack <= 0 && (a.never || a.after >= limit):
		a.after, a.do = limit, func(Call) (any, *engine.Failure) { return nil, overdue(c, limit) }
	}
	v, failure := a.do(c)
	output := json.RawMessage("null")
	if failure == nil {
		output = w.json(v)
	}
	end := func() { w.ended(j, output, failure) }
	if a.after > 0 {
		w.due = append(w.due, pending{w.now.Add(a.after), j.command.Token, end})
		return
	}
	w.ready = append(w.ready, end)
}

// overdue is the failure of an attempt that its node has given up.
func overdue(c Call, limit time.Duration) *engine.Failure {
	detail := fmt.Sprintf("function %q did not answer within %s", c.Name, limit)
	if c.http {
		detail = fmt.Sprintf("%s: no complete answer within %s", c.Name, limit)
	}
	return &engine.Failure{
		Error: snapshot.Error{Type: activity.TypeTimeout, Status: http.StatusRequestTimeout, Title: "timeout", Detail: detail},
		Retry: true, Unknown: true,
	}
}

// known is the failure of a call of which nothing is left open, and that is not tried again: its
// consumer knows what it did, and a step in the transaction is rolled back.
func (j *job) known(e snapshot.Error) *engine.Failure {
	if j.call.inside {
		e.Instance = j.command.Pointer // a node says where at once
	}
	return &engine.Failure{Error: e}
}

// ended gives the workflow what came of an attempt, or makes another one: there
// is one budget of retries, the author's where there is one for the failure, else
// the node's.
func (w driver) ended(j *job, output json.RawMessage, f *engine.Failure) {
	w.t.Helper()
	token := j.command.Token
	if _, waits := w.snap.Wait(token); !waits {
		return
	}
	if f != nil && (j.command.Ack > 0 || j.call.inside) {
		f = j.known(f.Error)
	}
	payload := map[string]any{"output": output}
	if f != nil {
		j.unknown, j.open = j.unknown || f.Unknown, j.open || f.Open
		payload = map[string]any{"error": f.Error}
		if j.unknown {
			payload["unknown"] = true
		}
		if j.open {
			payload["open"] = true
		}
	}
	if f != nil && f.Retry && j.failures+1 < w.policy.WithDefaults().MaxAttempts {
		authors, err := engine.Retries(w.def, w.snap, token, f.Error, w.input(signal.Envelope{}))
		if err != nil {
			w.t.Fatalf("aqueducttest: %v", err)
		}
		if !authors {
			j.failures++
			delay := max(w.policy.Backoff(j.failures, j.command.Key), f.After)
			w.due = append(w.due, pending{w.now.Add(delay), token, func() { w.attempt(j) }})
			return
		}
	}
	w.deliver(w.signal(signal.TaskCompleted, token, payload, ""))
}
