package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/aqueduct-engine/aqueduct/access"
	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/duration"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/principal"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

func (s instanceAPI) instanceOperations(h huma.API) {
	start := operation("start-instance", http.MethodPost, "/v1/instances", "instances", "Start an instance", http.StatusNotFound, http.StatusConflict)
	start.Description = "Idempotent by instanceId, or by definition, businessKey and startKey: a repeat answers 200 with the first one's instance. " +
		"A signal is given to the instance whether the request begins it, in the same commit, or it is there."
	start.DefaultStatus = http.StatusCreated
	register(s.service, h, start, s.start)
	register(s.service, h, operation("list-instances", http.MethodGet, "/v1/instances", "instances",
		"List instances, newest start first", http.StatusNotFound), s.listInstances)
	register(s.service, h, operation("get-instance", http.MethodGet, "/v1/instances/{id}", "instances",
		"Show an instance: what it waits for and what it came to", http.StatusNotFound), s.getInstance)
	register(s.service, h, operation("get-stream", http.MethodGet, "/v1/instances/{id}/stream", "instances",
		"Read the messages of an instance, in order", http.StatusNotFound), s.getStream)
	signalOp := operation("signal-instance", http.MethodPost, "/v1/instances/{id}/signals", "instances",
		"Signal an instance", http.StatusNotFound, http.StatusConflict)
	signalOp.Description = "Durable and applied when the answer comes; disposition says how. One that comes before the instance waits for it is kept."
	signalOp.DefaultStatus = http.StatusAccepted
	register(s.service, h, signalOp, s.signal)
	operateOp := operation(operateInstance, http.MethodPost, "/v1/instances/{id}/operations", "instances",
		"Suspend, resume, retry, skip, cancel or run an instance now", http.StatusNotFound, http.StatusConflict)
	operateOp.Description = "Done when the answer comes, 200. Of an instance of Go code that this node does not have: 202 with the disposition queued; " +
		"a node that has the code does it, and the same asked again before that is the same request."
	register(s.service, h, operateOp, s.operate)
}

type startInput struct {
	Caller
	Key  string `header:"Idempotency-Key" maxLength:"256" doc:"The startKey, when the body has none."`
	Wait string `query:"wait" maxLength:"32" doc:"Answer only when the instance is closed or faulted, or after this long; at most 60s." example:"30s"`
	Body client.StartRequest
}

func (s instanceAPI) start(ctx context.Context, in *startInput) (*answer[client.InstanceDetail], error) {
	wait, err := parseWait(in.Wait)
	if err != nil {
		return nil, err
	}
	b := in.Body
	if b.StartKey == "" {
		b.StartKey = in.Key
	}
	if scope := scopeOf(ctx); !scope.Has(b.Definition) {
		return nil, unknownDefinition(b.Definition)
	} else if scope != nil && b.InstanceID != "" {
		return nil, problem.New(problem.Denied, "access.denied", "who starts instances in some namespaces alone does not choose their ids").
			WithHint("leave instanceId out: a startKey makes the start idempotent")
	}
	start := starts.of(b)
	if b.Signal != nil {
		if err := access.Publishes(principal.Of(ctx), b.Signal.Type); err != nil {
			return nil, err
		}
		known, err := knownBy(b.Signal.DedupeKey, b.Signal.SignalID, in.Key)
		if err != nil {
			return nil, err
		}
		if b.Signal.SignalID == "" { // a key of a start may be longer than the id of a signal
			known = signal.Bounded(known)
		}
		start.Signal = &signal.FirstSignal{ID: known, Type: b.Signal.Type, Data: b.Signal.Data,
			Sender: b.Signal.Sender, Sequence: b.Signal.Sequence}
	}
	if wait == 0 { // who waits for the end has no memory meanwhile
		if _, err := s.Memory.Reads.Take(ctx, bodyFactor*int64(len(b.Input))); err != nil {
			return nil, err
		}
	}
	f := s.follow(s.Starter.IDOf(b.InstanceID, start), wait > 0)
	defer func() { f.leave() }()
	id, isNew, did, err := s.Starter.StartOrSignal(ctx, f.id, start, in.headers())
	if errors.Is(err, store.ErrUnknown) {
		p := problem.Wrap(err, problem.Unavailable, codeUnknown, "the store did not say whether instance %s was started", cmp.Or(id, f.id))
		if b.Signal != nil || scopeOf(ctx) != nil {
			return nil, p.WithHint("look whether it is there; repeated with the startKey and the signalId that it had, the start is done once")
		}
		return nil, p.WithHint("look whether it is there; repeated with its instanceId, or the same startKey, the start is done once")
	}
	if err != nil {
		return nil, err
	}
	if id != f.id { // an instance of the same start key, begun under another id
		f.leave()
		f = s.follow(id, wait > 0)
	}
	s.await(ctx, f, !isNew, wait)
	d := s.started(ctx, f)
	d.Disposition = string(did)
	return created(d, isNew), nil
}

func parseWait(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	d, err := duration.Parse(text)
	if err != nil || d < 0 || d > MaxWait {
		return 0, invalid("query.wait", "wait is not a duration from 0s to %s", MaxWait)
	}
	return d, nil
}

// ByID names what a request is about.
type ByID struct {
	ID string `path:"id" maxLength:"128"`
}

func (s instanceAPI) getInstance(ctx context.Context, in *ByID) (*answer[client.InstanceDetail], error) {
	d, err := s.detail(ctx, in.ID)
	return ok(d), err
}

func unknownInstance(err error, id string) error {
	return missing(err, "instance.unknown", "instance %s does not exist", clip(id))
}

// isThere refuses a list of one instance in which nothing is, when the instance is not there either.
func (s *service) isThere(ctx context.Context, id, after string, found int) error {
	if id == "" || after != "" || found > 0 {
		return nil
	}
	_, err := s.Reader.Instances.Instance(ctx, id)
	return unknownInstance(err, id)
}

// maxCommands bounds the pending commands that an instance shows.
const maxCommands = 100

func (s instanceAPI) detail(ctx context.Context, id string) (client.InstanceDetail, error) {
	if err := s.reads(ctx); err != nil {
		return client.InstanceDetail{}, err
	}
	row, err := s.Reader.Instances.Instance(ctx, id)
	if err != nil {
		return client.InstanceDetail{}, unknownInstance(err, id)
	}
	snap, err := s.Operator.Snapshot(ctx, id)
	if err != nil {
		return client.InstanceDetail{}, unknownInstance(err, id)
	}
	pending, err := s.Reader.Streams.Pending(ctx, id, maxCommands)
	if err != nil {
		return client.InstanceDetail{}, err
	}
	found, err := s.Reader.Instances.Attributes(ctx, id)
	if err != nil {
		return client.InstanceDetail{}, err
	}
	d := s.shown(ctx, row, &snap, pending)
	d.Attributes = toAttributes(found)
	return d, nil
}

// outcome is an instance after something was done to it: as much of it as can be read now. That
// it cannot is no error, which would have who asked do it again: without the snapshot there
// is its row, without that its id.
func (s instanceAPI) outcome(ctx context.Context, id string) client.InstanceDetail {
	d, err := s.detail(ctx, id)
	if err == nil {
		return d
	}
	s.unshown(ctx, id, err)
	d = client.InstanceDetail{Instance: client.Instance{ID: id}, Waits: []client.Wait{}, Commands: []client.Command{}}
	if row, err := s.Reader.Instances.Instance(ctx, id); err == nil {
		d.Instance = toInstance(row)
	}
	return d
}

// done is what is remembered of an instance after something was done to it; where that cannot
// be read now, how and where it is by its row: see outcome.
func (s *service) done(ctx context.Context, id string) snapshot.Snapshot {
	snap, err := s.Operator.Snapshot(ctx, id)
	if err == nil {
		return snap
	}
	s.unshown(ctx, id, err)
	snap = snapshot.Snapshot{}
	if row, err := s.Reader.Instances.Instance(ctx, id); err == nil {
		snap.Status, snap.Version, snap.State.Name = snapshot.Status(row.Status), row.Version, row.Position
		if row.ErrorType != "" {
			snap.Error = &snapshot.Error{Type: row.ErrorType, Detail: row.ErrorDetail}
		}
	}
	return snap
}

// unshown notes that an answer says less than it could.
func (s *service) unshown(ctx context.Context, id string, err error) {
	if ctx.Err() == nil {
		s.Log.Warn("what was done to an instance cannot be shown now", "instance", id, "error", err)
	}
}

// shown is an instance as its row, its snapshot and its pending commands say it is.
func (s instanceAPI) shown(ctx context.Context, row projections.Instance, snap *snapshot.Snapshot, pending []projections.Entry) client.InstanceDetail {
	d := client.InstanceDetail{
		Instance: toInstance(row), Digest: snap.Definition.Digest, Input: snap.State.Input, Output: snap.State.Output,
		Context: snap.State.Context, Branches: branchesOf(snap), Waits: waitsOf(snap), Commands: s.commands(ctx, pending), Buffered: len(snap.Buffer), Gaps: gapsOf(snap),
	}
	if c := snap.Compensating; c != nil {
		d.Why = toError(&c.Error)
	}
	for _, c := range slices.Backward(snap.Compensations) {
		d.Reversals = append(d.Reversals, client.Reversal{Pointer: c.Pointer, Target: c.Target, Input: c.Input, Key: c.Key, Reverses: c.Effect, Open: c.Open})
	}
	for i, w := range snap.Waits {
		d.Waits[i].Child = childOf(snap, w.Token)
	}
	if len(snap.Business.Parts) > 0 {
		d.KeyParts = object(snap.Business.Parts)
	}
	overlay(&d.Instance, snap)
	return d
}

// gapsOf are the sequences that signals wait for.
func gapsOf(s *snapshot.Snapshot) []client.Gap {
	var gaps []client.Gap
	for _, x := range s.Senders {
		n := 0
		for _, b := range s.Ahead {
			if b.Sender == x.Name {
				n++
			}
		}
		if n > 0 {
			gaps = append(gaps, client.Gap{Sender: x.Name, Sequence: x.Last + 1, Waiting: n})
		}
	}
	return gaps
}

// childOf is the instance that a wait is for, if it is for one.
func childOf(snap *snapshot.Snapshot, token string) string {
	for _, f := range snap.SubFrames {
		if f.Token == token {
			return f.InstanceID
		}
	}
	return ""
}

// overlay takes from the snapshot what it knows better: the row is not written
// by turns that change nothing people look for.
func overlay(i *client.Instance, snap *snapshot.Snapshot) {
	i.Status, i.StateVersion, i.UpdatedAt = string(snap.Status), snap.Version, snap.UpdatedAt.UTC()
	i.EndedAt = time.Time{}
	if snap.Status.Closed() {
		i.EndedAt = snap.UpdatedAt.UTC()
	}
	i.State = snap.At()
	i.Error = toError(snap.Error)
}

// toError is an error as clients get it, or nil.
func toError(e *snapshot.Error) *client.InstanceError {
	if e == nil {
		return nil
	}
	return &client.InstanceError{Type: e.Type, Status: e.Status, Title: e.Title, Detail: e.Detail, Pointer: e.Instance}
}

type streamInput struct {
	ID    string `path:"id" maxLength:"128"`
	After int64  `query:"after" minimum:"0" doc:"The position behind which to begin."`
	Limit int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"Items at most."`
}

func (s instanceAPI) getStream(ctx context.Context, in *streamInput) (*answer[client.Page[client.Entry]], error) {
	rows, err := s.Reader.Streams.Stream(ctx, in.ID, in.After, in.Limit)
	if err != nil {
		return nil, unknownInstance(err, in.ID)
	}
	if len(rows) == 0 {
		if _, err := s.Reader.Instances.Instance(ctx, in.ID); err != nil {
			return nil, unknownInstance(err, in.ID)
		}
	}
	out := client.Page[client.Entry]{Items: convert(rows, toEntry)}
	if len(rows) == in.Limit || backend.Full(rows) {
		out.Next = positionText(rows[len(rows)-1].Position)
	}
	return ok(out), nil
}

type signalInput struct {
	ByID
	Caller
	Key  string `header:"Idempotency-Key" maxLength:"128" doc:"The signalId, when the body has none."`
	Body client.SignalRequest
}

func (s instanceAPI) signal(ctx context.Context, in *signalInput) (*answer[client.Accepted], error) {
	id := firstID(in.Body.SignalID, in.Key)
	now := s.Now().UTC()
	event, err := json.Marshal(struct {
		ID     string          `json:"id"`
		Type   string          `json:"type"`
		Source string          `json:"source"`
		Data   json.RawMessage `json:"data,omitempty"`
		Time   time.Time       `json:"time"`
	}{id, in.Body.Type, "api", in.Body.Data, now})
	if err != nil {
		return nil, problem.Wrap(err, problem.Invalid, "request.invalid", "data is not JSON")
	}
	if err := access.Publishes(principal.Of(ctx), in.Body.Type); err != nil && in.Body.Type != "" {
		return nil, err
	}
	if in.Body.Type == "" { // it only takes its number
		switch {
		case in.Body.Sequence == 0:
			return nil, invalid("/type", "the signal has no type")
		case in.Body.Data != nil:
			return nil, invalid("/data", "a signal without a type has no data")
		}
		event = json.RawMessage("{}")
	}
	headers := in.headers()
	known, err := knownBy(in.Body.DedupeKey, id)
	if err != nil {
		return nil, err
	}
	did, err := s.Signaller.Signal(ctx, signal.Envelope{
		SignalID: known, DedupeKey: in.Body.DedupeKey, InstanceID: in.ID, RuntimeProvider: signal.Provider, Type: signal.ExternalSignal,
		OccurredAt: now, Headers: headers, Payload: event, Sender: in.Body.Sender, Sequence: in.Body.Sequence,
	})
	if err != nil {
		return nil, unknownInstance(err, in.ID)
	}
	first, err := s.first(ctx, in.ID, known, did)
	return &answer[client.Accepted]{http.StatusAccepted, client.Accepted{InstanceID: in.ID, SignalID: id, Disposition: string(did), First: first}}, err
}

// runNow is the operation that takes a wait.
const runNow = "run-now"

type operateInput struct {
	ByID
	Caller
	Body client.OperationRequest
}

func (s instanceAPI) operate(ctx context.Context, in *operateInput) (*answer[client.InstanceDetail], error) {
	op := engine.Operation(in.Body.Operation)
	asks(ctx, in.Body.Operation)
	if len(in.Body.Output) > 0 && op != engine.Skip {
		return nil, invalid("/output", "only skip takes an output, not %s", op)
	}
	if in.Body.Wait != "" && op != runNow {
		return nil, invalid("/wait", "only run-now takes a wait, not %s", op)
	}
	var did engine.Disposition
	var err error
	if op == runNow {
		did, err = s.Operator.RunNow(ctx, in.ID, in.Body.Wait, in.Body.StateVersion, in.Actor)
	} else {
		did, err = s.Operator.OperateAt(ctx, in.ID, op, in.Body.Output, in.Body.StateVersion, in.Actor)
	}
	if err != nil {
		return nil, unknownInstance(err, in.ID)
	}
	d := s.outcome(ctx, in.ID)
	if did != engine.Queued {
		return ok(d), nil
	}
	d.Disposition = string(did)
	return &answer[client.InstanceDetail]{http.StatusAccepted, d}, nil
}
