package ack

import (
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
)

// Retries say how often a consumer is told again, and for how long. What is 0 is the node's
// to say.
type Retries struct {
	Delay    time.Duration // before the first repetition of a delivery that failed, twice as long before the next
	DelayMax time.Duration // the longest, also of a reminder
	For      time.Duration // the age at which the command is given up
}

// Redeliverer is a definition whose rules say how often consumers are told again.
type Redeliverer interface {
	// Redeliveries are what the rule says that tells the consumer of a command at a
	// pointer, by the newest policy; nothing when there is no such rule any more.
	Redeliveries(pointer string) Retries
}

// Rule is where the rule stands that has a command at a pointer told: whether in a policy,
// the state that is entered, the number of the rule and its consumer. Not ok: no rule has.
func Rule(pointer string) (policy bool, state, number, consumer string, ok bool) {
	if in, is := strings.CutPrefix(pointer, "/policy/"); is {
		policy = true
		_, pointer, _ = strings.Cut(in, "/")
		pointer = "/" + pointer
	}
	parts := strings.Split(pointer, "/")
	if len(parts) != 6 || parts[1] != "states" || parts[3] != "policies" {
		return false, "", "", "", false
	}
	return policy, parts[2], parts[4], parts[5], true
}

// ByRule reports whether a rule of a lifecycle, or of a policy, has a command told.
func ByRule(c engine.Command) bool {
	_, _, _, _, ok := Rule(c.Pointer)
	return c.Ack != 0 && ok
}
