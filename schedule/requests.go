package schedule

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// space is the namespace of the ids of schedule instances whose names
// are too long, and of instances that an event begins.
var space = uuid.MustParse("3c6c1d1c-9a56-5f7e-8f3f-0d2f8b0e0a55")

// ID is the id of the schedule instance of a definition; generation
// counts the ones before it.
func ID(ref snapshot.Definition, generation int) string {
	id := Prefix + strings.ReplaceAll(ref.Name, "/", ".") + "." + ref.Version
	if generation > 0 {
		id += fmt.Sprintf("~%d", generation)
	}
	if len(id) > signal.MaxIDBytes {
		return Prefix + uuid.NewSHA1(space, []byte(id)).String()
	}
	return id
}

// Prefix begins the ids of schedule instances, and of no others.
const Prefix = "schedule."

// Start is the request that sets up the schedule of a definition; ok is
// false when it has none.
func Start(def engine.Definition) (id string, start signal.Start, ok bool) {
	if Of(def) == nil {
		return "", signal.Start{}, false
	}
	ref := def.Ref()
	return ID(ref, 0), signal.Start{Definition: ref.Name, Version: ref.Version, BusinessKey: Key, Schedule: &signal.Schedule{}}, true
}

// Successor is the request for the schedule instance that goes on when the
// stream of one is long.
func Successor(ref snapshot.Definition, s *snapshot.Schedule) signal.Start {
	return signal.Start{
		Definition: ref.Name, Version: ref.Version, BusinessKey: Key,
		Schedule: &signal.Schedule{Generation: s.Generation + 1, Due: s.Due},
	}
}

// EventStart is the request for the instance that an event begins at a wait of
// a schedule instance. The same event, by its dedupekey or else its source and id,
// always begins the same one, also when a newer version hears it again.
func (s *Schedule) EventStart(ref snapshot.Definition, event json.RawMessage, schedule string) (id string, start signal.Start, err error) {
	var e struct {
		ID     string          `json:"id"`
		Source string          `json:"source"`
		Key    string          `json:"dedupekey"`
		Data   json.RawMessage `json:"data"`
	}
	if err := jsonv2.Unmarshal(event, &e); err != nil {
		return "", start, fmt.Errorf("schedule: event: %w", err)
	}
	item := event
	if !s.Envelope {
		if item = e.Data; len(item) == 0 {
			item = json.RawMessage("null")
		}
	}
	known := fmt.Appendf(nil, "%q %q %q", ref.Name, e.Source, e.ID)
	if e.Key != "" {
		known = fmt.Appendf(nil, "%q key %q", ref.Name, e.Key)
	}
	id = uuid.NewSHA1(space, known).String()
	return id, signal.Start{
		Definition: ref.Name, Version: ref.Version, Input: bytes.Join([][]byte{[]byte("["), item, []byte("]")}, nil),
		Parent: &signal.Parent{InstanceID: schedule},
	}, nil
}

// IsSubscription reports whether a pointer is that of a schedule's wait for
// events.
func IsSubscription(pointer string) bool { return pointer == schedulePointer+"on" }
