package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime/dispatch"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// The lifecycle events of one instance are published in order, though the
// commands of its turns are performed whenever there is a worker, by any node:
// who performs one publishes first what the commands before it have not. Each
// event then comes for the first time behind all that were before it.

// eventPublisher keeps the performers of one instance's lifecycle events on this node
// from repeating each other.
type eventPublisher struct {
	sync.Mutex
	users     int
	published int64 // position of the last command whose events this node has published
}

// lifecycle publishes the lifecycle events of instances and tasks to the outside.
type lifecycle struct {
	performer Performer
	// entry finds what an instance has at a position of its stream.
	entry func(ctx context.Context, instance string, position int64) (projections.Entry, bool, error)

	mu              sync.Mutex
	eventPublishers map[string]*eventPublisher // by instance
}

func newLifecycle(r *Runtime) *lifecycle {
	return &lifecycle{
		performer: r.Performer, eventPublishers: map[string]*eventPublisher{},
		entry: func(ctx context.Context, instance string, position int64) (projections.Entry, bool, error) {
			return r.Record.Entry(ctx, instance, position)
		},
	}
}

func (l *lifecycle) eventPublisher(instance string) *eventPublisher {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.eventPublishers[instance]
	if t == nil {
		t = &eventPublisher{}
		l.eventPublishers[instance] = t
	}
	t.users++
	return t
}

func (l *lifecycle) dismiss(instance string, t *eventPublisher) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.users--; t.users == 0 {
		delete(l.eventPublishers, instance)
	}
}

// publish publishes the events of a command, behind those of the
// commands before it. An earlier event that is refused for good is passed over:
// its own command makes a dead letter of it.
func (l *lifecycle) publish(ctx context.Context, c engine.Command, attempt int) *engine.Failure {
	t := l.eventPublisher(c.Instance)
	defer l.dismiss(c.Instance, t)
	t.Lock()
	defer t.Unlock()
	if t.published >= c.Position {
		return nil
	}
	batches, err := l.pendingBatches(ctx, c, t.published)
	if err != nil {
		return unpublished(err, true)
	}
	for _, b := range batches {
		failure := l.publishBatch(ctx, b, attempt)
		switch {
		case failure == nil:
			t.published = b.position
		case failure.Retry || b.position == c.Position:
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

// pendingBatches are the commands whose events are still to be published, up to that
// of c, the oldest first.
func (l *lifecycle) pendingBatches(ctx context.Context, c engine.Command, published int64) ([]batch, error) {
	var list []batch
	for at := (batch{position: c.Position, command: c}); ; {
		if err := json.Unmarshal(at.command.Input, &at.events); err != nil {
			return nil, fmt.Errorf("command %d of %s: %w", at.position, c.Instance, err)
		}
		list = append(list, at)
		previous := at.events.Previous
		if previous <= published {
			break
		}
		row, ok, err := l.entry(ctx, c.Instance, previous)
		if err == nil && !ok {
			err = fmt.Errorf("instance %s has nothing at position %d", c.Instance, previous)
		}
		if err != nil {
			return nil, err
		}
		if row.Processed == nil || *row.Processed {
			break
		}
		at = batch{position: previous}
		if at.command, err = commandOf(row); err != nil {
			return nil, err
		}
	}
	slices.Reverse(list)
	return list, nil
}

// publishBatch publishes events one after the other, each under a key of its
// own.
func (l *lifecycle) publishBatch(ctx context.Context, b batch, attempt int) *engine.Failure {
	if !l.performer.Can(engine.TargetEvent) {
		return unpublished(fmt.Errorf("this node has no target for events: set events.sink, the same on every node"), true)
	}
	events, err := cloudEvents(b.events, b.command.Instance, b.command.Key)
	if err != nil {
		return unpublished(err, false)
	}
	for i, event := range events {
		c := engine.Command{Target: engine.TargetEvent, Input: event, Headers: b.command.Headers, Instance: b.command.Instance, Position: b.position}
		key := dispatch.Key(b.command) + "/" + strconv.Itoa(i)
		if _, failure := l.performer.Perform(ctx, c, key, attempt); failure != nil {
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

// cloudEvents are the events of a command with a key, as the DSL words them.
// Their ids say the command and the place in it, so that they are the same
// whenever they are made; the extension attribute sequence orders those of one
// instance as text.
func cloudEvents(l engine.Lifecycle, instanceID, key string) ([]json.RawMessage, error) {
	namespace, name, _ := strings.Cut(l.Definition.Name, "/")
	qualified := name + "-" + instanceID + "." + namespace
	at := l.At.Format(time.RFC3339Nano)
	list := make([]json.RawMessage, len(l.Events))
	for i, e := range l.Events {
		data := map[string]any{whenField(e.Type): at}
		if e.Task == "" {
			data["name"] = qualified
		} else {
			data["workflow"], data["task"] = qualified, e.Task
		}
		if e.Type == engine.WorkflowStartedEvent {
			data["definition"] = map[string]string{"namespace": namespace, "name": name, "version": l.Definition.Version}
		}
		if e.Error != nil {
			data["error"] = e.Error
		}
		if len(e.Keys) > 0 {
			keys := map[string]json.RawMessage{}
			for k, v := range e.Keys {
				keys[k] = json.RawMessage(v)
			}
			data["correlationKeys"] = keys
		}
		raw, err := json.Marshal(map[string]any{
			"specversion": "1.0", "type": e.Type, "source": engine.EventSource(l.Definition.Name), "subject": instanceID, "time": at,
			"id":              uuid.NewSHA1(engine.EventSpace, fmt.Appendf(nil, "lifecycle|%s|%s|%d|%d", instanceID, key, l.Version, i)).String(),
			"sequence":        fmt.Sprintf("%012d.%06d", l.Version, i),
			"datacontenttype": "application/json", "data": data,
		})
		if err != nil {
			return nil, err
		}
		list[i] = raw
	}
	return list, nil
}

// whenField is the field that says when: suspendedAt of an event suspended.
func whenField(typ string) string {
	verb := strings.TrimSuffix(typ, ".v1")
	verb = verb[strings.LastIndexByte(verb, '.')+1:]
	verb = verb[strings.LastIndexByte(verb, '-')+1:]
	return verb + "At"
}
