package service

import (
	"context"
	"encoding/json"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/operate"
)

// Sleeping is a command whose next attempt is not due.
type Sleeping struct {
	Position int64
	Pointer  string // of its task
}

// RunNow ends now what an instance waits for the end of: a timer, the pause before a retry
// of its definition, or the one before the next attempt at a command. Wait is the pointer
// of the task, "" = there is only one; of several at one place it is the first. Problems:
// instance.unknown, instance.changed (it is not at the version; 0 = whatever it is), those of
// operate.Operate, and of what Commands.Retry does.
func (o *Operator) RunNow(ctx context.Context, id, wait string, version int64, actor string) (engine.Disposition, error) {
	s, err := o.Snapshot(ctx, id)
	if err == nil {
		err = ChangedSince(&s, version)
	}
	if err != nil {
		return "", err
	}
	var places []string
	for i := range s.Waits {
		if w := &s.Waits[i]; operate.Sleeps(w) && (wait == "" || wait == w.Pointer) {
			places = append(places, w.Pointer)
		}
	}
	waits := len(places)
	commands, err := o.Commands.Sleeping(ctx, id)
	if err != nil {
		return "", err
	}
	first := int64(0)
	for _, c := range commands {
		if wait == "" || wait == c.Pointer {
			if places = append(places, c.Pointer); first == 0 {
				first = c.Position
			}
		}
	}
	if len(places) > waits || len(places) > 1 { // else the turn sees all that there is, and knows best
		if err := operate.OneOf(id, wait, places); err != nil {
			return "", err
		}
	}
	if waits == 0 && first > 0 {
		_, err := o.Commands.Retry(ctx, id, first, version, actor)
		return engine.Applied, err
	}
	with, err := json.Marshal(operate.Which{Wait: wait})
	if err != nil {
		return "", err
	}
	return o.operate(ctx, id, request{Operation: operate.RunNow, Output: with, Version: version}, actor)
}
