package ack

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// Any is what a command says that is asked of several consumers at once, one of which
// is enough ([engine.Command.Await]).
const Any = "any"

// Unsent begins the last error of the command of a notice that waits for a node with a sink.
const Unsent = "NoticeUnsent"

// entrySuperseded is the entry of a command that its consumer need not do any more,
// because another of several was first.
const entrySuperseded = "AckSuperseded"

// eventPrefix begins the types of events about acknowledgements:
// io.aqueduct.ack.retry-pending.v1 is that of AckRetryPending.
const eventPrefix = "io.aqueduct.ack."

// Note is what an entry, and the event about it, say of a command that is to be
// acknowledged.
type Note struct {
	InstanceID  string          `json:"instanceId"`
	Reference   string          `json:"reference,omitempty"`
	Definition  string          `json:"definition"`
	Command     int64           `json:"command"`
	Key         string          `json:"key"`
	Consumer    string          `json:"consumer"`
	Actor       string          `json:"actor,omitempty"`
	Outcome     Outcome         `json:"outcome,omitempty"`
	Deliveries  int             `json:"deliveries,omitempty"`
	Attempts    int             `json:"attempts,omitempty"` // since the last delivery
	NextAttempt *time.Time      `json:"nextAttemptAt,omitempty"`
	Reason      string          `json:"reason,omitempty"`
	Error       *snapshot.Error `json:"error,omitempty"`

	Stays bool `json:"-"` // the entry has no event
}

// Quieter is a definition that says which notices leave as events.
type Quieter interface {
	Tells(pointer, notice string) bool
	ByPolicy() *engine.Policy // by which it says so
}

// Stays says whether a notice about what is at a pointer has no event, by a definition.
func Stays(def engine.Definition, pointer, notice string) bool {
	d, ok := def.(Quieter)
	return ok && !d.Tells(pointer, notice)
}

// Consumer names the consumer of a command at a pointer: that of a policy, or the task.
func Consumer(pointer string) string { return pointer[strings.LastIndexByte(pointer, '/')+1:] }

// Record adds an entry and the command that publishes its event. A signal id makes
// it one that is recorded once.
func (n Note) Record(t *engine.Turn, c engine.Command, entry, once string) error {
	n.InstanceID, n.Reference, n.Definition = t.Snap.InstanceID, t.Snap.Business.Key, t.Snap.Definition.Name
	data, err := json.Marshal(n)
	if err != nil {
		return err
	}
	dir := engine.Out
	if n.Outcome != "" || c.Ack <= 0 {
		dir = engine.In
	}
	at := t.Append(engine.Entry{
		Kind: engine.KindEvent, Dir: dir, Type: entry, Data: data, SignalID: once, Meta: engine.Meta{Pointer: c.Pointer, Actor: n.Actor, Command: c.Position},
	})
	id := EventID(t, "ack", at)
	event, err := json.Marshal(map[string]any{
		"specversion": "1.0", "id": id, "type": eventType(entry), "source": engine.EventSource(n.Definition), "subject": n.InstanceID,
		"time": t.In.Now.Format(time.RFC3339Nano), "datacontenttype": "application/json", "data": json.RawMessage(data),
	})
	if c.Ack > 0 && !n.Stays { // somebody else than who has asked is told
		t.Emit(event, c.Pointer, "")
	}
	return err
}

// EventID is the id of the event about the entry of an instance at a position. What a restore has taken back
// may have been told: what is then at that position has another.
func EventID(t *engine.Turn, kind string, at int64) string {
	name := fmt.Appendf(nil, "%s|%s|%s|%d", kind, t.Snap.InstanceID, t.Snap.Incarnation, at)
	if t.Snap.Epoch > 1 {
		name = fmt.Appendf(name, "|%d", t.Snap.Epoch)
	}
	return uuid.NewSHA1(engine.EventSpace, name).String()
}

// Supersede records that nobody waits any more for the consumer of the command of w: the
// one called by was first.
func Supersede(t *engine.Turn, d Quieter, w snapshot.Wait, by string) error {
	n := Note{Command: w.Command, Key: w.Effect, Consumer: Consumer(w.Pointer), Reason: by + " was first", Stays: !d.Tells(w.Pointer, entrySuperseded)}
	return n.Record(t, engine.Command{Position: w.Command, Pointer: w.Pointer, Ack: 1}, entrySuperseded, "")
}

// eventType is the type of the event about an entry.
func eventType(entry string) string {
	var kebab strings.Builder
	for i, r := range strings.TrimPrefix(entry, "Ack") {
		if r >= 'A' && r <= 'Z' {
			if i > 0 {
				kebab.WriteByte('-')
			}
			r += 'a' - 'A'
		}
		kebab.WriteRune(r)
	}
	return eventPrefix + kebab.String() + ".v1"
}
