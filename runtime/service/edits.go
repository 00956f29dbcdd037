package service

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/aqueduct-engine/aqueduct/audit"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// entryEdited is the event of a command that is asked for anew with an edited input.
const entryEdited = "CommandEdited"

//go:noinline
func badEdit(format string, args ...any) *problem.Error {
	return problem.New(problem.Invalid, "dead-letter.edit", format, args...)
}

// Edit puts other bytes in the place of what died, which stays beside them. Problems:
// dead-letter.edit, dead-letter.edited, dead-letter.reason, dead-letter.undecided,
// command.settled, command.unknown, limit.letter-edits.
func (l *DeadLetters) Edit(ctx context.Context, id string, e backend.DeadLetterChange) (backend.DeadLetterEdit, error) {
	if err := reasoned(ctx); err != nil {
		return backend.DeadLetterEdit{}, err
	}
	d, err := l.DeadLetters.DeadLetter(ctx, id)
	if err != nil {
		return backend.DeadLetterEdit{}, err
	}
	by := audit.Row(ctx, l.Now(), "edit-letter", id, d.InstanceID)
	edit := backend.DeadLetterEdit{DeadLetterID: id, No: e.After + 1, InstanceID: d.InstanceID, At: by.At, By: actorOf(by), Reason: by.Reason}
	switch {
	case e.Original && e.Envelope == nil && e.Input == nil:
		edit.What = backend.EditOriginal
	case e.Envelope != nil && !e.Original && e.Input == nil:
		edit.What = backend.EditEnvelope
		edit.Body, err = l.envelope(d, e)
	case e.Input != nil && !e.Original && e.Envelope == nil:
		edit.What, edit.Body = backend.EditInput, bytes.TrimSpace(e.Input)
		err = l.input(ctx, d, &edit, e.Key)
	default:
		err = badEdit("one of an envelope, an input and the original is asked for")
	}
	if err != nil {
		return backend.DeadLetterEdit{}, err
	}
	switch err := l.DeadLetters.EditDeadLetter(ctx, edit, by); {
	case errors.Is(err, store.ErrStale):
		return backend.DeadLetterEdit{}, l.edited(ctx, id)
	case errors.Is(err, backend.ErrEdited):
		return backend.DeadLetterEdit{}, problem.New(problem.TooLarge, "limit.letter-edits", "dead letter %s has %d edits, and may have no more", id, backend.MaxDeadLetterEdits).
			WithHint("replay it, or discard it")
	default:
		return edit, err
	}
}

// reasoned refuses who is known to the node, and does not say why.
func reasoned(ctx context.Context) error {
	if audit.Silent(ctx) {
		return problem.New(problem.Invalid, "dead-letter.reason", "who is known says why a dead letter is edited or discarded").
			WithHint("engine-node has --because for it, the API the header X-Aqueduct-Reason")
	}
	return nil
}

// edited says that somebody was faster.
func (l *DeadLetters) edited(ctx context.Context, id string) error {
	p, err := l.DeadLetters.DeadLetterEdits(ctx, id, "", 1)
	if err != nil {
		return err
	}
	n := backend.First(p)
	by := n.By
	if by == "" {
		by = "somebody"
	}
	said := fmt.Sprintf("dead letter %s has never been edited", id)
	if n.No > 0 {
		said = fmt.Sprintf("dead letter %s has edit %d by %s since %s", id, n.No, by, n.At.UTC().Format(time.RFC3339))
	}
	return problem.New(problem.Conflict, "dead-letter.edited", "%s", said).WithHint("look at it (engine-node dlq diff), and edit or replay it as it is then")
}

// envelope checks what is to be sent in the place of a message, and seals it.
func (l *DeadLetters) envelope(d projections.DeadLetter, e backend.DeadLetterChange) ([]byte, error) {
	old, oldErr := signal.Decode(d.Envelope)
	if _, err := signal.CommandPosition(old.Payload); oldErr == nil && err == nil && d.Queue == string(store.Commands) {
		return nil, badEdit("the letter announces a command: its input can be edited, its envelope not")
	}
	env, err := signal.Decode(e.Envelope)
	if problem.CodeOf(err) == "signal.corrupt" { // it has the checksum of what died
		if at := bytes.LastIndex(e.Envelope, []byte(`,"checksum":"`)); at > 0 {
			env, err = signal.Decode(append(bytes.Clone(e.Envelope[:at]), '}'))
		}
	}
	if err != nil {
		return nil, err
	}
	switch {
	case oldErr != nil && d.InstanceID == "", e.Another:
	case oldErr != nil && env.InstanceID != d.InstanceID:
		return nil, another("it is for instance %q, and the letter for %q", env.InstanceID, d.InstanceID)
	case oldErr == nil && env.InstanceID != old.InstanceID:
		return nil, another("it is for instance %q, and the letter for %q", env.InstanceID, old.InstanceID)
	case oldErr == nil && env.Type != old.Type:
		return nil, another("it is a %s, and the letter a %s", env.Type, old.Type)
	}
	// Who has sent it stays who has: policies ask.
	if !bytes.Equal(env.Principal, old.Principal) || env.Headers[signal.HeaderActor] != old.Headers[signal.HeaderActor] {
		return nil, badEdit("principal and headers.actor say who has sent the message: an edit leaves them as they are")
	}
	return env.Encode()
}

func another(format string, args ...any) error {
	return badEdit(format, args...).WithHint("say that it is meant (--another)")
}

// about is the command that a dead letter announces, with its row; ok is false of a letter
// about none, and of one whose command is gone.
func (l *DeadLetters) about(ctx context.Context, d projections.DeadLetter) (row projections.Entry, ok bool, err error) {
	env, err := signal.Decode(d.Envelope)
	if d.Queue != string(store.Commands) || err != nil {
		return row, false, nil
	}
	position, err := signal.CommandPosition(env.Payload)
	if err != nil {
		return row, false, nil
	}
	row, ok, err = l.Commands.Entry(ctx, env.InstanceID, position)
	return row, ok && row.Processed != nil, err
}

// input checks another input of the command that a letter is about, and says under which
// key it is to be sent.
func (l *DeadLetters) input(ctx context.Context, d projections.DeadLetter, edit *backend.DeadLetterEdit, key string) error {
	row, ok, err := l.about(ctx, d)
	if err != nil {
		return err
	}
	if !ok {
		return badEdit("the letter is about no command: its envelope can be edited, an input it has not")
	}
	c, err := l.Commands.Command(row)
	if err != nil {
		return err
	}
	most := signal.MaxBytes
	if c.Target == engine.TargetEvent {
		most = engine.MaxEventBytes
	}
	switch {
	case *row.Processed:
		return problem.New(problem.Conflict, "command.settled", "command %d of %s is settled", row.Position, row.InstanceID)
	case c.Token != "":
		return badEdit("instance %s waits for command %d: what it asks for is its own to say", row.InstanceID, row.Position).
			WithHint("complete or fail the command, or retry or skip the task")
	case c.Target == engine.TargetLifecycle:
		return badEdit("command %d of %s tells of the life of its instance: that is not edited", row.Position, row.InstanceID)
	case !json.Valid(edit.Body):
		return badEdit("the input is not JSON")
	case signal.Depth(edit.Body) > signal.MaxDepth:
		return badEdit("the input nests deeper than %d levels", signal.MaxDepth)
	case len(edit.Body) > most:
		return problem.New(problem.TooLarge, "dead-letter.edit", "the input has %d bytes, and may have %d", len(edit.Body), most)
	case jsontext.Value(c.Input).Kind() == '{' && edit.Body[0] != '{':
		return badEdit("the input of command %d of %s is a JSON object, and what is to be in its place is none", row.Position, row.InstanceID)
	}
	if was, err := bound(c.Input); err == nil && c.Target != engine.TargetEvent {
		is, err := bound(edit.Body)
		if err != nil {
			return problem.Wrap(err, problem.Invalid, "dead-letter.edit", "the input is no JSON object that has each member once")
		}
		if !maps.Equal(was, is) {
			return badEdit("the members %s say which secrets are sent, and where: an edit leaves them as they are", strings.Join(bindings, ", "))
		}
	}
	switch {
	case key == backend.KeySame:
		edit.What = backend.EditSameKey
	case key != "" && key != backend.KeyNew:
		return badEdit("the key is same or new, not %.20q", key)
	case key == "" && row.Unknown:
		return problem.New(problem.Conflict, "dead-letter.undecided",
			"nobody knows whether command %d of %s was done under the key %s, and this would be another request", row.Position, row.InstanceID, row.Key).
			WithHint("say --key new where it may be done beside the former, or --key same where its consumer tells the two apart")
	}
	return nil
}

// actorOf is who has done something, as far as anybody knows, else who they say they are.
func actorOf(by store.Audit) string { return cmp.Or(by.User, by.Claimed) }

// bindings are the members of a request that say which secrets are sent with it, and to whom:
// they are written when a definition is published, and by nobody else.
var bindings = []string{"secrets", "origins", "named", "authentication"}

// bound are the bindings of an input, in whatever letters; an error where it is no object, or
// has a member twice.
func bound(input []byte) (map[string]string, error) {
	var all map[string]jsontext.Value
	if err := jsonv2.Unmarshal(input, &all); err != nil {
		return nil, err
	}
	found := map[string]string{}
	for name, v := range all {
		if slices.ContainsFunc(bindings, func(b string) bool { return strings.EqualFold(b, name) }) {
			if err := v.Canonicalize(); err != nil {
				return nil, err
			}
			found[name] = string(v)
		}
	}
	return found, nil
}

// askedOnce is the id under which an instance has it that a dead letter's command was asked for anew.
func askedOnce(id string) string { return signal.Bounded("edited/" + id) }

// ask asks for the command that a dead letter is about anew, with an edited input: another
// command in the place of the one that was given up, which is discarded by the same turn.
// A second time finds that done.
func (l *DeadLetters) ask(ctx context.Context, d projections.DeadLetter, edit backend.DeadLetterEdit, by store.Audit) error {
	row, ok, err := l.about(ctx, d)
	if err != nil {
		return err
	}
	if !ok {
		return badEdit("the command that the edit is of is gone").WithHint("engine-node dlq edit --original undoes the edit")
	}
	c, err := l.Commands.Command(row)
	if err != nil {
		return err
	}
	once := askedOnce(d.ID)
	if done, err := l.Recorded(ctx, row.InstanceID, once); done || err != nil {
		return err
	}
	now := l.Now()
	settled := problem.New(problem.Conflict, "command.settled", "command %d of %s is settled", row.Position, row.InstanceID).WithHint("discard the dead letter")
	env := signal.Envelope{SignalID: NewID(), InstanceID: row.InstanceID, RuntimeProvider: signal.Provider, Type: signal.RetryDue, OccurredAt: now}
	record := func(t *engine.Turn) error {
		next := c
		next.Input = edit.Body
		if edit.What != backend.EditSameKey {
			visit := fmt.Sprintf("%d.%d", t.Snap.Version, edit.No)
			next.Key = t.Effects.KeyIn(t.Snap.Epoch, engine.Effect{Pointer: c.Pointer + "/edited", Visit: visit}, &next)
		}
		data, err := json.Marshal(map[string]any{"command": row.Position, "deadLetterId": d.ID, "edit": edit.No, "key": next.Key, "editedBy": edit.By, "reason": edit.Reason})
		if err != nil {
			return err
		}
		t.Append(engine.Entry{
			Kind: engine.KindEvent, Dir: engine.In, Type: entryEdited, Data: data, SignalID: once, Meta: engine.Meta{Pointer: c.Pointer, Actor: actorOf(by), Command: row.Position},
		})
		t.Append(engine.Entry{Kind: engine.KindCommand, Dir: engine.Out, Type: row.Type, Command: &next, Meta: engine.Meta{Pointer: c.Pointer}})
		return nil
	}
	_, err = l.Pump.Submit(ctx, turn.Signal{
		Envelope: env, Now: now, Alone: true,
		Decide: func(def engine.Definition, snap *snapshot.Snapshot, in engine.Input) (*engine.Outcome, error) {
			if now, ok, err := l.Commands.Entry(ctx, row.InstanceID, row.Position); err != nil {
				return nil, err
			} else if !ok || *now.Processed {
				return nil, settled
			}
			return l.Note(def, snap, in, record)
		},
		Amend: func(whole *store.Change) {
			whole.Claims = append(whole.Claims, store.Claim{InstanceID: row.InstanceID, Position: row.Position, Done: true, Unknown: true, GivenUp: now})
			audit.Over(whole, by)
		},
	})
	if errors.Is(err, store.ErrTaken) {
		return problem.New(problem.Conflict, "command.taken", "command %d of %s is performed meanwhile", row.Position, row.InstanceID)
	}
	if problem.CodeOf(err) == settled.Code { // by another replay, which takes the letter away
		if done, _ := l.Recorded(ctx, row.InstanceID, once); done {
			return nil
		}
	}
	return err
}
