package oracle

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/sql/rows"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// textMax is what a VARCHAR2 column holds, in bytes.
const textMax = 4_000

// plan says what a change writes. Guards come first, the likeliest before the
// others, and rows are locked in the same order by everybody: state, stream,
// tasks.
func (s planner) plan(ctx context.Context, c *store.Change, d *delivery) (*work, error) {
	if c.Inside != nil {
		return s.inside(c, d), nil
	}
	if err := rows.Fit(c); err != nil {
		return nil, err
	}
	w := &work{apart: s.o.Apart}
	if c.Snapshot != nil {
		w.module, w.action = c.Snapshot.Definition.Name, s.doing(c)
	}
	if len(c.Also) > 0 {
		return nil, problem.New(problem.Internal, "store.change", "a commit consumes %d further deliveries, which this store cannot join", len(c.Also))
	}
	if err := s.planState(w, c); err != nil {
		return nil, err
	}
	if err := s.planGuards(ctx, w, c); err != nil {
		return nil, err
	}
	if err := s.planRows(ctx, w, &c.Rows, c.Snapshot != nil && c.Base() == 0); err != nil {
		return nil, err
	}
	if c.Definition != nil {
		w.ops = append(w.ops, define(c.Definition))
	}
	w.audit(c.Audit)
	if c.DeadLetter != nil {
		s.deadLetter(w, d, *c.DeadLetter)
	}
	if d != nil && d.m.Crashes > 0 {
		w.add(nil, "inflight_forget", d.m.ID)
	}
	if d != nil && d.claim != nil {
		w.add(nil, "payload_delete", d.claim.ID)
	}
	if err := s.planSends(w, c.Send); err != nil {
		return nil, err
	}
	for i := range c.With {
		with, err := s.plan(ctx, &c.With[i], nil)
		if err != nil {
			return nil, err
		}
		w.ops, w.sends = append(w.ops, with.ops...), append(w.sends, with.sends...)
	}
	return w, nil
}

// doing is the ACTION of a turn: its trace, which leads to all that was done for one
// start, and without one the task that its instance is at.
func (s planner) doing(c *store.Change) string {
	traceparent := c.Snapshot.Headers[signal.HeaderTraceparent]
	if parts := strings.Split(traceparent, "-"); len(parts) == 4 && s.o.Traced {
		return traceparent
	} else if len(parts) == 4 {
		return parts[1]
	}
	if c.Rows.Instance != nil {
		return c.Rows.Instance.Position
	}
	return ""
}

func (s planner) planState(w *work, c *store.Change) error {
	n := c.Snapshot
	if n == nil {
		return nil
	}
	encoded := c.Encoded
	if encoded == nil {
		var err error
		if encoded, err = n.Encode(); err != nil {
			return err
		}
	}
	var kind, token, task string
	if p, ok := n.Primary(); ok {
		kind, token, task = string(p.Kind), p.Token, p.TaskID
	}
	var lastError, errorCode string
	if n.Error != nil {
		lastError, errorCode = inJSON(n.Error), n.Error.Type
	}
	resume := ""
	if r := n.Resume(); r != nil {
		resume = inJSON(r)
	}
	args := []any{n.Version, snapshot.SchemaVersion, n.Business.Key, within(inJSON(n.Business), textMax), string(n.Status),
		kind, token, stamp(c.Runtime.Due), task, within(resume, textMax), c.Runtime.LastSignalID, within(errorCode, 512),
		within(lastError, textMax), c.Runtime.ExecutedBy, stamp(c.Runtime.ExecutedAt), projections.Sum(encoded), encoded}
	if c.Base() == 0 {
		w.add(nil, "state_insert", append([]any{n.InstanceID, n.InstanceID}, args...)...)
		return nil
	}
	stale := fmt.Errorf("%s is not at version %d: %w", n.InstanceID, c.Base(), store.ErrStale)
	w.add(stale, "state_update", append(args, n.InstanceID, c.Base(), s.ownEpoch())...)
	return nil
}

// ownEpoch is the epoch that the node goes by, as WF_META has it: a turn that is made in an
// earlier one than the database's is stale, until the heartbeat ends the node (sameEpoch). Who
// goes by none is of all.
func (s planner) ownEpoch() []byte {
	known := s.epoch.Load()
	if known == 0 {
		known = math.MaxInt64
	}
	return binary.BigEndian.AppendUint64(nil, uint64(known))
}

// inJSON is for columns that repeat what the document says.
func inJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}

// planClaims claims and settles commands: those that are seen, which come first, or the others.
func (s planner) planClaims(ctx context.Context, w *work, claims []store.Claim, seen bool) error {
	for _, m := range claims {
		if m.Seen != seen {
			continue
		}
		expect := m.Expect
		switch {
		case m.Any:
			expect = "" // null: whoever has it
		case expect == "":
			expect = " " // an empty text is null, and null equals nothing
		}
		if m.Done {
			w.add(fmt.Errorf("end %s/%d: %w", m.InstanceID, m.Position, store.ErrTaken), "stream_done", stamp(m.GivenUp), flag(&m.Unknown), m.InstanceID, m.Position, expect)
			continue
		}
		run, err := s.runOf(ctx, m.Owner)
		if err != nil {
			return err
		}
		w.add(fmt.Errorf("claim %s/%d: %w", m.InstanceID, m.Position, store.ErrTaken), "stream_claim", m.Owner, run, m.Attempts,
			stamp(m.NextAt), clip(m.Error), stamp(m.Delivered), m.Deliveries, flag(&m.Unknown), stamp(m.GivenUp), m.InstanceID, m.Position, expect, stamp(m.ExpectNext), sql.NullInt64{Int64: int64(m.Attempts), Valid: m.Seen})
	}
	return nil
}

// planGuards refuses what is not as the change expects it.
func (s planner) planGuards(ctx context.Context, w *work, c *store.Change) error {
	id := instanceOf(c)
	if p := c.Rows.Policy; p != nil && c.Snapshot != nil {
		w.add(fmt.Errorf("%s goes by a newer policy than %d: %w", id, p.Ordinal, store.ErrStale), "policy_guard", id, p.Name, p.Ordinal)
	}
	if err := s.planClaims(ctx, w, c.Claims, true); err != nil {
		return err
	}
	for i := range c.Rows.Settled {
		s := &c.Rows.Settled[i]
		w.add(fmt.Errorf("settle %s/%d: %w", id, s.Position, store.ErrTaken), "stream_settle", flag(&s.Unknown), id, s.Position)
	}
	if err := s.planClaims(ctx, w, c.Claims, false); err != nil {
		return err
	}
	for i := range c.Tasks {
		e := &c.Tasks[i]
		w.edit(e)
	}
	for i := range c.Rows.TaskEnds {
		e := &c.Rows.TaskEnds[i]
		w.add(fmt.Errorf("end task %s: %w", e.ID, store.ErrStale), "task_end", e.Status, e.By, stamp(e.At), e.Outcome, backend.EndSum(e), e.Output, e.ID, some(e.Version))
	}
	return nil
}

// runOf is the run of a node's name: that under which its claims are known to
// be alive.
func (s planner) runOf(ctx context.Context, node string) (string, error) {
	switch node {
	case "":
		return "", nil
	case s.o.Node:
		return s.run, nil
	}
	run := ""
	s.readCalls.Add(1)
	err := s.db.QueryRowContext(ctx, text("node_run"), node).Scan(&run)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return run, explain(err)
}

// instanceOf returns the instance that a change is about, or "".
func instanceOf(c *store.Change) string {
	r := &c.Rows
	switch {
	case c.Snapshot != nil:
		return c.Snapshot.InstanceID
	case r.Instance != nil:
		return r.Instance.ID
	case len(r.Stream) > 0:
		return r.Stream[0].InstanceID
	}
	return ""
}

// planRows writes the projections; first says that no turn of the instance was before.
func (s planner) planRows(ctx context.Context, w *work, r *projections.Rows, first bool) error {
	if r.Instance != nil {
		w.instance(r.Instance, first || r.Instance.Version == 1)
	}
	for i := range r.Stream {
		e := &r.Stream[i]
		run, err := s.runOf(ctx, e.ClaimedBy)
		if err != nil {
			return err
		}
		w.entry(e, run)
		if isRequest(e.SignalID) {
			w.add(nil, "request_done", s.o.Node, e.SignalID, e.InstanceID)
		}
	}
	for i := range r.Tasks {
		w.task(&r.Tasks[i])
	}
	for i := range r.TaskEvents {
		w.taskEvent(&r.TaskEvents[i], r.Tasks, r.TaskEnds)
	}
	for _, token := range r.WaitsGone { // first: a wait that is found otherwise from now on goes and comes
		w.add(nil, "wait_delete", token)
	}
	for i := range r.Waits {
		v := &r.Waits[i]
		w.add(nil, "wait_insert", v.Token, v.InstanceID, v.EventType, v.Spec, v.KeyHash, stamp(v.CreatedAt))
	}
	for i := range r.Attributes {
		w.attribute(&r.Attributes[i], first)
	}
	return nil
}

func (w *work) instance(i *projections.Instance, first bool) {
	detail := clip(i.ErrorDetail)
	ahead := some(int64(i.Ahead)) // null is in no index
	if !first {
		w.add(nil, "instance_update", i.DefVersion, i.Status, i.Position, i.Version, i.ErrorType, detail, stamp(i.UpdatedAt), stamp(i.EndedAt), ahead, i.ID)
		return
	}
	var digest []byte
	if i.StartKey != "" {
		digest = startDigest(i.Definition, i.BusinessKey, i.StartKey)
	}
	row := *i
	row.ErrorDetail = detail
	w.add(nil, "instance_insert", instanceColumns.Named(statements["instance_insert"].binds, &row, values, map[string]any{"START_DIGEST": digest})...)
}

// startDigest is what makes a start key unique, however long its parts are.
func startDigest(definition, businessKey, startKey string) []byte {
	sum := sha256.Sum256([]byte(inJSON([]string{definition, businessKey, startKey})))
	return sum[:]
}

func (w *work) entry(e *projections.Entry, run string) {
	w.add(nil, "stream_insert", e.InstanceID, e.Position, e.Kind, e.Direction, e.Type, e.SignalID, stamp(e.CreatedAt),
		flag(e.Processed), stamp(e.ProcessedAt), e.ClaimedBy, run, e.Attempts, stamp(e.NextAttemptAt), clip(e.LastError),
		stamp(e.DeliveredAt), e.Deliveries, e.Key, e.Checksum(e.InstanceID, e.Data), e.Data, e.Metadata)
}

func (w *work) task(k *projections.Task) {
	sums := backend.SumsOf(k, k.InstanceID)
	w.add(nil, "task_insert", taskColumns.Named(statements["task_insert"].binds, k, values, map[string]any{
		"CHECKSUM": sums.Made, "ASSIGNED_CHECKSUM": sums.Assigned, "CANDIDATES_CHECKSUM": sums.Candidates, "END_CHECKSUM": some(sums.Ended),
	})...)
	w.actors(k.ID, "U", k.CandidateUsers)
	w.actors(k.ID, "G", k.CandidateGroups)
	w.actors(k.ID, "X", k.ExcludedUsers)
}

// taskEvent writes an event of a task. The database takes a long value as one of
// VALUES and nowhere else, so that the task cannot be looked for by the insert: a
// guard does it, unless the change has the task in its hands already.
func (w *work) taskEvent(e *projections.TaskEvent, made []projections.Task, ended []projections.TaskEnd) {
	if !slices.ContainsFunc(made, func(t projections.Task) bool { return t.ID == e.TaskID }) &&
		!slices.ContainsFunc(ended, func(t projections.TaskEnd) bool { return t.ID == e.TaskID }) {
		w.add(fmt.Errorf("event of task %s: %w", e.TaskID, store.ErrNotFound), "task_lock", e.TaskID, e.InstanceID)
	}
	w.eventOf(e)
}

// eventOf writes an event of a task that the change has in its hands.
func (w *work) eventOf(e *projections.TaskEvent) {
	w.add(nil, "task_event_insert", e.TaskID, e.InstanceID, e.Event, e.Actor, stamp(e.At), backend.EventSum(e), e.Data)
}

// deadLetter takes the delivery's message out of circulation.
func (s planner) deadLetter(w *work, d *delivery, l projections.DeadLetter) {
	if l.ID == "" {
		l.ID = uuid.NewString()
	}
	if d != nil {
		l.Queue, l.Priority = cmp.Or(l.Queue, string(d.m.Queue)), cmp.Or(l.Priority, d.m.Priority)
		if l.Envelope == nil {
			l.Envelope = d.m.Body
		}
	}
	w.add(nil, "dead_letter_insert", l.ID, l.Queue, l.InstanceID, l.Reason, clip(l.Detail), l.Attempts, l.Node,
		stamp(l.EnqueuedAt), stamp(l.DiedAt), l.Priority, l.Envelope)
	s.notice(w, &l)
	if id := headOf(l.Envelope).SignalID; isRequest(id) {
		w.add(nil, "request_refused", l.Reason, clip(l.Detail), l.Node, id)
	}
}

// isRequest says whether a signal is what an operator has asked of AQUEDUCT_ADMIN,
// and its verdict a row of WF_REQUESTS.
func isRequest(signalID string) bool { return strings.HasPrefix(signalID, "operator-request-") }

// planSends groups messages by queue, each in its order.
func (s planner) planSends(w *work, list []store.Send) error {
	now := s.clock.now()
	at := map[string]int{}
	for i := range list {
		q, ok := s.queue(list[i].Queue)
		if !ok {
			return fmt.Errorf("queue %q: %w", list[i].Queue, store.ErrNotFound)
		}
		n, ok := at[q.Name]
		if !ok {
			n = len(w.sends)
			at[q.Name] = n
			w.sends = append(w.sends, batch{queue: q})
		}
		out := w.deposit(outgoing(&list[i], now), now)
		if err := out.Check(); err != nil {
			return err
		}
		w.sends[n].list = append(w.sends[n].list, out)
	}
	return nil
}
