package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// maxRewound is how many effects a rewind names.
const maxRewound = 500

func (s pastAPI) rewindOperations(h huma.API) {
	op := operation("rewind-instance", http.MethodPost, "/v1/instances/{id}/rewind", "instances",
		"Take an instance back to the end of an earlier turn", http.StatusNotFound, http.StatusConflict, http.StatusRequestEntityTooLarge)
	op.Description = "The task at which it stood then begins anew, as after a retry. What the outside was asked for since it is asked for again under the same keys, " +
		"so that it can tell, or with newKeys under others. Signals that were taken since are not taken again. The stream keeps what was."
	register(s.service, h, op, s.rewind)
}

type rewindInput struct {
	ByID
	Caller
	Body client.RewindRequest
}

func (s pastAPI) rewind(ctx context.Context, in *rewindInput) (*answer[client.Rewind], error) {
	snap, err := s.Operator.Snapshot(ctx, in.ID)
	if err != nil {
		return nil, unknownInstance(err, in.ID)
	}
	if v := in.Body.StateVersion; v != 0 && v != snap.Version {
		return nil, problem.New(problem.Conflict, "rewind.stale", "instance %s has gone on since: it has version %d, not %d", clip(in.ID), snap.Version, v).
			WithHint("look again, and repeat it")
	}
	past, err := s.Past.At(ctx, in.ID, in.Body.To)
	if err != nil {
		return nil, err
	}
	r := client.Rewind{InstanceID: in.ID, To: past.Position, StateVersion: snap.Version, Status: string(snap.Status), NewKeys: in.Body.NewKeys}
	if err := s.Operator.Rewind(ctx, &snap, &past, in.Body.NewKeys, true, in.Actor); err != nil {
		return nil, err
	}
	if err := s.since(ctx, &r, &snap, &past); err != nil {
		return nil, err
	}
	err = s.Operator.Rewind(ctx, &snap, &past, in.Body.NewKeys, in.Body.DryRun, in.Actor)
	if r.DryRun = in.Body.DryRun; err != nil || r.DryRun {
		return ok(r), err
	}
	if snap, err = s.Operator.Snapshot(ctx, in.ID); err == nil {
		r.Status, r.StateVersion = string(snap.Status), snap.Version
	}
	return ok(r), err
}

// since is what has happened to an instance since it was what it goes back to, with the
// commands that it waited for then. One that has begun a sub-workflow since does not go
// back: nobody undoes that. Nor, but under new keys, does one that has undone something.
func (s pastAPI) since(ctx context.Context, r *client.Rewind, snap, past *snapshot.Snapshot) error {
	r.Waits = waitsOf(snap)
	after, open := past.Position, map[int64]bool{}
	for _, w := range past.Waits {
		if w.Command > 0 {
			after, open[w.Command] = min(after, w.Command-1), true
		}
	}
	for after < snap.Position {
		rows, err := s.Reader.Streams.Stream(ctx, r.InstanceID, after, lookBack)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			break
		}
		for _, row := range rows {
			e := toEntry(row)
			if after = e.Position; after <= past.Position && !open[after] {
				continue
			}
			switch {
			case e.Type == engine.EntryChild:
				return problem.New(problem.Conflict, "rewind.child", "instance %s has begun a sub-workflow since, at %d", r.InstanceID, e.Position).
					WithHint("go back no further than to position %d or behind it", e.Position)
			case e.Kind == string(engine.KindCommand) && undoes(row):
				if !r.NewKeys {
					return problem.New(problem.Conflict, "rewind.undone", "instance %s has undone something since, at %d: under its key it would not be done again", r.InstanceID, e.Position).
						WithHint("ask for it under new keys, or go back no further than behind it")
				}
			case e.Kind == string(engine.KindCommand) && (e.Type == engine.EntryCall || e.Type == engine.EntryEmitted):
				if len(r.Effects) < maxRewound {
					c := toCommand(row)
					r.Effects = append(r.Effects, client.Effect{Position: e.Position, Pointer: e.Pointer, Target: c.Target, Key: e.Key})
				} else {
					r.More++
				}
			case e.Type == string(signal.ExternalSignal) && e.Disposition == "":
				r.Signals++
			}
		}
	}
	return nil
}
