package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"

	"github.com/danielgtaylor/huma/v2"
	jsonv2 "github.com/go-json-experiment/json"

	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// entryRewound is the entry of the stream that a rewind leaves, see operate.
const entryRewound = "Rewound"

// maxRewound is how many effects a rewind names.
const maxRewound = 500

func (s pastAPI) rewindOperations(h huma.API) {
	op := operation(rewindInstance, http.MethodPost, "/v1/instances/{id}/rewind", "instances",
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
	if in.Body.To > snap.Position {
		return nil, problem.New(problem.NotFound, "stream.position", "instance %s has no entry %d: its stream ends at %d", clip(in.ID), in.Body.To, snap.Position)
	}
	past, err := s.Past.At(ctx, in.ID, in.Body.To)
	if err != nil {
		return nil, err
	}
	r := client.Rewind{InstanceID: in.ID, To: past.Position, StateVersion: snap.Version, Status: string(snap.Status), NewKeys: in.Body.NewKeys}
	refused := s.Operator.Rewind(ctx, &snap, &past, in.Body.NewKeys, true, in.Actor)
	if refused != nil && problem.CodeOf(refused) != "rewind.child" { // of which the stream says more
		return nil, refused
	}
	if err := cmp.Or(s.since(ctx, &r, &snap, &past), refused); err != nil {
		return nil, err
	}
	err = s.Operator.Rewind(ctx, &snap, &past, in.Body.NewKeys, in.Body.DryRun, in.Actor)
	if r.DryRun = in.Body.DryRun; err != nil || r.DryRun {
		return ok(r), err
	}
	now := s.done(ctx, in.ID)
	r.Status, r.StateVersion = string(now.Status), now.Version
	return ok(r), nil
}

// since is what has happened to an instance since it was what it goes back to, with the
// commands that it waited for then. One that has begun a sub-workflow since does not go
// back: nobody undoes that. Nor, but under new keys, does one that has undone something.
func (s pastAPI) since(ctx context.Context, r *client.Rewind, snap, past *snapshot.Snapshot) error {
	r.Waits = waitsOf(snap)
	after, l := past.Position, later{past: past.Position, newKeys: r.NewKeys, open: map[int64]bool{}, children: map[string]bool{}}
	for _, f := range past.SubFrames {
		l.child, l.children[f.InstanceID] = past.Position, true
	}
	for _, w := range past.Waits {
		if w.Command > 0 {
			after, l.open[w.Command] = min(after, w.Command-1), true
		}
	}
	err := s.entries(ctx, r.InstanceID, after, snap.Position, func(e *projections.Entry) bool {
		l.add(e)
		return false
	})
	if err != nil {
		return err
	}
	r.Effects, r.Signals = l.effects, l.signals
	if n := len(r.Effects) - maxRewound; n > 0 {
		r.Effects, r.More = r.Effects[:maxRewound], n
	}
	return l.refused(r.InstanceID)
}

// derived is how keys begin that no author gives: with an incarnation and an epoch.
var derived = regexp.MustCompile(`^([A-Za-z0-9_-]{16}/[0-9]+/|$)`)

// later is what an instance did after it was what it goes back to.
type later struct {
	past    int64          // position to which it goes back
	open    map[int64]bool // commands that it waited for then
	newKeys bool           // it goes back under new keys

	effects     []client.Effect
	signals     int
	compensated int64           // position of the last that undoes something
	anew        int64           // position of the last rewind under new keys
	child       int64           // position of the last sub-workflow
	children    map[string]bool // that go on
	ended       int64           // where none went on any more
}

func (l *later) add(row *projections.Entry) {
	e := toEntry(*row)
	if e.Position <= l.past && !l.open[e.Position] {
		return
	}
	switch asks := e.Kind == string(engine.KindCommand); {
	case e.Type == engine.EntryChild:
		var began struct {
			ID    string `json:"instanceId"`
			Await bool   `json:"await"`
		}
		_ = jsonv2.Unmarshal(row.Data, &began) // what the engine has written
		if l.child = e.Position; began.Await {
			l.children[began.ID] = true
		}
		l.ended = e.Position
	case e.Type == string(signal.SubWorkflowCompleted):
		var end engine.ChildEnd
		if _ = jsonv2.Unmarshal(row.Data, &end); l.children[end.Child] {
			delete(l.children, end.Child)
			l.ended = e.Position
		}
	case e.Type == entryRewound:
		l.rewound(row)
	case asks && undoes(*row):
		l.compensated = e.Position
	case asks && (e.Type == engine.EntryCall || e.Type == engine.EntryEmitted):
		l.effects = slices.DeleteFunc(l.effects, func(x client.Effect) bool { return x.Key == e.Key && e.Key != "" })
		l.effects = append(l.effects, client.Effect{
			Position: e.Position, Pointer: e.Pointer, Target: toCommand(*row).Target, Key: e.Key, OwnKey: !derived.MatchString(e.Key),
		})
	case e.Type == string(signal.ExternalSignal) && e.Disposition == "":
		l.signals++
	}
}

// rewound forgets what another rewind has had done under new keys: nobody asks for it
// under the keys of before.
func (l *later) rewound(row *projections.Entry) {
	var back struct {
		To      int64 `json:"to"`
		NewKeys bool  `json:"newKeys"`
	}
	if _ = jsonv2.Unmarshal(row.Data, &back); !back.NewKeys { // what the engine has written
		return
	}
	gone := func(position int64) bool { return back.To <= l.past || position > back.To }
	l.effects = slices.DeleteFunc(l.effects, func(x client.Effect) bool { return gone(x.Position) })
	if gone(l.compensated) {
		l.compensated = 0
	}
	if l.anew = 0; len(l.effects) > 0 {
		l.anew = row.Position
	}
}

// refused says why an instance does not go back there, and how far it does.
func (l *later) refused(id string) error {
	no := func(code, detail string, args ...any) *problem.Error {
		return problem.New(problem.Conflict, code, "instance %s %s", id, fmt.Sprintf(detail, args...))
	}
	switch {
	case l.child > 0 && len(l.children) == 0:
		return no("rewind.child", "has begun a sub-workflow since, at %d", l.child).WithHint("go back no further than to position %d, where it had ended", l.ended)
	case l.child > 0:
		return no("rewind.child", "has begun a sub-workflow since, at %d", l.child).WithHint("go back no further than to where it had ended")
	case l.newKeys:
		return nil
	case l.compensated > 0:
		return no("rewind.undone", "has undone something since, at %d: under its key it would not be done again", l.compensated).
			WithHint("ask for it under new keys, or go back no further than behind it")
	case l.anew > 0:
		return no("rewind.new-keys", "was taken back since under new keys, at %d: what it did before would be done again", l.anew).
			WithHint("ask for it under new keys, or go back no further than that rewind did")
	}
	return nil
}
