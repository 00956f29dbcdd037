package store

import (
	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/signal"
)

// MaxBody bounds the body of a message, in bytes: that of the largest envelope.
// A store takes it whatever its queues can hold.
const MaxBody = 1 << 20

// The two are one limit: a difference of either sign does not compile.
const _ = uint(MaxBody-signal.MaxBytes) + uint(signal.MaxBytes-MaxBody)

// Check refuses a message that no store takes: signal.too-large.
func (m *Send) Check() error {
	if len(m.Body) > MaxBody {
		return problem.New(problem.TooLarge, "signal.too-large", "message of %d bytes exceeds %d", len(m.Body), MaxBody).
			WithHint("store large data in the application's own table and send a reference")
	}
	return nil
}
