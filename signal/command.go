package signal

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
)

// ForCommand is the envelope that announces the command at a position of an instance's stream on the command queue:
// to any node that can perform it, or, with a due time, for its next attempt.
func ForCommand(instanceID string, position int64, attempt int, at, due time.Time) Envelope {
	return Envelope{
		SignalID: Bounded(fmt.Sprintf("%s/%d/%d", instanceID, position, attempt)), InstanceID: instanceID, RuntimeProvider: Provider,
		Type: RetryDue, OccurredAt: at, DueAt: due, Payload: json.RawMessage(fmt.Sprintf(`{"command":%d}`, position)),
	}
}

// Bounded is an id that fits its limit: id itself, or where that is too long a digest of it.
func Bounded(id string) string {
	if len(id) <= MaxIDBytes {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "~" + hex.EncodeToString(sum[:])
}

// Keyed is the id of every signal that has a key of the application, whatever message brings it.
func Keyed(dedupeKey string) string { return Bounded("key:" + dedupeKey) }

// CommandPosition reads the payload of an envelope made by ForCommand.
func CommandPosition(payload json.RawMessage) (int64, error) {
	var p struct {
		Command int64 `json:"command"`
	}
	if err := jsonv2.Unmarshal(payload, &p); err != nil || p.Command < 1 {
		return 0, fmt.Errorf("payload names no command")
	}
	return p.Command, nil
}
