package signal

import (
	"encoding/json"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
	jsonv2 "github.com/go-json-experiment/json"
)

// Parent is who asked for an instance by way of a StartRequest.
type Parent struct {
	InstanceID string `json:"instanceId"`
	Token      string `json:"token,omitempty"` // of the wait that takes the child's end; "" = nobody waits
	Depth      int    `json:"depth,omitempty"` // instances that wait above the child
}

// Schedule asks for the schedule instance of a definition in place of an ordinary one.
type Schedule struct {
	Generation int       `json:"generation,omitempty"` // schedule instances before this one
	Due        time.Time `json:"dueUtc,omitzero"`      // its first tick; zero = by the definition
}

// Cancellation is the payload of a CancelRequest: the parent does not wait any
// more. The instance ends only when it was started under just this token.
type Cancellation struct {
	Token      string `json:"token"`
	Compensate bool   `json:"compensate,omitempty"` // what it has done is undone first
	Await      bool   `json:"await,omitempty"`      // the parent waits until it is
}

// DecodeCancellation reads the payload of a CancelRequest. Its problem has the code signal.invalid.
func DecodeCancellation(payload json.RawMessage) (Cancellation, error) {
	var c Cancellation
	if err := jsonv2.Unmarshal(payload, &c); err != nil || c.Token == "" {
		return c, problem.New(problem.Invalid, "signal.invalid", "payload names no token of a parent")
	}
	return c, nil
}
