package program

import (
	"encoding/json"
	"fmt"

	"github.com/aqueduct-engine/aqueduct/compensate"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// retryHook has the hook that failed run again later, when its state has retries for the
// error: as an operator's retry has it. The branch is back at the list of that task.
func (r tries) retryHook(e snapshot.Error) (again bool, err error) {
	policy := r.ofHooks()
	if policy == nil {
		return false, nil
	}
	raw, err := json.Marshal(e)
	if err != nil {
		return false, err
	}
	in := r.failedHook(raw)
	if ok, err := r.passes(policy.When, policy.ExceptWhen, &r.data, &in); err != nil || !ok {
		return false, err
	}
	again, err = r.plan(policy, r.top().Pointer, e, raw, &in)
	if again {
		r.told = 0
	}
	return again, err
}

// ofHooks is the policy by which the hooks of a state are tried again, while they run.
func (r tries) ofHooks() *RetryPolicy {
	for _, f := range r.b.Frames {
		n := r.p.node(f.Pointer)
		if n != nil && n.Kind == KindState && (f.Phase == phaseEnter || f.Phase == phaseExit) {
			return n.State.Retry
		}
	}
	return nil
}

// failedHook is what the policy of a state sees of an error.
func (r tries) failedHook(raw json.RawMessage) scope {
	return scope{input: r.data, vars: map[string]json.RawMessage{"error": raw}}
}

// forHook reports whether the state whose hooks run has retries for an error that no try
// takes.
func (r tries) forHook(e snapshot.Error) (bool, error) {
	policy := r.ofHooks()
	if policy == nil {
		return false, nil
	}
	raw, err := json.Marshal(e)
	if err != nil {
		return false, err
	}
	in := r.failedHook(raw)
	ok, err := r.passes(policy.When, policy.ExceptWhen, &r.data, &in)
	if _, isRaised := asRaised(err); isRaised {
		return false, nil
	}
	return ok, err
}

// attemptHook goes on with the failed hook of the list on top; it reports whether the
// branch is not to go on now, or does so already. One that comes too late has failed.
func (r tries) attemptHook(list *Node, w snapshot.Wait) (rests bool, err error) {
	f := r.top()
	if f.Pointer != list.Pointer || f.Next >= len(list.List) {
		return false, fmt.Errorf("program: %s: no hook at %s waits for a retry", r.t.Snap.InstanceID, list.Pointer)
	}
	e, late, err := r.late(r.ofHooks(), w, r.failedHook)
	if of, isRaised := asRaised(err); isRaised {
		if e, late = of.e, true; e.Instance == "" {
			e.Instance = list.Pointer
		}
	} else if err != nil {
		return false, err
	}
	if f.Results = nil; late {
		compensate.All(r.t, e)
		return true, nil
	}
	r.w.again = list.List[f.Next].Pointer
	if err := r.again(); err != nil {
		return false, err
	}
	for _, w := range r.t.Snap.Waits {
		rests = rests || w.Kind == snapshot.WaitRetry
	}
	return rests || len(r.w.ready) > 0 || r.t.Snap.Status == snapshot.Faulted, nil
}

// withdrawn ends all that the instance waits for.
func (r tries) withdrawn() {
	r.t.Withdraw(engine.TaskCancelled, func(snapshot.Wait) bool { return true })
}
