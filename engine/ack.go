package engine

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// AckOutcome is what a consumer says of a command that it got (D5).
type AckOutcome string

const (
	AckDelivered AckOutcome = "delivered" // it has the command: the time until the next delivery begins anew
	AckProcessed AckOutcome = "processed" // it is done with it
	AckFailed    AckOutcome = "failed"    // it cannot do it, now or ever
	AckRetry     AckOutcome = "retry"     // it wants it once more
)

// Ack is an acknowledgement. Of the optional fields only that of its outcome
// may be set.
type Ack struct {
	Outcome AckOutcome
	Output  json.RawMessage // AckProcessed: the result of the call, where somebody waits for it; nil = null
	Error   *snapshot.Error // AckFailed: a field that is empty has its default; nil = all of them
	Delay   time.Duration   // AckRetry: until the next delivery; 0 = at once
	Actor   string          // who says so; "" = it is not said
}

// Check holds an acknowledgement to its rules. Problem: ack.invalid.
func (a Ack) Check() error {
	bad := func(format string, args ...any) error {
		return problem.New(problem.Invalid, "ack.invalid", format, args...)
	}
	switch {
	case !slices.Contains([]AckOutcome{AckDelivered, AckProcessed, AckFailed, AckRetry}, a.Outcome):
		return bad("outcome %q is none of delivered, processed, failed, retry", a.Outcome)
	case len(a.Output) > 0 && a.Outcome != AckProcessed:
		return bad("only processed has an output, not %s", a.Outcome)
	case len(a.Output) > 0 && !json.Valid(a.Output):
		return bad("the output is not JSON")
	case a.Error != nil && a.Outcome != AckFailed:
		return bad("only failed has an error, not %s", a.Outcome)
	case a.Delay != 0 && a.Outcome != AckRetry:
		return bad("only retry has a delay, not %s", a.Outcome)
	case a.Delay < 0:
		return bad("the delay is negative")
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
		e.Type = ErrorBase + ErrCommunication
	}
	if e.Status == 0 {
		e.Status = 500
	}
	if e.Title == "" {
		e.Title = "Failed at the consumer"
	}
	return e
}
