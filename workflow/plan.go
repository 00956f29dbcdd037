package workflow

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/humantask"
	"github.com/aqueduct-engine/aqueduct/schema"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// maxCompensations bounds what an instance records to undo, as of documents.
const maxCompensations = 1_000

// opening is a step that a decision opens.
type opening struct {
	frame  snapshot.Frame
	effect Effect
}

// plan checks what a decision asks for, before any of it is done, and gives the
// steps that it opens.
func (r *run) plan(a arrival, h *handler, did *decision) ([]opening, error) {
	if len(did.do) > MaxDo {
		return nil, faultOf("workflow.effect", "a decision asks for %d effects; at most %d", len(did.do), MaxDo)
	}
	type place struct {
		pointer string
		item    int
	}
	open := map[place]bool{}
	for _, f := range r.b.Frames {
		open[place{f.Pointer, f.Next}] = true
	}
	delete(open, place{a.pointer, a.item})
	var frames []opening
	compensations := len(r.t.Snap.Compensations)
	for i, e := range did.do {
		wrong := func(code, detail string, args ...any) error {
			return faultOf(code, "effect %d, %s: "+detail, append([]any{i, e.Kind}, args...)...)
		}
		if e.err != nil {
			return nil, wrong("workflow.effect", "%v", e.err)
		}
		at := place{pointerOf(e.Step), e.Item}
		if e.Compensate != nil {
			compensations++
		}
		switch e.Kind {
		case kindComplete:
			if i < len(did.do)-1 {
				return nil, wrong("workflow.effect", "nothing comes after it")
			}
			return frames, nil
		case kindWithdraw:
			delete(open, at)
			continue
		case kindEmit, kindCompensate:
			if err := r.checkLoose(e, i); err != nil {
				return nil, wrong("workflow.effect", "%v", err)
			}
			if e.Compensate != nil && at.pointer != a.pointer && bytes.Contains(e.Compensate.Input, []byte(CallKey)) {
				return nil, wrong("workflow.effect", "%s is the name of no call that is decided about, so there is no CallKey", e.Step)
			}
			continue
		}
		if code, err := r.checkStep(h, at.pointer, &e); err != nil {
			return nil, wrong(code, "%v", err)
		}
		if open[at] {
			return nil, wrong("workflow.effect-open", "the step %s is open already; wait for it, withdraw it, or tell the two apart by Of", e.Step)
		}
		open[at] = true
		raw, err := stored(e)
		if err != nil {
			return nil, wrong("workflow.effect", "%v", err)
		}
		f := r.asking(at.pointer, e.Item)
		f.Input = raw
		frames = append(frames, opening{f, e})
	}
	if compensations > maxCompensations {
		return nil, faultOf("workflow.effect", "%d compensations would be recorded; at most %d", compensations, maxCompensations)
	}
	if len(open) == 0 {
		return nil, faultOf("workflow.stuck", "a decision asks for nothing that is waited for, and nothing else is open").
			with("complete, fail, or ask for a step")
	}
	return frames, nil
}

// checkLoose says what is wrong with an effect that is no step.
func (r *run) checkLoose(e Effect, i int) error {
	switch {
	case e.Kind == kindCompensate && (e.Step == "" || e.Compensate == nil || e.Compensate.Function == ""):
		return errors.New("it has no name, or calls no function")
	case e.Kind == kindCompensate:
		return nil
	case e.Target == "":
		return errors.New("the event has no type")
	}
	raw, _, err := r.event(e, i)
	if err == nil && len(raw) > engine.MaxEventBytes {
		err = fmt.Errorf("an event of %d bytes exceeds %d", len(raw), engine.MaxEventBytes)
	}
	return err
}

// checkStep says what is wrong with an effect of a step, and completes it.
func (r *run) checkStep(h *handler, pointer string, e *Effect) (code string, err error) {
	if e.Step == "" {
		return "workflow.effect-name", errors.New("it is of no step")
	}
	s := r.d.steps[pointer]
	switch {
	case s == nil:
		return "workflow.step-unknown", fmt.Errorf("no function takes the results of the step %s", e.Step)
	case s.Kind != e.Kind || s.Target != e.Target:
		return "workflow.step-unknown", fmt.Errorf("the step %s is declared as %s %s, not as %s %s", e.Step, s.Kind, s.Target, e.Kind, e.Target)
	case h.said && !slices.Contains(h.to, e.Step):
		return "workflow.undeclared", fmt.Errorf("the function does not say that it leads to the step %s", e.Step)
	case e.Item < 0 || e.Limit < 0 || e.Ack < 0 || e.Again != nil && (e.Again.Times < 0 || e.Again.Delay < 0):
		return "workflow.effect", errors.New("an item, a duration or a number of retries is negative")
	case e.Compensate != nil && e.Compensate.Function == "":
		return "workflow.effect", errors.New("it is compensated by a function without a name")
	case (e.Compensate != nil || e.Ack > 0) && e.Kind != kindCall && e.Kind != kindHTTP:
		return "workflow.effect", errors.New("only calls are acknowledged and compensated by CompensateWith")
	}
	switch e.Kind {
	case kindTimer:
		if e.Until.IsZero() {
			e.Until = r.t.In.Now.Add(e.After)
		}
		e.After, e.Input = 0, nil
	case kindEvent:
		e.Input = nil
	case kindTask:
		_, err = person(e.Input)
	case kindChild:
		if len(e.Input) > engine.MaxChildBytes {
			err = fmt.Errorf("an input of %d bytes exceeds %d; pass a reference to large data", len(e.Input), engine.MaxChildBytes)
		} else if depth(r.t.Snap) > engine.MaxDepth {
			err = fmt.Errorf("sub-workflows wait for each other more than %d deep", engine.MaxDepth)
		}
	}
	return "workflow.effect", err
}

// person reads and checks what is asked of a person.
func person(raw []byte) (p Person, err error) {
	if err := decode(raw, &p); err != nil {
		return p, err
	}
	for _, list := range []struct {
		name  string
		names []string
	}{
		{"CandidateUsers", p.CandidateUsers}, {"CandidateGroups and EscalateTo", slices.Concat(p.CandidateGroups, p.EscalateTo)},
		{"ExcludedUsers", p.ExcludedUsers}, {"Outcomes", p.Outcomes},
	} {
		if err := humantask.CheckNames(list.names); err != nil {
			return p, fmt.Errorf("%s %w", list.name, err)
		}
	}
	switch {
	case utf8.RuneCountInString(p.Title) > humantask.MaxTitle:
		err = fmt.Errorf("the Title has more than %d characters", humantask.MaxTitle)
	case utf8.RuneCountInString(p.Assignee) > humantask.MaxName:
		err = fmt.Errorf("the Assignee has more than %d characters", humantask.MaxName)
	case p.Assignee != "" && slices.Contains(p.ExcludedUsers, p.Assignee):
		err = fmt.Errorf("the Assignee %s is one of ExcludedUsers", p.Assignee)
	case p.Priority != nil && (*p.Priority < 0 || *p.Priority > humantask.MaxPriority):
		err = fmt.Errorf("the Priority is %d, not 0 to %d", *p.Priority, humantask.MaxPriority)
	case p.Due < 0, p.Due == 0 && len(p.EscalateTo) > 0:
		err = errors.New("EscalateTo needs Due, which is not negative: it says when")
	case len(p.Form) > 0 && string(p.Form) != "null":
		err = checkForm(p.Form)
	}
	return p, err
}

// checkForm checks {schema}, or {ref, version} of a form that the application knows.
func checkForm(raw []byte) error {
	var f struct {
		Ref    string `json:"ref"`
		Schema any    `json:"schema"`
	}
	if err := decode(raw, &f); err != nil {
		return fmt.Errorf("the Form: %w", err)
	}
	if (f.Ref == "") == (f.Schema == nil) {
		return errors.New("the Form is neither {ref, version} nor {schema}")
	}
	if s, ok := humantask.FormSchema(raw); ok {
		_, err := schema.Compile(s)
		return err
	}
	return nil
}

// asked has a function decide. Its panic is an error that says where.
func asked(h *handler, state []byte, in Input[rawJSON]) (did *decision, err error) {
	defer func() {
		if v := recover(); v != nil {
			did, err = nil, panicked(v)
		}
	}()
	return h.decide(state, in)
}
