package engine

import (
	"encoding/json"

	"github.com/google/uuid"
)

// TargetEvent is the target of a command that publishes a CloudEvent, which
// is its input. It has no token: nothing waits for it. No function can have
// this name.
const TargetEvent = "event:publish"

// MaxEventBytes bounds an emitted event, as JSON. It leaves room for the
// envelope in which a listening instance gets it.
const MaxEventBytes = 28_000

// EventSpace is the namespace of the ids of emitted events.
var EventSpace = uuid.MustParse("0f6d0c7e-3b0e-5d53-8a43-64c6a1d6b6a8")

// EventSource is the source of events that instances of a definition emit,
// where their author names none.
func EventSource(definition string) string { return "aqueduct:" + definition }

// Emit adds a command that publishes a CloudEvent, as JSON of at most
// [MaxEventBytes], under a key of [Turn.Key]; "" = one of its own.
func (t *Turn) Emit(event json.RawMessage, pointer, key string) {
	c := Command{Target: TargetEvent, Input: event, Pointer: pointer, Headers: t.Snap.Headers, Key: key}
	t.keyed(&c)
	t.Append(Entry{Kind: KindCommand, Dir: Out, Type: EntryEmitted, Command: &c, Meta: Meta{Pointer: pointer}})
}
