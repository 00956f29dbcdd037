// Package ack is what the consumer of a command says of it, when the command asks
// for that (D5).
package ack

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// ByNote is what the [engine.Basis] of a turn says that records something of an
// acknowledgement, and changes nothing.
const ByNote = "note"

// None is the [engine.Command.Ack] of a command that is but told: it is delivered as one that
// asks for an acknowledgement, until its consumer has taken it, and is done with then.
const None time.Duration = -1

// MaxDelay bounds what a consumer may ask for with Retry: no command is that old.
const MaxDelay = 365 * 24 * time.Hour

// Open begins the note of a command of which an attempt was answered, by something that does
// not say that nothing was done: what that may have done no later attempt settles.
const Open = "OutcomeOpen: "

const claimBegins = "CommandClaimed until "

// claimed begins the note of a command that somebody outside has claimed, until a
// moment. What an attempt failed with is a note, too, in words that may come from
// outside: they cannot name the moment at which the row's next attempt will be.
func claimed(until time.Time) string {
	return claimBegins + until.UTC().Format("2006-01-02T15:04:05.000000Z") + ": "
}

// Claimed is the note of a command that a worker outside has claimed until a moment,
// over what an attempt before has said of it: while it is theirs, no node tries it again.
// The name of a worker has no control character. Open: an attempt before it has left open
// what it did.
func Claimed(worker string, until time.Time, said string, open bool) string {
	if open {
		worker += leftOpen
	}
	claim := claimed(until) + worker + "\n" + Said(said)
	if StaysOpen(said) {
		claim = Open + claim
	}
	return claim
}

// StaysOpen reports whether an attempt at a command has left open what it did, by its note.
func StaysOpen(note string) bool { return strings.HasPrefix(note, Open) }

// Under is the note of a claim, over what is said of the command since.
func Under(claim, said string) string {
	head, _, _ := strings.Cut(claim, "\n")
	return head + "\n" + said
}

// leftOpen ends the name of a worker in the note of a claim, before which an attempt has
// left open what it did.
const leftOpen = "\tunknown"

// LeftOpen reports whether nobody knows what was done of a command before a worker says what
// they have done: of one that they have claimed, before they did.
func LeftOpen(note string, until time.Time, worker string, unknown bool) bool {
	if worker != "" && Claimant(note, until, time.Time{}) == worker {
		return strings.HasPrefix(strings.TrimPrefix(note, Open), claimed(until)+worker+leftOpen+"\n")
	}
	return unknown
}

// Claimant is who has claimed a command outside, by its note and the moment until
// which it is theirs; "" = nobody, or not any more.
func Claimant(note string, until, now time.Time) string {
	note, ok := strings.CutPrefix(strings.TrimPrefix(note, Open), claimed(until))
	if !ok || !until.After(now) {
		return ""
	}
	worker, _, _ := strings.Cut(note, "\n")
	return strings.TrimSuffix(worker, leftOpen)
}

// Said is what an attempt has said, under the claims that were made since.
func Said(note string) string {
	note = strings.TrimPrefix(note, Open)
	if strings.HasPrefix(note, claimBegins) {
		_, note, _ = strings.Cut(note, "\n")
	}
	return note
}

// Outcome is what a consumer says of a command that it got (D5).
type Outcome string

const (
	Delivered Outcome = "delivered" // it has the command: the time until the next delivery begins anew
	Processed Outcome = "processed" // it is done with it
	Failed    Outcome = "failed"    // it cannot do it, now or ever
	Retry     Outcome = "retry"     // it wants it once more
)

// engineTypes begins the types of errors of instances that wait for an operator.
const engineTypes = "urn:aqueduct:error:"

// Ack is an acknowledgement. Of the optional fields only that of its outcome
// may be set.
type Ack struct {
	Outcome Outcome
	Output  json.RawMessage // Processed: the result of the call, where somebody waits for it; nil = null
	Error   *snapshot.Error // Failed: a field that is empty has its default; nil = all of them
	Delay   time.Duration   // Retry: until the next delivery; 0 = at once
	Actor   string          // who says so; "" = it is not said

	Consumer string // as which consumer they say it; "" = as that of the command
	Signal   string // id of the message that says it, which counts once; "" = it came by none
	Settles  bool   // they end the command of somebody else, and know what they did themselves
}

// Check holds an acknowledgement to its rules. Problem: ack.invalid.
func (a Ack) Check() error {
	bad := func(format string, args ...any) error {
		return problem.New(problem.Invalid, "ack.invalid", format, args...)
	}
	switch {
	case a.Error != nil && strings.HasPrefix(a.Error.Type, engineTypes):
		return bad("errors of the type %s... are the engine's own", engineTypes)
	case !slices.Contains([]Outcome{Delivered, Processed, Failed, Retry}, a.Outcome):
		return bad("outcome %q is none of delivered, processed, failed, retry", a.Outcome)
	case len(a.Output) > 0 && a.Outcome != Processed:
		return bad("only processed has an output, not %s", a.Outcome)
	case len(a.Output) > 0 && !json.Valid(a.Output):
		return bad("the output is not JSON")
	case a.Error != nil && a.Outcome != Failed:
		return bad("only failed has an error, not %s", a.Outcome)
	case a.Delay != 0 && a.Outcome != Retry:
		return bad("only retry has a delay, not %s", a.Outcome)
	case a.Delay < 0:
		return bad("the delay is negative")
	case a.Delay > MaxDelay:
		return bad("the delay of %s exceeds %s", a.Delay, MaxDelay)
	}
	return nil
}

// Failure is the workflow error of a command that failed at its consumer.
func (a Ack) Failure() snapshot.Error {
	e := snapshot.Error{}
	if a.Error != nil {
		e = *a.Error
	}
	if e.Type == "" {
		e.Type = engine.ErrorBase + engine.ErrCommunication
	}
	if e.Status == 0 {
		e.Status = 500
	}
	if e.Title == "" {
		e.Title = "Failed at the consumer"
	}
	return e
}
