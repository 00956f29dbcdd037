package runtime

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/aqueduct-engine/aqueduct/ack"
	"github.com/aqueduct-engine/aqueduct/audit"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime/dispatch"
	"github.com/aqueduct-engine/aqueduct/runtime/service"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
)

// A pending command is performed by nodes, and besides by whoever claims it outside, or
// knows what became of it (C3). Of several who end it one is in time: the others find it
// settled, or their result stale.

// What people and workers outside do with commands, as entries of the stream.
const (
	entryCommandClaimed   = "CommandClaimed"
	entryCommandRetried   = "CommandRetried"
	entryCommandCompleted = "CommandCompleted"
	entryCommandFailed    = "CommandFailed"
	entryCommandRepeated  = "CommandRepeated" // the first of those who came too late, as entryRepeated is
)

// Bounds of what is said of a claim.
const (
	workerMax = 256
	leaseMin  = time.Second
	leaseMax  = 7 * 24 * time.Hour
)

func taken(row projections.Entry, by string) error {
	return problem.New(problem.Conflict, "command.taken", "command %d of %s is claimed by %s", row.Position, row.InstanceID, by).
		WithHint("complete and fail end it over a node's claim; a worker's ends with its lease, or by retry")
}

const codeGivenUp = "command.given-up"

// isGivenUp refuses what would have a command tried, or fail, beside its dead letter.
func isGivenUp(row projections.Entry) error {
	return problem.New(problem.Conflict, codeGivenUp, "command %d of %s was given up: %s", row.Position, row.InstanceID,
		strings.TrimPrefix(row.LastError, dispatch.NoticeGivenUp+": ")).
		WithHint("it is an operator's, by its dead letter (engine-node dlq list): replay that, or discard it; complete ends the command, too")
}

// ClaimCommand gives a pending command that no node performs to a worker outside, until
// the lease ends: then nodes try it again, under the same key, as after an attempt of
// which nobody knows what it did. Who has it may claim it again, for longer. Problems:
// command.invalid, command.unknown, command.settled, command.taken, command.given-up.
func (a *acknowledger) ClaimCommand(ctx context.Context, instance string, position int64, worker string, lease time.Duration) (projections.Entry, error) {
	switch {
	case worker == "" || !utf8.ValidString(worker) || utf8.RuneCountInString(worker) > workerMax || strings.ContainsFunc(worker, unicode.IsControl):
		return projections.Entry{}, problem.New(problem.Invalid, "command.invalid", "who claims a command has a name of 1 to %d characters, and no control character", workerMax).
			WithHint("engine-node takes it from --actor, the API from X-Aqueduct-Actor where nobody is asked for a token")
	case lease < leaseMin || lease > leaseMax:
		return projections.Entry{}, problem.New(problem.Invalid, "command.invalid", "a lease lasts between %s and %d days, not %s", leaseMin, leaseMax/(24*time.Hour), lease)
	}
	return a.change(ctx, place{instance, position}, entryCommandClaimed, worker, func(_ *snapshot.Snapshot, j *dispatch.Job, row projections.Entry) (store.Change, error) {
		if by := ack.Claimant(row.LastError, row.NextAttemptAt, a.dispatcher.Now()); by != "" && by != worker {
			return store.Change{}, taken(row, by)
		}
		if !row.GivenUpAt.IsZero() { // it begins anew
			row.Attempts = 0
		}
		c, err := a.dispatcher.Record.Again(j, lease, store.Claim{
			Attempts: row.Attempts, Delivered: row.DeliveredAt, Deliveries: row.Deliveries,
		})
		for i := range c.Claims {
			claim := &c.Claims[i]
			open := ack.LeftOpen(row.LastError, row.NextAttemptAt, worker, row.Unknown)
			claim.Error, claim.Unknown = ack.Claimed(worker, claim.NextAt, row.LastError, open), true // unless they say what they did
		}
		return c, err
	})
}

// RetryCommand has nodes try a pending command at once, with all its attempts before it,
// whoever has claimed it outside. Problems: as of ClaimCommand.
func (a *acknowledger) RetryCommand(ctx context.Context, instance string, position int64, actor string) (projections.Entry, error) {
	return a.retryAt(ctx, instance, position, 0, actor)
}

// retryAt is RetryCommand while the instance is at a version; 0 = whatever it is. Problem:
// instance.changed.
func (a *acknowledger) retryAt(ctx context.Context, instance string, position, version int64, actor string) (projections.Entry, error) {
	return a.change(ctx, place{instance, position}, entryCommandRetried, actor, func(snap *snapshot.Snapshot, j *dispatch.Job, row projections.Entry) (store.Change, error) {
		if err := service.ChangedSince(snap, version); err != nil {
			return store.Change{}, err
		}
		note := ack.Said(row.LastError)
		if ack.StaysOpen(row.LastError) {
			note = ack.Open + note
		}
		return a.dispatcher.Record.Again(j, 0, store.Claim{Delivered: row.DeliveredAt, Deliveries: row.Deliveries, Error: note})
	})
}

// SettleCommand ends a pending command: processed with its output, or failed with an
// error. What a node makes of it then is stale, and its attempt is aborted where it can
// be. Problems: ack.invalid, command.unknown, command.taken (a worker outside has it who
// is another), signal.too-large, limit.buffer.
func (a *acknowledger) SettleCommand(ctx context.Context, instance string, position int64, said ack.Ack) (engine.Disposition, error) {
	said.Settles = true
	action := "complete-command"
	if said.Outcome == ack.Failed {
		action = "fail-command"
	}
	by := audit.As(audit.Row(ctx, a.dispatcher.Now(), action, dispatch.Key(engine.Command{Instance: instance, Position: position}), instance), said.Actor)
	return a.take(ctx, place{instance, position}, said, func(row projections.Entry, c engine.Command) error {
		if !*row.Processed && said.Outcome == ack.Failed && givenUp(row) {
			return isGivenUp(row)
		}
		if who := ack.Claimant(row.LastError, row.NextAttemptAt, a.dispatcher.Now()); !*row.Processed && who != "" && who != said.Actor {
			return taken(row, who)
		}
		return nil
	}, by)
}

// change commits what becomes of a command that no node performs, in a turn of its
// instance: of several who ask, each sees what the one before has done.
func (a *acknowledger) change(ctx context.Context, at place, entry, actor string, decide func(*snapshot.Snapshot, *dispatch.Job, projections.Entry) (store.Change, error)) (projections.Entry, error) {
	by := audit.As(audit.Row(ctx, a.dispatcher.Now(), auditActions[entry], dispatch.Key(engine.Command{Instance: at.instance, Position: at.position}), at.instance), actor)
	unknown := false // a commit may have been made
	for try := 0; ; try++ {
		by.ID = uuid.NewString()
		err := a.changed(ctx, at, entry, actor, decide, by)
		unknown = unknown || errors.Is(err, store.ErrUnknown)
		if errors.Is(err, store.ErrTaken) || errors.Is(err, store.ErrUnknown) { // it is looked at again
			if try < ackTries && turn.Pause(ctx, 50*time.Millisecond) {
				continue
			}
		}
		switch {
		case unknown && entry == entryCommandRetried && (problem.CodeOf(err) == "command.taken" || problem.CodeOf(err) == "command.settled"):
			err = nil // a node tries it, or has done it
		case unknown && err != nil && entry == entryCommandRetried, unknown && problem.KindOf(err) == problem.Unavailable: // by our own, or it cannot be looked at
			err = store.Unknown(err)
		}
		if err != nil {
			return projections.Entry{}, err
		}
		row, _, err := a.command(ctx, at)
		return row, err
	}
}

// auditActions are the actions of operators by their entries.
var auditActions = map[string]string{entryCommandClaimed: "claim-command", entryCommandRetried: "retry-command"}

func (a *acknowledger) changed(ctx context.Context, at place, entry, actor string, decide func(*snapshot.Snapshot, *dispatch.Job, projections.Entry) (store.Change, error), by store.Audit) error {
	now := a.dispatcher.Now()
	var change store.Change
	s := turn.Signal{
		Envelope: signal.Envelope{
			SignalID: "command/" + uuid.NewString(), InstanceID: at.instance, RuntimeProvider: signal.Provider, Type: signal.RetryDue, OccurredAt: now,
		},
		Now: now, Alone: true, // two claims in one turn would not see each other
		Amend: func(whole *store.Change) {
			whole.Claims = append(whole.Claims, change.Claims...)
			whole.Send = append(whole.Send, change.Send...)
			audit.Over(whole, by)
		},
	}
	s.Decide = func(def engine.Definition, snap *snapshot.Snapshot, in engine.Input) (*engine.Outcome, error) {
		row, c, err := a.command(ctx, at)
		switch {
		case err != nil:
			return nil, err
		case *row.Processed:
			return nil, problem.New(problem.Conflict, "command.settled", "command %d of %s is settled", at.position, at.instance)
		case snap.Answered(c.Token):
			return nil, problem.New(problem.Conflict, "command.settled", "command %d of %s is answered: the instance is suspended, and has the answer when it goes on", at.position, at.instance)
		case row.ClaimedBy != "":
			return nil, taken(row, row.ClaimedBy)
		case c.Ack != 0 && givenUp(row):
			return nil, isGivenUp(row)
		}
		j, _, err := a.job(ctx, row)
		if err == nil {
			change, err = decide(snap, j, row)
		}
		if err != nil {
			return nil, err
		}
		for i := range change.Claims { // a node may give it up meanwhile, which is no turn
			change.Claims[i].ExpectNext = row.NextAttemptAt
		}
		n := noteOf(c, &change)
		n.Actor, n.Reason = actor, ""
		n.Stays = ack.Stays(def, c.Pointer, entry)
		return ackTurn(def, snap, in, func(t *engine.Turn) error { return n.Record(t, c, entry, "") })
	}
	_, err := a.notes.pump.Submit(ctx, s)
	return err
}

// audited has a turn written with rows of the audit.
func audited(by []store.Audit) func(*store.Change) {
	return func(c *store.Change) {
		for _, row := range by {
			audit.Over(c, row)
		}
	}
}
