package runtime

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/aqueduct-engine/aqueduct/ack"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/store"
)

// How often a consumer is told again is said by the rule that tells it, of the newest
// policy, and by the node where no rule says so.

// times are the time until the nth repetition of a delivery, the first pause doubled each
// time, and the age at which the command is given up. Only an author may have a first
// pause that is longer than the longest.
func (a *ackNotes) times(ctx context.Context, c engine.Command, first time.Duration, n int) (pause, age time.Duration) {
	r := a.retries(ctx, c)
	if first == 0 { // it has failed
		first = r.Delay
	}
	pause = first
	for ; n > 1 && pause < r.DelayMax; n-- {
		pause *= 2
	}
	return max(first, min(pause, r.DelayMax)), r.For
}

// Retries say how often the consumer of a command is told again, as it is now.
func (a *acknowledger) Retries(ctx context.Context, row projections.Entry) ack.Retries {
	c, err := commandOf(row)
	if err != nil {
		return ack.Retries{}
	}
	r := a.notes.retries(ctx, c)
	if r.Delay > time.Second {
		r.Delay = r.Delay.Round(100 * time.Millisecond) // the node's own has a jitter
	}
	return r
}

// retries are those of a command: what its rule leaves out is the node's to say. While the
// store does not answer, it is asked again: no delivery goes by times that are not its own.
func (a *ackNotes) retries(ctx context.Context, c engine.Command) ack.Retries {
	var said ack.Retries
	for try := 1; ack.ByRule(c); try++ {
		var err error
		if said, err = a.byRule(ctx, c); err == nil {
			break
		}
		if k := problem.KindOf(err); k != problem.Unavailable && !errors.Is(err, store.ErrUnknown) {
			a.Log.Warn("how often a consumer is told again is not known, and as the node says", "instance", c.Instance, "command", c.Position, "error", err)
			break
		}
		if pause, _ := a.Performer.Backoff(1, ""); !turn.Pause(ctx, cmp.Or(min(pause, time.Second), time.Second)) {
			break
		}
	}
	delay, _ := a.Performer.Backoff(1, "")
	return ack.Retries{
		Delay: cmp.Or(said.Delay, delay, time.Second), DelayMax: cmp.Or(said.DelayMax, a.AckPause), For: cmp.Or(said.For, a.AckAge),
	}
}

// byRule is what the rule of a command says, by the newest policy that is published.
func (a *ackNotes) byRule(ctx context.Context, c engine.Command) (ack.Retries, error) {
	row, err := a.Store.Instances.Instance(ctx, c.Instance)
	if err != nil {
		return ack.Retries{}, err
	}
	for range turn.StaleMax {
		def, err := a.Definitions.Find(ctx, row.Definition, row.DefVersion)
		if err != nil {
			return ack.Retries{}, err
		}
		if d, ok := a.Definitions.(publisher); ok {
			if newer, err := d.Newer(ctx, def); err != nil {
				return ack.Retries{}, err
			} else if newer {
				continue
			}
		}
		if told, ok := def.(ack.Redeliverer); ok {
			return told.Redeliveries(c.Pointer), nil
		}
		return ack.Retries{}, nil
	}
	return ack.Retries{}, problem.New(problem.Unavailable, "policy.unread", "policies of %s are published faster than they are read", row.Definition)
}
