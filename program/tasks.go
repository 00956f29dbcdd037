package program

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/aqueduct-engine/aqueduct/ack"
	"github.com/aqueduct-engine/aqueduct/duration"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/jq"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// choose runs a switch: the first true case, else the default, else on.
func (r *run) choose(n *Node, in *scope) error {
	var fallback *Case
	for i := range n.Cases {
		c := &n.Cases[i]
		if c.When == nil {
			fallback = c
			continue
		}
		v, err := r.evals.evalAny(c.When, in)
		if err != nil {
			return err
		}
		if jq.Truthy(v) {
			return r.complete(n, r.data, c.Then)
		}
	}
	if fallback != nil {
		return r.complete(n, r.data, fallback.Then)
	}
	return r.complete(n, r.data, n.Then)
}

// collect freezes the collection of a loop.
func (r *run) collect(n *Node, in *scope) error {
	v, err := r.evals.evalAny(n.For.In, in)
	if err != nil {
		return err
	}
	items, err := itemsOf(v, r.t.In.Limits.Items)
	if err != nil {
		return err
	}
	r.top().Items = items
	return nil
}

// itemsOf checks what is to be a collection.
func itemsOf(v any, most int) ([]json.RawMessage, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, raise(engine.ErrExpression, 400, "Not a collection", fmt.Sprintf("in gives %s, not an array", kindOf(v)))
	}
	if len(list) > most {
		return nil, raise(engine.ErrRuntime, 500, "Limit exceeded", fmt.Sprintf("a collection of %d items exceeds %d", len(list), most))
	}
	items := make([]json.RawMessage, len(list))
	for i, item := range list {
		raw, err := jq.Encode(item, snapshot.MaxBytes)
		if err != nil {
			return nil, err
		}
		items[i] = raw
	}
	return items, nil
}

func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case string:
		return "a string"
	case []any:
		return "an array"
	case map[string]any:
		return "an object"
	}
	return "a number"
}

// iterate begins the next round of the loop on top, or ends it.
func (r *run) iterate(n *Node) (waits bool, err error) {
	f := r.top()
	if len(f.Items) > 0 {
		if !r.t.Step(n.Pointer) {
			r.t.Await(snapshot.Wait{Kind: snapshot.WaitNext, Branch: r.b.ID, Pointer: n.Pointer})
			return true, nil
		}
		f.Vars = map[string]json.RawMessage{
			n.For.Each: f.Items[0],
			n.For.At:   json.RawMessage(itoa(f.Next)),
		}
		goOn := true
		if n.For.While != nil {
			in := about(n, f)
			v, err := r.evals.evalAny(n.For.While, &in)
			if err != nil {
				return false, err
			}
			goOn = jq.Truthy(v)
		}
		if goOn {
			f.Items = f.Items[1:] // what has had its round is not stored again
			r.push(snapshot.Frame{Pointer: n.Body.Pointer})
			return false, nil
		}
	}
	return false, r.complete(n, r.data, n.Then)
}

// statusOf is the status of an error that an expression has made.
func statusOf(v any) (int, error) {
	f, err := strconv.ParseFloat(text(v), 64)
	if n := int(f); err == nil && float64(n) == f && n >= 100 && n <= 599 {
		return n, nil
	}
	return 0, raise(engine.ErrExpression, 400, "Invalid status", fmt.Sprintf("the status of an error is a whole number from 100 to 599, and not %.40q", text(v)))
}

// raise raises the error that the task defines.
func (r *run) raise(n *Node, in *scope) error {
	e := snapshot.Error{Status: 500}
	for _, f := range []struct {
		t   *jq.Template
		set func(any) error
	}{
		{n.Raise.Type, func(v any) error { e.Type = text(v); return nil }},
		{n.Raise.Status, func(v any) (err error) { e.Status, err = statusOf(v); return err }},
		{n.Raise.Title, func(v any) error { e.Title = text(v); return nil }},
		{n.Raise.Detail, func(v any) error { e.Detail = text(v); return nil }},
		{n.Raise.Instance, func(v any) error { e.Instance = text(v); return nil }},
	} {
		if f.t == nil {
			continue
		}
		v, err := r.evals.evalAny(f.t, in)
		if err != nil {
			return err
		}
		if err := f.set(v); err != nil {
			return err
		}
	}
	if n := len(e.Type); n > snapshot.MaxErrorType {
		return raise(engine.ErrRuntime, 500, "Limit exceeded", fmt.Sprintf("the type of an error has %d bytes; at most %d", n, snapshot.MaxErrorType))
	}
	if n := len(e.Instance); n > MaxInstance {
		return raise(engine.ErrRuntime, 500, "Limit exceeded", fmt.Sprintf("the instance of an error has %d bytes; at most %d", n, MaxInstance))
	}
	return &raised{e: e}
}

// text shows a JSON value as a person would write it in a string.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	raw, err := jq.Encode(v, 0)
	if err != nil {
		return kindOf(v)
	}
	return string(raw)
}

// wait waits for a moment.
func (r waits) wait(n *Node, in *scope) error {
	until, err := r.after(n.Wait, in)
	if err != nil {
		return err
	}
	r.t.Await(snapshot.Wait{Kind: snapshot.WaitTimer, Branch: r.b.ID, Pointer: n.Pointer, Until: until})
	return nil
}

// after evaluates a duration and counts it from the turn's moment.
func (r waits) after(t *jq.Template, in *scope) (time.Time, error) {
	return r.from(r.t.In.Now, t, in)
}

// from evaluates a duration and counts it from a moment.
func (r waits) from(at time.Time, t *jq.Template, in *scope) (time.Time, error) {
	v, err := r.evals.evalAny(t, in)
	if err != nil {
		return time.Time{}, err
	}
	until, err := duration.After(at, text(v))
	if err != nil {
		return time.Time{}, raise(engine.ErrExpression, 400, "Invalid duration", err.Error())
	}
	return until, nil
}

// deadline starts the timeout of a task whose frame is f.
func (r waits) deadline(n *Node, t *jq.Template, f *snapshot.Frame, in *scope) error {
	until, err := r.after(t, in)
	if err != nil {
		return err
	}
	w := r.t.Await(snapshot.Wait{Kind: snapshot.WaitTimeout, Branch: r.b.ID, Pointer: n.Pointer, Until: until})
	f.Deadline = w.Token
	return nil
}

// call sends a command and, unless it is detached, waits for its result.
func (r calls) call(n *Node, in *scope) (waits bool, err error) {
	c, err := r.command(n, in)
	if err != nil {
		return false, err
	}
	at := r.at(n, 0)
	if err := r.identify(&c, at); err != nil {
		return false, err
	}
	if n.Call.Detached {
		r.t.Detach(c)
		return false, r.complete(n, r.data, n.Then)
	}
	r.undoing.sent(subject{n: n, by: n.Compensate}, in, at.Visit, c.Key)
	r.t.Perform(c, snapshot.Wait{Branch: r.b.ID, Pointer: n.Pointer, Effect: c.Key, Visit: at.Visit})
	return true, nil
}

// command evaluates what a call asks for.
func (r calls) command(n *Node, in *scope) (engine.Command, error) {
	with, err := r.evals.eval(n.Call.With, in)
	if err != nil {
		return engine.Command{}, err
	}
	raw, err := with.Raw(r.t.In.Limits.Expression.Bytes)
	if err != nil {
		return engine.Command{}, err
	}
	c := engine.Command{Target: n.Call.Target, Input: raw, Pointer: n.Pointer, GiveUp: n.GiveUp}
	if c.Key, err = r.ownKey(n, in); err != nil {
		return engine.Command{}, err
	}
	if n.Call.Ack == nil {
		return c, nil
	}
	if arms := n.parent; arms != nil && arms.Kind == KindArms && arms.parent.Any {
		c.Await = ack.Any
	}
	if n.Call.AckIf != nil {
		if v, err := r.evals.evalAny(n.Call.AckIf, in); err != nil || !jq.Truthy(v) {
			c.Ack = ack.None
			return c, err
		}
	}
	until, err := r.waits.after(n.Call.Ack, in)
	if err != nil {
		return engine.Command{}, err
	}
	if c.Ack = until.Sub(r.t.In.Now); c.Ack <= 0 {
		return engine.Command{}, raise(engine.ErrExpression, 400, "Invalid duration", "an acknowledgement cannot come within no time")
	}
	return c, nil
}

// ownKey evaluates the author's own idempotency key of a call; "" = he has none.
func (r calls) ownKey(n *Node, in *scope) (string, error) {
	if n.Call.Key == nil {
		return "", nil
	}
	v, err := r.evals.evalAny(n.Call.Key, in)
	if err != nil {
		return "", err
	}
	key, ok := v.(string)
	if !ok || !engine.ValidKey(key) {
		return "", raise(engine.ErrValidation, 400, "Invalid idempotency key",
			fmt.Sprintf("idempotencyKey gives %s, not a text of 1 to %d visible ASCII characters", kindOf(v), engine.MaxOwnKeyBytes))
	}
	return key, nil
}

// MaxEachBytes bounds the arguments of the commands of one forEach, together.
const MaxEachBytes = 16 << 20

// each sends one command per item, all at once; the task's output has one
// element per item, in order: {item, output} or {item, error}. When they are
// detached, it is the task's input.
func (r calls) each(n *Node, in *scope) (waits bool, err error) {
	v, err := r.evals.evalAny(n.Call.In, in)
	if err != nil {
		return false, err
	}
	items, err := itemsOf(v, r.t.In.Limits.FanOut)
	if err != nil {
		return false, err
	}
	if len(items) == 0 && !n.Call.Detached {
		return false, r.complete(n, anyValue([]any{}), n.Then)
	}
	if err := r.undoing.compensable(n.Call.Compensate, len(items)); err != nil {
		return false, err
	}
	commands := make([]engine.Command, len(items))
	bytes := 0
	for i := range items {
		in.vars = map[string]json.RawMessage{n.Call.Each: items[i]}
		if commands[i], err = r.command(n, in); err != nil {
			return false, err
		}
		if bytes += len(commands[i].Input); bytes > MaxEachBytes {
			return false, raise(engine.ErrRuntime, 500, "Limit exceeded",
				fmt.Sprintf("the arguments of %d commands exceed %d bytes; pass references to large data", len(items), MaxEachBytes))
		}
	}
	at := r.at(n, 0)
	for i := range commands {
		at.Arm = i
		if err := r.identify(&commands[i], at); err != nil {
			return false, err
		}
	}
	if n.Call.Detached {
		for _, c := range commands {
			r.t.Detach(c)
		}
		return false, r.complete(n, r.data, n.Then)
	}
	f := r.top()
	f.Items, f.Open, f.Results = items, len(items), make([]json.RawMessage, len(items))
	in.vars = nil
	r.undoing.sent(subject{n: n, by: n.Compensate}, in, at.Visit, commands[0].Key)
	for i, c := range commands {
		in.vars = map[string]json.RawMessage{n.Call.Each: items[i]}
		r.undoing.sent(subject{n, n.Call.Compensate, i}, in, at.Visit, c.Key)
		r.t.Perform(c, snapshot.Wait{Branch: r.b.ID, Pointer: n.Pointer, Arm: i, Effect: c.Key, Visit: at.Visit})
	}
	return true, nil
}

// gather takes the result of one arm of a fan-out.
func (r calls) gather(n *Node, w snapshot.Wait, res engine.Result) (waits bool, err error) {
	f := r.top()
	if f.Pointer != n.Pointer || w.Arm >= len(f.Results) {
		return false, fmt.Errorf("program: %s: no fan-out waits at %s", r.t.Snap.InstanceID, n.Pointer)
	}
	entry := map[string]json.RawMessage{"item": f.Items[w.Arm], "output": orNull(res.Output)}
	if res.Error == nil {
		if err := r.undoing.recordItem(n, w, f.Items[w.Arm], orNull(res.Output)); err != nil {
			return false, err
		}
	} else {
		r.undoing.answered(n.Call.Compensate, w, res)
		delete(entry, "output")
		if entry["error"], err = json.Marshal(res.Error); err != nil {
			return false, err
		}
	}
	if f.Results[w.Arm], err = json.Marshal(entry); err != nil {
		return false, err
	}
	if f.Open--; f.Open > 0 {
		return true, nil
	}
	raw, err := json.Marshal(f.Results)
	if err != nil {
		return false, err
	}
	return false, r.complete(n, rawValue(raw), n.Then)
}

func itoa(n int) string { return strconv.Itoa(n) }

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}
