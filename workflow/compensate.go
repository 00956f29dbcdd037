package workflow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/aqueduct-engine/aqueduct/compensate"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// compensations is what a run records of how its steps are compensated.
type compensations struct{ *run }

// record notes what compensates the step of a frame, whose call has a key; "" = it is of
// no call.
func (r compensations) record(f *snapshot.Frame, u *FunctionCall, key string) *snapshot.Compensation {
	s := r.t.Snap
	s.LastStep++
	c := snapshot.Compensation{Step: s.LastStep, Pointer: f.Pointer, Effect: key}
	r.fill(&c, f, u)
	s.Compensations = append(slices.Clip(s.Compensations), c)
	return &s.Compensations[len(s.Compensations)-1]
}

// fill gives a compensation its function and a key.
func (r compensations) fill(c *snapshot.Compensation, f *snapshot.Frame, u *FunctionCall) {
	command := engine.Command{Target: u.Function, Input: u.Input, Compensates: true}
	c.Target, c.Input, c.Visit = command.Target, withKey(u.Input, c.Effect), visitOf(f)
	c.Key = r.t.Effects.KeyIn(f.Epoch, engine.Effect{Pointer: f.Pointer + "/compensate", Visit: c.Visit, Arm: f.Next}, &command)
}

// withKey is an input with the key of a call where its author has written [CallKey]. A key
// is visible ASCII, of which JSON escapes some.
func withKey(input []byte, key string) []byte {
	if key == "" || !bytes.Contains(input, []byte(CallKey)) {
		return input
	}
	text, _ := json.Marshal(key) // a text
	return bytes.ReplaceAll(input, []byte(CallKey), text[1:len(text)-1])
}

// of is what compensates an open step; nil = nothing does.
func (r compensations) of(f *snapshot.Frame) *snapshot.Compensation {
	e, err := r.d.effectOf(f)
	if err != nil || e.Compensate == nil {
		return nil
	}
	c := engine.Command{Target: e.Compensate.Function, Input: e.Compensate.Input, Compensates: true}
	key := r.t.Effects.KeyIn(f.Epoch, engine.Effect{Pointer: f.Pointer + "/compensate", Visit: visitOf(f), Arm: f.Next}, &c)
	s := r.t.Snap
	i := slices.IndexFunc(s.Compensations, func(c snapshot.Compensation) bool { return c.Key == key })
	if i < 0 {
		return nil
	}
	s.Compensations = slices.Clone(s.Compensations)
	return &s.Compensations[i]
}

// settle notes what a result says of what compensates the step, and
// forgets it when the step is known to have done nothing. What one attempt left open,
// the failure of another does not settle.
func (r compensations) settle(f *snapshot.Frame, res engine.Result) *snapshot.Compensation {
	c := r.of(f)
	switch {
	case c == nil:
	case res.Error == nil:
		c.Open, c.Unknown = false, false
	case res.Unknown, res.Open:
		c.Unknown = true
	case !c.Unknown:
		s, step := r.t.Snap, c.Step
		s.Compensations = slices.DeleteFunc(s.Compensations, func(c snapshot.Compensation) bool { return c.Step == step })
		if len(s.Compensations) == 0 {
			s.Compensations = nil
		}
		return nil
	}
	return c
}

// replace records a compensation. One of the name of the step that is decided about
// takes the place of what was recorded when the step was sent.
func (r compensations) replace(a arrival, recorded, i int, e Effect) {
	s := r.t.Snap
	at := slices.IndexFunc(s.Compensations, func(c snapshot.Compensation) bool { return c.Step == recorded })
	f := r.asking(pointerOf(e.Step), i)
	if at < 0 || f.Pointer != a.pointer {
		r.record(&f, e.Compensate, "")
		return
	}
	r.fill(&s.Compensations[at], &f, e.Compensate)
}

// meansOf is what is recorded of an effect that compensates.
func meansOf(by Effect) (*FunctionCall, error) {
	switch {
	case by.err != nil:
		return nil, by.err
	case by.Again != nil || by.Compensate != nil || by.Item != 0:
		return nil, fmt.Errorf("what compensates, %s, has no retry, item or compensation of its own", by.Step)
	case by.Limit < 0 || by.Limit > 0 && by.Ack <= 0 && (by.Kind == kindCall || by.Kind == kindHTTP):
		return nil, fmt.Errorf("what compensates, %s, is a mere call, which has the timeout of the node, or its timeout is negative", by.Step)
	}
	limit := compensate.Limit{TimeoutNanos: int64(by.Limit)}
	var means any
	switch by.Kind {
	case kindCall, kindHTTP:
		if by.Ack <= 0 {
			return &FunctionCall{by.Target, by.Input}, nil
		}
		means = compensate.Delivery{Limit: limit, Call: by.Target, With: by.Input, WithinNanos: int64(by.Ack)}
	case kindTask:
		p, err := person(by.Input)
		if err != nil {
			return nil, err
		}
		means = compensate.Ask{Limit: limit, Task: taskOf(p), DueNanos: int64(p.Due)}
	case kindChild:
		name, version, _ := strings.Cut(by.Target, "@")
		means = compensate.Run{Limit: limit, Definition: name, Version: version, Input: by.Input}
	default:
		return nil, fmt.Errorf("%s %s compensates nothing: it is no call, person or child", by.Kind, by.Step)
	}
	target, input, err := compensate.Targeted(means)
	return &FunctionCall{target, input}, err
}
