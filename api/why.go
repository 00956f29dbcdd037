package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/aqueduct-engine/aqueduct/ack"
	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// lookBack is how many entries of a stream are searched for who suspended an
// instance, or took a number, and maxReasons how many dead letters are named.
const (
	lookBack   = 500
	maxReasons = 10
)

// whyAPI is why instances do not move.
type whyAPI struct{ instanceAPI }

func (s whyAPI) whyOperations(h huma.API) {
	op := operation("explain-instance", http.MethodGet, "/v1/instances/{id}/why", "instances",
		"Say why an instance does not move, and what would move it", http.StatusNotFound)
	op.Description = "Everything that it waits for, with who or what it is up to, as this node sees it: places at hosts and circuit breakers are each node's own. " +
		"An instance that has ended, or that a node works on, has one reason, which says so, and one for notices that wait for a sink."
	register(s.service, h, op, s.why)
}

func (s whyAPI) why(ctx context.Context, in *ByID) (*answer[client.Why], error) {
	d, err := s.detail(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	w := client.Why{InstanceID: d.ID, Status: d.Status, Since: d.UpdatedAt}
	switch snapshot.Status(d.Status) {
	case snapshot.Completed, snapshot.Cancelled, snapshot.Compensated:
		w.Reasons = append([]client.Reason{{Code: "ended", Text: "it has ended: " + d.Status}}, unsent(d)...)
		return ok(w), nil
	case snapshot.Suspended:
		r, err := s.suspended(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		w.Reasons = append(w.Reasons, r)
	case snapshot.Faulted:
		w.Reasons = append(w.Reasons, faulted(d))
	default:
		if d.Why != nil {
			text := fmt.Sprintf("it compensates what it has done, because of %s: %d steps are left", errorText(d.Why), len(d.Reversals))
			w.Reasons = append(w.Reasons, client.Reason{Code: "compensates", Text: text, Pointer: d.Why.Pointer})
		}
	}
	if r := s.elsewhere(ctx, d); r != nil {
		w.Reasons = append(w.Reasons, *r)
	}
	for _, wait := range d.Waits {
		r, err := s.waits(ctx, wait, d.Commands)
		if err != nil {
			return nil, err
		}
		w.Reasons = append(w.Reasons, r)
	}
	for _, g := range d.Gaps {
		w.Reasons = append(w.Reasons, client.Reason{Code: "gap", Text: fmt.Sprintf("%d signals of %s wait for their number %d, which has not come", g.Waiting, g.Sender, g.Sequence),
			Hint: "have it sent again, or send an empty signal with that number"})
	}
	if err := s.dead(ctx, &w); err != nil {
		return nil, err
	}
	if w.Reasons = append(w.Reasons, unsent(d)...); len(w.Reasons) == 0 {
		w.Reasons = []client.Reason{{Code: "working", Text: "it waits for nothing: a node is at it, or a message for it is in a queue", Hint: "see queues, if it stays so"}}
	}
	return ok(w), nil
}

// elsewhere says that only other nodes have the code of an instance, so that what has come
// for it may wait, whatever it waits for; nil = this node has it.
func (s whyAPI) elsewhere(ctx context.Context, d client.InstanceDetail) *client.Reason {
	snap, err := s.Operator.Snapshot(ctx, d.ID)
	if err == nil {
		_, err = s.Operator.Takes(ctx, snap) // which needs what it runs
	}
	if err == nil || problem.CodeOf(err) != engine.CodeElsewhere {
		return nil
	}
	return &client.Reason{
		Code: "elsewhere", Text: fmt.Sprintf("this node does not have the Go code of %s@%s: events, results and operations that have come for it wait in the queue", d.Definition, d.Version),
		Hint: "they are taken when the program that has the code runs on a node",
	}
}

// unsent says that notices of an instance wait for a sink, for which nothing else waits.
func unsent(d client.InstanceDetail) []client.Reason {
	n := 0
	for _, c := range d.Commands {
		if strings.HasPrefix(c.LastError, ack.Unsent) {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return []client.Reason{{Code: "unsent", Text: fmt.Sprintf("%d of its notices wait for a node with a sink", n), Hint: "set events.sink, or queue.notices: 0 to keep none"}}
}

// suspended says who suspended an instance.
func (s whyAPI) suspended(ctx context.Context, id string) (client.Reason, error) {
	r := client.Reason{Code: "suspended", Text: "it is suspended", Hint: "resume it; signals are kept meanwhile, events of a lifecycle refused"}
	snap, err := s.Operator.Snapshot(ctx, id)
	if err != nil {
		return r, unknownInstance(err, id)
	}
	err = s.entries(ctx, id, snap.Position-lookBack, snap.Position, func(e *projections.Entry) bool {
		if e.Type == engine.EntrySuspended {
			shown := toEntry(*e)
			r.Text = "it was suspended " + at(shown.At)
			if shown.Actor != "" {
				r.Text += " by " + shown.Actor
			}
		}
		return false
	})
	return r, err
}

// entries tells of a stream what is behind a position, up to another, until that is enough. A
// page whose entries are large ends before the newest, and the next one goes on.
func (s *service) entries(ctx context.Context, id string, after, last int64, told func(*projections.Entry) (enough bool)) error {
	for after = max(0, after); after < last; {
		rows, err := s.Reader.Streams.Stream(ctx, id, after, lookBack)
		if err != nil || len(rows) == 0 {
			return err
		}
		for i := range rows {
			if told(&rows[i]) {
				return nil
			}
		}
		after = rows[len(rows)-1].Position
	}
	return nil
}

func faulted(d client.InstanceDetail) client.Reason {
	r := client.Reason{Code: "faulted", Text: "an error that nothing caught", Hint: "mend the cause and retry, or skip the task with an output"}
	if e := d.Error; e != nil {
		r.Pointer, r.Text = e.Pointer, strings.TrimSuffix("an error that nothing caught: "+errorText(e), ": ")
	}
	if e := d.Error; e != nil && (engine.SameType(e.Type, engine.ErrorBase+engine.ErrExpression) || engine.SameType(e.Type, engine.ErrorBase+engine.ErrConfiguration)) {
		r.Hint = "mend the definition, and migrate to it, or the configuration; then retry, or skip the task with an output"
	}
	if d.Why == nil && len(d.Reversals) > 0 {
		r.Hint += fmt.Sprintf("; what it has done stays (%d steps): cancel --compensate undoes it", len(d.Reversals))
	}
	if d.Why == nil || len(d.Reversals) == 0 || d.Error == nil {
		return r
	}
	next := d.Reversals[0]
	r.Code, r.Text = "compensation", fmt.Sprintf("the compensation of %s by %s is stuck, and %d more wait behind it: %s. It compensates because of %s",
		next.Pointer, next.Target, len(d.Reversals)-1, errorText(d.Error), errorText(d.Why))
	r.Hint = "mend the cause and retry: it is sent again under its key; or undo by hand what " + next.Pointer + " has done, and skip"
	return r
}

// errorText is an error in words; its type, where it has none.
func errorText(e *client.InstanceError) string {
	return cmp.Or(strings.TrimSpace(e.Title+" "+e.Detail), e.Type)
}

// waits says of one wait who or what ends it.
func (s whyAPI) waits(ctx context.Context, w client.Wait, commands []client.Command) (client.Reason, error) {
	r := client.Reason{Pointer: w.Pointer, Until: w.Until}
	switch {
	case w.Kind == string(snapshot.WaitDue):
		r.Code, r.Text = "due", "its task is due "+at(w.Until)
	case w.Kind == string(snapshot.WaitTimeout):
		r.Code, r.Text = "timeout", "its time is over "+at(w.Until)
	case w.TaskID != "":
		return s.person(ctx, r, w.TaskID)
	case w.Child != "":
		return s.child(ctx, r, w.Child)
	case w.Command != 0:
		for _, c := range commands {
			if c.Position == w.Command {
				called(&r, c, s.Now())
				return r, nil
			}
		}
		r.Code, r.Text = "result", fmt.Sprintf("the result of command %d is on its way", w.Command)
	case w.Kind == string(snapshot.WaitState):
		r.Code, r.Text, r.Hint = "state", "it rests in its state until an event is triggered that the state takes", "see which with state"
	case w.Event != "":
		r.Code, r.Text = "event", "no event "+w.Event+" has come"
		if len(w.Key) > 0 {
			r.Text += " that fits " + string(w.Key)
		}
		r.Hint = "publish or signal it"
	case w.Retry != nil:
		r.Code, r.Text = "retry", fmt.Sprintf("it has failed since %s; retry %d begins %s", at(w.Retry.FailedAt)[len("at "):], w.Retry.Attempt, at(w.Until))
		if e := w.Retry.Error; e != nil {
			r.Pointer, r.Text = cmp.Or(e.Pointer, r.Pointer), r.Text+": "+errorText(e)
		}
		sooner(&r, w.Pointer)
	case !w.Until.IsZero():
		r.Code, r.Text = strings.ToLower(w.Kind), "it goes on "+at(w.Until)
		sooner(&r, w.Pointer)
	default:
		r.Code, r.Text = strings.ToLower(w.Kind), "it waits: "+w.Kind
	}
	return r, nil
}

// sooner says how what is waited for at a pointer comes at once.
func sooner(r *client.Reason, pointer string) {
	r.RunNow, r.Hint = pointer, "run-now --wait "+pointer+" has it come at once"
}

func at(t time.Time) string { return "at " + t.UTC().Format(time.RFC3339) }

// person says whose task it is.
func (s whyAPI) person(ctx context.Context, r client.Reason, id string) (client.Reason, error) {
	r.Code, r.TaskID = "person", id
	row, err := s.Reader.Tasks.Task(ctx, id)
	if err != nil {
		return r, missing(err, "task.unknown", "task %s does not exist", clip(id))
	}
	t := toTask(row)
	switch {
	case t.Assignee != "":
		r.Text = t.Assignee + " has the task since it was claimed, and has not answered"
		r.Hint = "ask them, or reassign it"
	default:
		r.Text = "nobody has claimed the task"
		if c := append(t.CandidateGroups, t.CandidateUsers...); len(c) > 0 {
			r.Text += ", which is for " + strings.Join(c, ", ")
		}
		r.Hint = "have it claimed"
	}
	return r, nil
}

// child says how it is with an instance that is waited for.
func (s whyAPI) child(ctx context.Context, r client.Reason, id string) (client.Reason, error) {
	r.Code, r.Child = "child", id
	row, err := s.Reader.Instances.Instance(ctx, id)
	if err != nil {
		r.Text = "its child " + id + " has not begun"
		return r, nil //nolint:nilerr // that it is not there is the answer
	}
	r.Text, r.Hint = "its child "+id+" has not ended: "+row.Status, "ask why of that one"
	return r, nil
}

// called says how far a command is.
func called(r *client.Reason, c client.Command, now time.Time) {
	r.Command, r.Code = c.Position, "call"
	switch {
	case c.Unserved:
		r.Code, r.Text = "unserved", "no node that is at work has the function "+c.Target
		r.Hint = "start a node that has it; without one the call fails after about half an hour, with an error of the configuration"
	case c.WaitsFor != "":
		r.Code, r.Text, r.Hint = "line", "the call of "+c.Target+" is not sent yet: it waits for "+c.WaitsFor, "see targets; a breaker can be reset"
	case !c.DeliveredAt.IsZero():
		r.Code, r.Text = "acknowledgement", fmt.Sprintf("its consumer got it %s, delivery %d, and has not acknowledged it", at(c.DeliveredAt), c.Deliveries)
	case c.ClaimedBy != "" && c.NextAt.After(now):
		r.Code, r.Text, r.Until = "claimed", fmt.Sprintf("%s has claimed the call of %s, until %s", c.ClaimedBy, c.Target, at(c.NextAt)[len("at "):]), c.NextAt
		r.Hint = "ask them, or have nodes try it: commands retry"
	case c.NextAt.After(now):
		r.Code, r.Text, r.Until = "retry", fmt.Sprintf("attempt %d at %s failed; the next is %s", c.Attempts, c.Target, at(c.NextAt)), c.NextAt
		sooner(r, c.Pointer)
	case c.ClaimedBy != "":
		r.Text = fmt.Sprintf("node %s calls %s, attempt %d", c.ClaimedBy, c.Target, c.Attempts)
	default:
		r.Code, r.Text, r.Hint = "unclaimed", "no node has taken the call of "+c.Target+" yet", "see queues: is a node at work?"
	}
	if c.LastError != "" {
		r.Text += ": " + c.LastError
	}
}

// dead names the dead letters of an instance: what it may wait for in vain.
func (s whyAPI) dead(ctx context.Context, w *client.Why) error {
	p, err := s.Reader.DeadLetters.DeadLetters(ctx, backend.DeadLetterQuery{InstanceID: w.InstanceID, Limit: maxReasons})
	if err != nil {
		return err
	}
	for _, l := range p.Items {
		w.Reasons = append(w.Reasons, client.Reason{Code: "dead-letter", DeadLetter: l.ID, Text: "a message for it could not be handled: " + l.Reason, Hint: "mend the cause and replay it"})
	}
	return nil
}
