package oracle

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aqueduct-engine/aqueduct/aq"
	"github.com/aqueduct-engine/aqueduct/store"
)

// fault is why a delivery could not be loaded for or committed, where the
// transaction that holds its message is as it was. The message keeps its place
// in the queue: it stays locked, or is rolled back.
type fault struct {
	cause error
	since time.Time
	kept  bool                        // nothing of what failed is left in the transaction, no lock either: it may be held
	redo  func(context.Context) error // what failed; it leaves nothing behind. nil = there is nothing to find out
	step  bool                        // a step of the application may be what failed: the message is sent again for later
}

// Bounds of a fault.
const (
	// holdMax is how long one transaction holds its message: whoever waits for
	// its locks, and a firewall, must not see it for days. Rolling back so often
	// takes a message that nothing else happens to three months to its limit.
	holdMax = 10 * time.Minute
	// suspectMax is the same where this message alone may be what fails, as when the
	// row of its instance cannot be written: after that it is sent again for later,
	// and others have the try.
	suspectMax = 5 * time.Second
	// resendAfter is how much later: by then those behind it for its instance still wait for
	// it (line.Grace).
	resendAfter = 10 * time.Second
	// rollbacksMax is how many rollbacks a message may have behind it before it is
	// sent again as a new one: a twentieth of what the queue allows.
	rollbacksMax = 500
)

// suspect says that the message may be to blame: others need not meet a bug of ours,
// a damaged block, or a table that has no room, when the database takes what the
// message is sent again with.
func (f *fault) suspect() bool {
	c := aq.Classify(f.cause)
	return c == aq.Fatal || c == aq.Paused
}

// faulted notes a fault and returns what the runtime is told. The queue pauses, but
// for a fault of a message that has failed so before while others did not.
func (d *delivery) faulted(cause error, kept bool, redo func(context.Context) error) error {
	if d.fault == nil {
		d.fault = &fault{since: time.Now()}
	}
	d.fault.cause, d.fault.kept, d.fault.redo, d.fault.step = cause, kept, redo, false
	if d.faults == 0 || !d.fault.suspect() || d.pass.tries() {
		d.pass.failed(cause, true)
	}
	return unavailable(cause)
}

// stepFaulted is faulted for a turn with steps of the application: what fails may be a
// table of theirs, or a database that they reach. The queue does not pause for that,
// unless the message cannot be sent again either. The turn is over, and would claim
// its commands again, so that nobody tries it again on this delivery.
func (d *delivery) stepFaulted(cause error) error {
	if d.fault == nil {
		d.fault = &fault{since: time.Now()}
	}
	d.fault.cause, d.fault.kept, d.fault.redo, d.fault.step = cause, true, nil, true
	return unavailable(cause)
}

// lost gives up a delivery whose session or transaction is gone.
func (d *delivery) lost(err error) error {
	d.pass.failed(err, true)
	d.end()
	if !errors.Is(err, store.ErrUnknown) && !errors.Is(err, store.ErrLost) {
		err = fmt.Errorf("%w: %w", store.ErrLost, err)
	}
	return err
}

// isLost says that a call has left a transaction that must end, or is gone.
func (d *delivery) isLost(err error) bool {
	return errors.Is(err, store.ErrUnknown) || errors.Is(err, store.ErrLost) || d.session.Lost(err)
}

// resolve finds out whether a fault is over, and lets go of the message when it
// is, or when somebody else finds out. An error that is not store.ErrLost means
// that the message is held, and that the caller comes again.
func (d *delivery) resolve(ctx context.Context) error {
	f := d.fault
	switch {
	case d.session.Lost(f.cause):
		d.end()
		return fmt.Errorf("%w: %w", store.ErrLost, f.cause)
	case d.pass.tries() && !d.pass.due():
		return unavailable(f.cause)
	case f.step:
		f.step = false // once: what cannot be sent again keeps its place
		return d.resend(ctx)
	case d.faults > 0 && f.suspect():
		return d.resend(ctx)
	case f.redo == nil, !f.kept, !d.pass.tries():
		d.end()
		return nil
	}
	err := f.redo(ctx)
	if err == nil || isOver(err) && !d.isLost(err) || actOf(err) == actOwner {
		d.pass.again()
		d.end()
		return nil
	}
	if d.isLost(err) {
		return d.lost(err)
	}
	f.cause = err
	d.pass.failed(err, true)
	switch held := time.Since(f.since); {
	case held >= holdMax:
		d.end()
		return nil
	case held >= suspectMax && f.suspect():
		return d.resend(ctx)
	}
	return unavailable(err)
}

// resend consumes the message and sends it again with delay. Where that is not
// to be had either, the message is held on.
func (d *delivery) resend(ctx context.Context) error {
	f := d.fault
	err := d.sendAgain(ctx, d.m.Attempts, d.faults+1, resendAfter)
	switch {
	case err == nil:
		d.end()
		return nil
	case d.isLost(err):
		return d.lost(err)
	}
	f.cause = err
	d.pass.failed(err, true)
	return unavailable(err)
}

// sendAgain is the message consumed, and sent once more, in one commit.
func (d *delivery) sendAgain(ctx context.Context, attempts, faults int, delay time.Duration) error {
	q, _ := d.s.queue(d.m.Queue)
	if err := d.s.ledger.erase(ctx, d.session, d.m.ID); err != nil {
		return err
	}
	if err := d.session.Enqueue(ctx, q, []aq.Send{d.again(attempts, faults, delay)}); err != nil {
		return err
	}
	if err := commit(d.session); err != nil {
		return err
	}
	d.s.ledger.erased(d.m.ID)
	return nil
}
