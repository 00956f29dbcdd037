package aqueducttest

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// Call is a command that the workflow issued.
type Call struct {
	Name    string          // what a stub is found by: "METHOD URL" of an HTTP call, without the query; else the function
	Input   json.RawMessage // of a function: its arguments; of HTTP: method, uri, headers, query, body
	Pointer string          // of the task
	Key     string          // idempotency key: the same for every attempt and every repetition of one effect
	Attempt int             // at this command, from 1
	At      time.Time

	http   bool
	inside bool // a step of the application, in the transaction of the turn
}

// Body returns the body of an HTTP call, nil when it has none.
func (c Call) Body() json.RawMessage {
	var request struct {
		Body json.RawMessage `json:"body"`
	}
	_ = json.Unmarshal(c.Input, &request) // a function's arguments have no body
	return request.Body
}

// Stub answers calls. Each of Return, Fail, Do and Never adds one answer, to one
// attempt; the last one answers every further call as well.
type Stub struct {
	w       *Workflow
	name    string
	match   *regexp.Regexp
	answers []answer
	used    int
	after   time.Duration
}

type answer struct {
	after time.Duration
	never bool
	do    func(Call) (any, *engine.Failure)
}

// OnCall stubs the calls of a function by its name, or HTTP calls by method
// and URL: "POST https://host/path". A * stands for any characters; the query
// does not count. The stub added last is asked first.
//
// A sub-workflow is stubbed as "run namespace/name".
func (w *Workflow) OnCall(name string) *Stub {
	pattern := strings.ReplaceAll(regexp.QuoteMeta(name), `\*`, `.*`)
	s := &Stub{w: w, name: name, match: regexp.MustCompile("^(?:" + pattern + ")$")}
	w.stubs = append(w.stubs, s)
	return s
}

// Return answers with a value: what the call gives, such as the body of an
// HTTP answer.
func (s *Stub) Return(output any) *Stub {
	s.w.t.Helper()
	raw := s.w.driver.json(output)
	return s.Do(func(Call) (any, error) { return raw, nil })
}

// Fail answers with an error: a standard kind such as "communication" or
// "timeout", or any other type as a URI. For a function it is an error that the
// function raises (activity.Error), and final. For an HTTP call it is judged as
// on a node: a timeout, and a communication error with a status that may pass
// (408, 425, 429, 5xx), have another attempt.
func (s *Stub) Fail(kind string, status int, detail string) *Stub {
	e := snapshot.Error{Type: kind, Status: status, Title: kind, Detail: detail}
	if !strings.Contains(kind, ":") {
		e.Type = engine.ErrorBase + kind
	}
	return s.add(answer{do: func(c Call) (any, *engine.Failure) { return nil, judged(c, e) }})
}

// judged is what a node makes of an error.
func judged(c Call, e snapshot.Error) *engine.Failure {
	f := &engine.Failure{Error: e}
	switch {
	case !c.http:
	case engine.SameType(e.Type, activity.TypeTimeout):
		f.Retry, f.Unknown = true, true
	case engine.SameType(e.Type, activity.TypeCommunication):
		f.Retry, f.Unknown = activity.MayPass(e.Status), activity.LeavesOpen(e.Status)
		f.Open = !f.Unknown && !activity.Refuses(e.Status, "POST")
	}
	return f
}

// Do answers with what a function makes of the call. Its error is what a node
// makes of a registered function's: another attempt may mend it, unless it is an
// [activity.Error] or [activity.Permanent], and [activity.Unknown] says that
// nobody knows what was done. That of a step in the transaction is final, and
// known: a *steps.Failure is raised as it is.
func (s *Stub) Do(answers func(Call) (any, error)) *Stub {
	return s.add(answer{do: func(c Call) (any, *engine.Failure) {
		v, err := answers(c)
		switch {
		case err == nil:
			return v, nil
		case c.inside:
			return nil, raised(err)
		}
		return nil, activity.FailureOf(err)
	}})
}

// raised is what a node makes of the error of a step in the transaction.
func raised(err error) *engine.Failure {
	var own interface { // a *steps.Failure: this package sees no store's
		error
		Raised() *snapshot.Error
	}
	if errors.As(err, &own) {
		return &engine.Failure{Error: *own.Raised()}
	}
	return &engine.Failure{Error: snapshot.Error{
		Type: activity.TypeRuntime, Status: http.StatusInternalServerError, Title: "Step failed", Detail: err.Error(),
	}}
}

// Never does not answer. A node gives an attempt up after its timeout, the
// command's or the 30 seconds of activity.timeout; so does the kit, and so it
// does with an answer that comes after that. A sub-workflow, and the consumer of
// a call that is acknowledged, may take as long as they like.
func (s *Stub) Never() *Stub { return s.add(answer{never: true}) }

// After makes the answer that is added next come that much later.
func (s *Stub) After(d time.Duration) *Stub {
	s.after = d
	return s
}

func (s *Stub) add(a answer) *Stub {
	a.after, s.after = s.after, 0
	s.answers = append(s.answers, a)
	return s
}

// next is the answer to the call that comes now.
func (s *Stub) next() answer {
	a := s.answers[min(s.used, len(s.answers)-1)]
	s.used++
	return a
}

// Calls lists the calls so far, in order, of those that a name as for OnCall
// matches; "" lists all.
func (w *Workflow) Calls(name string) []Call {
	match := (&Workflow{}).OnCall(name).match
	var list []Call
	for _, c := range w.calls {
		if name == "" || match.MatchString(c.Name) {
			list = append(list, c)
		}
	}
	return list
}

// child has a stub play an instance that the workflow starts.
func (w driver) child(env signal.Envelope) {
	w.t.Helper()
	if env.Type == signal.CancelRequest {
		endChild(w, env)
		return
	}
	if env.Type != signal.StartRequest {
		return // a message to another instance
	}
	var start signal.Start
	if err := json.Unmarshal(env.Payload, &start); err != nil {
		w.t.Fatalf("aqueducttest: %v", err)
	}
	c := Call{Name: "run " + start.Definition, Input: start.Input, Attempt: 1, At: w.now}
	token := ""
	for _, f := range w.snap.SubFrames {
		if f.InstanceID == env.InstanceID {
			c.Pointer, token = f.Pointer, f.Token
		}
	}
	w.calls = append(w.calls, c)
	if token == "" {
		return
	}
	s := w.stub(c)
	if s == nil {
		return
	}
	a := s.next()
	if a.never {
		return
	}
	v, failure := a.do(c)
	end := engine.ChildEnd{Child: env.InstanceID}
	if failure == nil {
		end.Output = w.json(v)
	} else {
		end.Error = engine.ChildError(start.Definition, env.InstanceID, failure.Error)
	}
	w.reply(a.after, w.signal(signal.SubWorkflowCompleted, token, end, ""))
}

// endChild has an instance that is told to end, and waited for, say that it has: a stub
// undoes nothing.
func endChild(w driver, env signal.Envelope) {
	w.t.Helper()
	c, err := signal.DecodeCancellation(env.Payload)
	if err != nil {
		w.t.Fatalf("aqueducttest: %v", err)
	}
	if c.Await {
		end := engine.ChildEnd{Child: env.InstanceID, Error: &snapshot.Error{
			Type: engine.ErrorBase + engine.ErrRuntime, Status: 500, Title: "Cancelled", Detail: "it was cancelled",
		}}
		w.reply(0, w.signal(signal.SubWorkflowCompleted, c.Token, end, ""))
	}
}

// reply delivers an answer when it comes.
func (w driver) reply(after time.Duration, env signal.Envelope) {
	if after > 0 {
		w.later(w.now.Add(after), env)
		return
	}
	w.ready = append(w.ready, func() { w.deliver(env) })
}

func (w driver) stub(c Call) *Stub {
	w.t.Helper()
	var names []string
	for i := len(w.stubs) - 1; i >= 0; i-- {
		s := w.stubs[i]
		if s.match.MatchString(c.Name) && len(s.answers) > 0 {
			return s
		}
		if len(s.answers) == 0 {
			names = append(names, s.name+" (which has no answer)")
		} else {
			names = append(names, s.name)
		}
	}
	stubs := "nothing is stubbed"
	if len(names) > 0 {
		stubs = "stubbed are: " + strings.Join(names, ", ")
	}
	w.t.Fatalf("aqueducttest: unexpected call of %s\n  at    %s\n  input %s\n  %s\n  add   w.OnCall(%q).Return(...)",
		c.Name, c.Pointer, c.Input, stubs, c.Name)
	return nil
}

// Event gives the instance an event of a type with data, and goes on. It fails
// the test when no wait takes it: see [Workflow.EarlyEvent].
func (w *Workflow) Event(eventType string, data any) *Workflow {
	w.t.Helper()
	if !w.ListensFor(eventType, data) {
		w.t.Fatalf("aqueducttest: nothing waits for event %s with %s; the instance is %s", eventType, w.driver.json(data), w.driver.where())
	}
	w.driver.deliver(w.driver.signal(signal.ExternalSignal, "", w.driver.cloudEvent(eventType, data), ""))
	w.driver.run()
	return w
}

// EarlyEvent gives the instance an event that nothing waits for yet, as a
// signal to this instance can; it is kept until something does.
func (w *Workflow) EarlyEvent(eventType string, data any) *Workflow {
	w.t.Helper()
	if d := w.driver.deliver(w.driver.signal(signal.ExternalSignal, "", w.driver.cloudEvent(eventType, data), "")); d != engine.Buffered {
		w.t.Fatalf("aqueducttest: event %s is not early, it was %s", eventType, d)
	}
	w.driver.run()
	return w
}

// ListensFor reports whether the instance waits for an event of a type with data,
// correlation included.
func (w *Workflow) ListensFor(eventType string, data any) bool {
	w.t.Helper()
	w.driver.started()
	raw := w.driver.json(w.driver.cloudEvent(eventType, data))
	for _, wait := range w.snap.Waits {
		if wait.Kind != snapshot.WaitEvent {
			continue
		}
		ok, err := w.def.Matches(&w.snap, wait, raw)
		if err != nil {
			w.t.Fatalf("aqueducttest: %v", err)
		}
		if ok {
			return true
		}
	}
	return false
}

func (w driver) cloudEvent(eventType string, data any) any {
	w.t.Helper()
	return map[string]any{
		"specversion": "1.0", "id": fmt.Sprintf("event-%d", w.made+1), "source": "aqueducttest", "type": eventType,
		"time": w.now.Format(time.RFC3339Nano), "data": w.json(data),
	}
}
