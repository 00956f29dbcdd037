package dispatch

import (
	"context"
	"fmt"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
)

// The row of a command that asks for it is its acknowledgement (D5): pending until a performer has succeeded, then
// delivered, then processed. What delivers it again is the announcement of its next attempt, which is committed with
// each delivery; nobody looks for rows that are late.

// Notices of D5: what a row says of a command that is performed again.
const (
	NoticeOpen     = "OutcomeOpen: "               // begins what is said of one that may have been done: an answer has left it open
	NoticeRetry    = "AckRetryPending"             // it was not delivered, or the consumer asks for it
	NoticeReminder = "AckReminderProcessedPending" // it was delivered, and not processed in time
	NoticeGivenUp  = "AckGivenUp"                  // it is a dead letter, and is not performed before that is replayed
)

// codeAckMissing is the reason of the dead letter of one that nobody waits for and nobody has acknowledged.
const codeAckMissing = "ack.missing"

// Spoken is a command of which its consumer speaks, how often it was delivered, with the delivery that is spoken of,
// and its age. What a consumer says changes who has the command by a claim of any owner's: see Again and Abandon.
func Spoken(row projections.Entry, age time.Duration) (j *Job, deliveries int, err error) {
	j, err = jobOf(row)
	j.age = age
	if row.ClaimedBy != "" || j.failures > 0 {
		j.deliveries++ // it has not been counted yet
	}
	return j, j.deliveries, err
}

// Command is the command of a job.
func (j *Job) Command() engine.Command { return j.command }

// delivered records that the consumer has got a command. When it has spoken already, that counts, and this does not.
func (r Record) delivered(ctx context.Context, j *Job) error {
	note := ""
	if j.deliveries > 0 {
		note = j.note
	}
	pause, age := r.AckTimes(ctx, j.command, j.command.Ack, j.deliveries+1)
	j.age = age
	change, err := r.Again(j, pause, store.Claim{Expect: r.Node, Delivered: r.Now(), Deliveries: j.deliveries + 1, Error: note})
	if err != nil {
		return err
	}
	return r.ended(ctx, change)
}

// overtaken reports whether a consumer has spoken of a command while this node delivered it, or another performance of
// it has begun, by who took this node for dead: how this one failed says nothing of theirs.
func (r Record) overtaken(ctx context.Context, j *Job) (over bool, err error) {
	err = retryCommit(ctx, func() error {
		row, ok, err := r.Entry(ctx, j.Instance, j.position)
		over = ok && (row.ClaimedBy != r.Node || j.command.Ack <= 0 && row.Attempts > j.failures+1)
		return err
	})
	return over, err
}

// outdated reports whether an announcement is not the last one made of its command: who claims it outside, or has it
// tried at once, announces it anew.
func outdated(env signal.Envelope, j *Job, row projections.Entry) bool {
	last := env.DueAt.Compare(row.NextAttemptAt)
	return last < 0 || last > 0 && j.command.Ack != 0
}

// keptAnswer reports whether a suspended instance keeps the answer to a command. Of others the snapshot, which may be
// large, is not read.
func (r Record) keptAnswer(ctx context.Context, delivery store.Delivery, j *Job) (bool, error) {
	if j.command.Token == "" {
		return false, nil
	}
	if suspended, err := r.Suspended(ctx, j.Instance); !suspended || err != nil {
		return false, err
	}
	snap, part, err := r.Load(ctx, delivery, j.Instance)
	if err != nil {
		return false, err
	}
	defer part.Release()
	return snap.Answered(j.command.Token), nil
}

// unacknowledged gives up a command that nobody has acknowledged, or taken, for AckAge.
func (r Record) unacknowledged(ctx context.Context, delivery store.Delivery, j *Job) error {
	e := snapshot.Error{Type: engine.ErrorBase + engine.ErrTimeout, Status: 504}
	if j.command.Ack < 0 {
		e.Title, e.Detail = "Not delivered", fmt.Sprintf("not delivered within %s: %s", j.age, j.note)
		return r.giveUp(ctx, delivery, j, undeliveredCode(j), e)
	}
	j.unknown = true // it was delivered
	e.Title, e.Detail = "Not acknowledged", fmt.Sprintf("not acknowledged within %s, after %d deliveries and %d failed attempts", j.age, j.deliveries, j.failures)
	return r.giveUp(ctx, delivery, j, codeAckMissing, e)
}
