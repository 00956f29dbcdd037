package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// The lifecycle events of one instance are published in order, though the
// commands of its turns are performed whenever there is a worker, by any node:
// who performs one publishes first what the commands before it have not. Each
// event then comes for the first time behind all that were before it.

// teller keeps the performers of one instance's lifecycle events on this node
// from repeating each other.
type teller struct {
	sync.Mutex
	users int
	told  int64 // position of the last command whose events this node has published
}

func (r *Runtime) teller(instance string) *teller {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.tellers[instance]
	if t == nil {
		t = &teller{}
		r.tellers[instance] = t
	}
	t.users++
	return t
}

func (r *Runtime) dismiss(instance string, t *teller) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t.users--; t.users == 0 {
		delete(r.tellers, instance)
	}
}

// publishLifecycle publishes the events of a command, behind those of the
// commands before it. An earlier event that is refused for good is passed over:
// its own command makes a dead letter of it.
func (r *Runtime) publishLifecycle(ctx context.Context, j *job) *engine.Failure {
	t := r.teller(j.instance)
	defer r.dismiss(j.instance, t)
	t.Lock()
	defer t.Unlock()
	if t.told >= j.position {
		return nil
	}
	batches, err := r.untold(ctx, j, t.told)
	if err != nil {
		return unpublished(err, true)
	}
	for _, b := range batches {
		failure := r.publishBatch(ctx, j, b)
		switch {
		case failure == nil:
			t.told = b.position
		case failure.Retry || b.position == j.position:
			return failure
		}
	}
	return nil
}

// batch is a command with lifecycle events.
type batch struct {
	position int64
	command  engine.Command
	events   engine.Lifecycle
}

// untold are the commands whose events are still to be published, up to that
// of j, the oldest first.
func (r *Runtime) untold(ctx context.Context, j *job, told int64) ([]batch, error) {
	var list []batch
	for at := (batch{position: j.position, command: j.command}); ; {
		if err := json.Unmarshal(at.command.Input, &at.events); err != nil {
			return nil, fmt.Errorf("command %d of %s: %w", at.position, j.instance, err)
		}
		list = append(list, at)
		previous := at.events.Previous
		if previous <= told {
			break
		}
		row, ok, err := r.entry(ctx, j.instance, previous)
		if err == nil && !ok {
			err = fmt.Errorf("instance %s has nothing at position %d", j.instance, previous)
		}
		if err != nil {
			return nil, err
		}
		if row.Processed == nil || *row.Processed {
			break
		}
		at = batch{position: previous}
		if err := json.Unmarshal(row.Data, &at.command); err != nil {
			return nil, fmt.Errorf("command %d of %s: %w", previous, j.instance, err)
		}
	}
	slices.Reverse(list)
	return list, nil
}

// publishBatch publishes events one after the other, each under a key of its
// own.
func (r *Runtime) publishBatch(ctx context.Context, j *job, b batch) *engine.Failure {
	if !r.Performer.Can(engine.TargetEvent) {
		return unpublished(fmt.Errorf("this node has no target for events: set events.sink, the same on every node"), true)
	}
	events, err := b.events.CloudEvents(j.instance, b.command.Key)
	if err != nil {
		return unpublished(err, false)
	}
	for i, event := range events {
		c := engine.Command{Target: engine.TargetEvent, Input: event, Headers: b.command.Headers, Instance: j.instance, Position: b.position}
		key := newJob(j.instance, b.position, b.command).key() + "/" + strconv.Itoa(i)
		if _, failure := r.Performer.Perform(ctx, c, key, j.failures+1); failure != nil {
			return failure
		}
	}
	return nil
}

func unpublished(err error, retry bool) *engine.Failure {
	return &engine.Failure{Retry: retry, Error: snapshot.Error{
		Type: engine.ErrorBase + engine.ErrRuntime, Status: 500, Title: "Lifecycle events not published", Detail: err.Error(),
	}}
}
