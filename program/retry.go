package program

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/aqueduct-engine/aqueduct/duration"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/jq"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// RetryPolicy is the policy by which a try runs again. Durations are templates that
// give ISO 8601; they are evaluated at each failure.
type RetryPolicy struct {
	When       *jq.Template // nil = always
	ExceptWhen *jq.Template // nil = never
	Delay      *jq.Template // nil = none
	Backoff    Backoff
	JitterFrom *jq.Template // added to the delay; nil = no jitter
	JitterTo   *jq.Template
	Limited    bool         // by Count
	Count      int          // of retries; the first run is none
	AttemptFor *jq.Template // of one retry; nil = no limit
	For        *jq.Template // from the first failure to the last retry's begin; nil = no limit
}

// Limits of a policy.
const (
	MaxRetries    = 1_000_000   // of limit.attempt.count
	EagerRetries  = 10          // come as early as the policy says
	MaxRetryLate  = time.Second // behind its moment, for one that would begin when its policy's time is over
	MinRetryDelay = time.Second // before each of those that come after the eager ones
)

// Backoff is how the delay grows from one retry to the next.
type Backoff string

const (
	BackoffConstant    Backoff = ""            // delay, delay, delay, ...
	BackoffLinear      Backoff = "linear"      // delay, 2 x delay, 3 x delay, ...
	BackoffExponential Backoff = "exponential" // delay, 2 x delay, 4 x delay, ...
)

// delayed returns the delay before the nth retry, n from 1.
func (b Backoff) delayed(delay time.Duration, n int) time.Duration {
	factor := 1.0
	switch b {
	case BackoffLinear:
		factor = float64(n)
	case BackoffExponential:
		factor = math.Pow(2, float64(n-1))
	}
	if float64(delay)*factor > float64(duration.Longest) {
		return duration.Longest
	}
	return time.Duration(float64(delay) * factor)
}

// jitter picks from the range [from, to] by a token, so that a repeated
// decision picks the same, and no two waits pick alike.
func jitter(from, to time.Duration, token string) time.Duration {
	if to <= from {
		return from
	}
	sum := sha256.Sum256([]byte(token))
	share := float64(binary.BigEndian.Uint64(sum[:8])>>11) / (1 << 53)
	return from + time.Duration(share*float64(to-from))
}

// retry arranges another run of the try on top after the error e, which it
// takes; raw is e as JSON. It reports false when the policy has no more.
func (r tries) retry(n *Node, e snapshot.Error, raw json.RawMessage) (again bool, err error) {
	policy, f := n.Catch.Retry, r.top()
	in := caughtAt(n, f, raw)
	if ok, err := r.forRetry(n, f, &in); err != nil || !ok {
		return false, err
	}
	return r.plan(policy, n.Pointer, e, raw, &in)
}

// plan arranges the next attempt at what the frame on top is of, unless there were as
// many as the policy has.
func (r tries) plan(policy *RetryPolicy, pointer string, e snapshot.Error, raw json.RawMessage, in *scope) (again bool, err error) {
	f := r.top()
	if policy.Limited && f.Attempt >= policy.Count {
		return false, nil
	}
	first := f.FailedAt
	if first.IsZero() {
		first = r.t.In.Now
	}
	w := snapshot.Wait{Kind: snapshot.WaitRetry, Token: r.t.NewToken(), Branch: r.b.ID, Pointer: pointer}
	if w.Until, err = r.due(policy, f.Attempt+1, w.Token, in); err != nil {
		return false, err
	}
	if policy.For != nil {
		end, err := r.waits.from(first, policy.For, in)
		if err != nil || w.Until.After(end) {
			return false, err
		}
	}
	f.Attempt, f.FailedAt, f.Results = f.Attempt+1, first, []json.RawMessage{raw}
	if r.p.node(pointer).Kind == KindList {
		r.withdrawn()
	}
	w = r.t.Await(w)
	data, err := json.Marshal(map[string]any{"attempt": f.Attempt, "dueAtUtc": w.Until, "error": raw})
	if err != nil {
		return false, err
	}
	r.t.Append(engine.Entry{Kind: engine.KindEvent, Dir: engine.Out, Type: entryRetry, Data: data, Meta: engine.Meta{Pointer: e.Instance}})
	return true, nil
}

// late reports whether the retry w, whose moment has come, would begin when the time of
// its policy is over, and because of which error. What a node takes to begin it is not
// counted: a policy may end in the moment of its last retry.
func (r tries) late(policy *RetryPolicy, w snapshot.Wait, scoped func(raw json.RawMessage) scope) (e snapshot.Error, late bool, err error) {
	f := r.top()
	if policy == nil || policy.For == nil || len(f.Results) != 1 || jsonv2.Unmarshal(f.Results[0], &e) != nil {
		return e, false, nil // as was decided by a node that kept no error
	}
	in := scoped(f.Results[0])
	end, err := r.waits.from(f.FailedAt, policy.For, &in)
	if err != nil {
		return e, false, err
	}
	r.t.Basis.Clock = r.t.In.Clock
	if soon := w.Until.Add(MaxRetryLate); soon.After(end) {
		end = soon
	}
	return e, r.t.In.Clock.After(end), nil
}

// due is when the nth retry begins.
func (r tries) due(policy *RetryPolicy, n int, token string, in *scope) (time.Time, error) {
	now := r.t.In.Now
	var spans [3]time.Duration
	for i, t := range []*jq.Template{policy.Delay, policy.JitterFrom, policy.JitterTo} {
		if t == nil {
			continue
		}
		until, err := r.waits.from(now, t, in)
		if err != nil {
			return time.Time{}, err
		}
		spans[i] = until.Sub(now)
	}
	delay := policy.Backoff.delayed(spans[0], n) + jitter(spans[1], spans[2], token)
	if n > EagerRetries {
		delay = max(delay, MinRetryDelay) // a policy without a delay would do nothing else
	}
	return now.Add(delay), nil
}

// Retries looks for the try that takes e, and whether its policy is for it.
func (p *Program) Retries(t *engine.Turn, w snapshot.Wait, e snapshot.Error) (bool, error) {
	r := (&work{p: p, t: t}).branch(w.Branch)
	n := p.node(w.Pointer)
	if r == nil || r.gone() || n == nil || n.Kind == KindEach || n.Kind == KindCompensate {
		return false, nil // a fan-out gathers errors and raises none
	}
	if e.Instance == "" {
		e.Instance = n.Pointer
	}
	return r.tries.retried(e)
}

// retried reports whether the try that takes an error, here or around a fork,
// has a policy that is for it.
func (r tries) retried(e snapshot.Error) (bool, error) {
	i, taken, err := r.taker(e)
	if _, isRaised := asRaised(err); isRaised {
		return false, nil // by the condition of a catch, which goes outwards in its place
	}
	if err != nil {
		return false, err
	}
	if !taken {
		fork := r.forks.forked()
		if fork == nil {
			return r.forHook(e)
		}
		up, err := r.forks.up(fork)
		if err != nil {
			return false, err
		}
		return up.tries.retried(e)
	}
	r.b.Frames = r.b.Frames[:i+1]
	f := r.top()
	n := r.p.node(f.Pointer)
	if n.Catch.Retry == nil {
		return false, nil
	}
	raw, err := json.Marshal(e)
	if err != nil {
		return false, err
	}
	in := caughtAt(n, f, raw)
	ok, err := r.forRetry(n, f, &in)
	if _, isRaised := asRaised(err); isRaised {
		return false, nil
	}
	return ok, err
}

// forRetry reports whether the policy of the try n on top is for an error that
// the try takes, see [caughtAt].
func (r tries) forRetry(n *Node, f *snapshot.Frame, in *scope) (bool, error) {
	data := rawValue(f.Input)
	return r.passes(n.Catch.Retry.When, n.Catch.Retry.ExceptWhen, &data, in)
}

// caughtAt is what the policy of the try n sees of an error.
func caughtAt(n *Node, f *snapshot.Frame, raw json.RawMessage) scope {
	in := about(n, f)
	in.vars = map[string]json.RawMessage{"error": raw, n.Catch.name(): raw} // a shared policy knows it as error
	return in
}

// attempt begins the body of the try on top again, with the input of the try
// and fresh frames. One that comes too late does not begin: the catch goes on.
func (r tries) attempt(n *Node, w snapshot.Wait) error {
	f := r.top()
	if f.Pointer != n.Pointer || n.Kind != KindTry {
		return fmt.Errorf("program: %s: %s does not wait for a retry", r.t.Snap.InstanceID, n.Pointer)
	}
	e, late, err := r.late(n.Catch.Retry, w, func(raw json.RawMessage) scope { return caughtAt(n, f, raw) })
	raw := f.Results // kept where an operator's retry asks for the time of the attempt anew
	if policy := n.Catch.Retry; err != nil || late || policy == nil || policy.AttemptFor == nil || policy.AttemptFor.Constant() {
		f.Results = nil
	}
	if err != nil {
		f.Phase = phaseCatch
		return err
	}
	r.data = rawValue(f.Input)
	if late {
		what, err := r.over(n, e, raw[0])
		if what == raises && err == nil {
			err = &raised{e: e}
		}
		return err
	}
	r.w.tell(engine.TaskRetriedEvent, n.Pointer, nil)
	in := about(n, f)
	if len(raw) > 0 { // a node of before kept no error
		in = caughtAt(n, f, raw[0])
	}
	body := snapshot.Frame{Pointer: n.Body.Pointer}
	if err := r.attemptDeadline(n, &body, &in); err != nil {
		f.Phase = phaseCatch // what the policy itself does wrong is not its own to retry
		return err
	}
	r.push(body)
	return nil
}

func (r tries) attemptDeadline(n *Node, body *snapshot.Frame, in *scope) error {
	if n.Catch.Retry == nil || n.Catch.Retry.AttemptFor == nil {
		return nil
	}
	return r.waits.deadline(n.Body, n.Catch.Retry.AttemptFor, body, in)
}

// passes evaluates a pair of conditions, either of which may be absent.
func (r tries) passes(when, exceptWhen *jq.Template, data *value, in *scope) (bool, error) {
	for _, c := range []struct {
		t    *jq.Template
		want bool
	}{{when, true}, {exceptWhen, false}} {
		if c.t == nil {
			continue
		}
		v, err := r.evals.evalOn(c.t, data, in)
		if err != nil {
			return false, err
		}
		if jq.Truthy(v) != c.want {
			return false, nil
		}
	}
	return true, nil
}
