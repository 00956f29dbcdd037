package workflow

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// Kinds of steps, and of effects without one.
const (
	kindCall       = "call"
	kindHTTP       = "http"
	kindTask       = "task"
	kindTimer      = "timer"
	kindEvent      = "event"
	kindChild      = "workflow"
	kindEmit       = "emit"
	kindCompensate = "compensate"
	kindWithdraw   = "withdraw"
	kindComplete   = "complete"
	kindFail       = "fail"
)

// step is what is known of a step, whatever its types are.
type step struct {
	Name   string   `json:"name"`
	Kind   string   `json:"kind"`
	Target string   `json:"target,omitempty"` // function, type of the event, or definition[@version]
	Keys   []string `json:"correlate,omitempty"`

	done, failed *handler
	wrong        []string
}

// Step is something that is done outside and has a result of the type O. Its name
// says where an instance is, and is the same in every version of the workflow.
type Step[O any] interface {
	Target
	described() step
	result(O) // so that the type is inferred
}

// typed is a step with a result of the type O.
type typed[O any] struct{ step }

func (t typed[O]) described() step { return t.step }
func (t typed[O]) result(O)        {}
func (s step) target() string      { return s.Name }

// same reports whether two descriptions are of one step.
func (s *step) same(o step) bool {
	return s.Kind == o.Kind && s.Target == o.Target && slices.Equal(s.Keys, o.Keys)
}

// check says what is wrong with a step.
func (s *step) check(all map[string]*step) (wrong []problem.Place) {
	at := pointerOf(s.Name)
	if s.done == nil {
		wrong = append(wrong, problem.Place{Pointer: at, Code: "workflow.step-unknown", Detail: "no function takes its results", Hint: "workflow.On(w, ...)"})
	} else {
		wrong = append(wrong, s.done.check(at, all)...)
	}
	if s.failed != nil {
		wrong = append(wrong, s.failed.check(at, all)...)
	}
	return wrong
}

// pointerOf is where a step is, as operators see it.
func pointerOf(name string) string { return "/" + escape.Replace(name) }

// escape writes a key of a JSON pointer.
var escape = strings.NewReplacer("~", "~0", "/", "~1")

// CallStep calls a function of the program.
type CallStep[I, O any] struct{ typed[O] }

// Call is a step that calls a registered function; see activity.Performer.Register.
func Call[I, O any](name, function string) CallStep[I, O] {
	s := step{Name: name, Kind: kindCall, Target: function}
	if function == "" {
		s.wrong = []string{"it calls a function without a name"}
	}
	return CallStep[I, O]{typed[O]{s}}
}

// With asks for the call.
func (s CallStep[I, O]) With(input I) Effect { return s.asked(input) }

// asked is an effect of a step with an input.
func (s step) asked(input any) Effect {
	e := Effect{Kind: s.Kind, Step: s.Name, Target: s.Target}
	if input != nil {
		e.Input, e.err = encode(input)
	}
	return e
}

// HTTPStep sends an HTTP request.
type HTTPStep[O any] struct{ typed[O] }

// HTTP is a step that sends an HTTP request, whose body is the result.
func HTTP[O any](name string) HTTPStep[O] {
	return HTTPStep[O]{typed[O]{step{Name: name, Kind: kindHTTP, Target: kindHTTP}}}
}

// Request is an HTTP request. Its idempotency key is in a header of its own.
type Request struct {
	Method  string            `json:"method,omitempty"` // "" = GET
	URI     string            `json:"uri"`
	Headers map[string]string `json:"headers,omitempty"`
	Query   map[string]string `json:"query,omitempty"`
	Body    any               `json:"body,omitempty"`
	Output  string            `json:"output,omitempty"` // "content" (the default), "response" or "raw"
}

// With asks for the request.
func (s HTTPStep[O]) With(r Request) Effect { return s.asked(r) }

// TaskStep asks a person.
type TaskStep[O any] struct{ typed[Answer[O]] }

// Task is a step that asks a person, whose data is of the type O.
func Task[O any](name string) TaskStep[O] {
	return TaskStep[O]{typed[Answer[O]]{step{Name: name, Kind: kindTask}}}
}

// Answer is what a person has said.
type Answer[O any] struct {
	Outcome     string    `json:"outcome"`
	Data        O         `json:"data"`
	CompletedBy string    `json:"completedBy"`
	CompletedAt time.Time `json:"completedAtUtc"`
	TaskID      string    `json:"taskId"`
}

// With asks the person.
func (s TaskStep[O]) With(p Person) Effect { return s.asked(p) }

// TimerStep waits for a moment.
type TimerStep struct{ typed[Fired] }

// Fired is the result of a timer.
type Fired struct{}

// Timer is a step that waits for a moment.
func Timer(name string) TimerStep { return TimerStep{typed[Fired]{step{Name: name, Kind: kindTimer}}} }

// After sets the timer, from the moment of the input on.
func (s TimerStep) After(d time.Duration) Effect {
	e := s.asked(nil)
	e.After = d
	return e
}

// At sets the timer.
func (s TimerStep) At(moment time.Time) Effect {
	e := s.asked(nil)
	e.Until = moment
	return e
}

// EventStep listens for an event.
type EventStep[O any] struct{ typed[O] }

// Event is a step that listens for one CloudEvent of a type, with data of the type
// O. Correlate are what ties an event to an instance: paths of the event, such as
// data.order.
func Event[O any](name, eventType string, correlate ...string) EventStep[O] {
	s := step{Name: name, Kind: kindEvent, Target: eventType, Keys: correlate}
	if eventType == "" {
		s.wrong = append(s.wrong, "it listens for events without a type")
	}
	if len(correlate) > maxKeys || slices.Contains(correlate, "") {
		s.wrong = append(s.wrong, fmt.Sprintf("it correlates by an empty path, or by more than %d", maxKeys))
	}
	return EventStep[O]{typed[O]{s}}
}

// maxKeys bounds what one step correlates by.
const maxKeys = 32

// Listen listens, for an event that has these values, in the order of the paths. One
// that came before, and was kept, is taken.
func (s EventStep[O]) Listen(values ...any) Effect {
	e := s.asked(nil)
	if len(values) != len(s.Keys) {
		e.err = fmt.Errorf("it listens with %d values, and correlates by %d paths", len(values), len(s.Keys))
		return e
	}
	for i, v := range values {
		raw, err := canonical(v)
		if err != nil {
			e.err = err
			return e
		}
		if e.Keys == nil {
			e.Keys = map[string]string{}
		}
		e.Keys[s.Keys[i]] = string(raw)
	}
	return e
}

// ChildStep runs another definition.
type ChildStep[I, O any] struct{ typed[O] }

// Child is a step that runs an instance of another definition, a document or Go,
// and waits for its end. The version that is the latest then, unless the name is
// NAME@VERSION.
func Child[I, O any](name, definition string) ChildStep[I, O] {
	s := step{Name: name, Kind: kindChild, Target: definition}
	if definition == "" {
		s.wrong = []string{"it runs a definition without a name"}
	}
	return ChildStep[I, O]{typed[O]{s}}
}

// With starts the child.
func (s ChildStep[I, O]) With(input I) Effect { return s.asked(input) }
