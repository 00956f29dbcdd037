package signal

import (
	"encoding/json"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// Start is the payload of a StartRequest: begin an instance of a definition.
//
// It is idempotent: a second request with the same instance id, or with the
// same definition, business key and start key, gives the first one's instance
// and changes nothing.
type Start struct {
	Definition  string            `json:"definition"`            // name, in its namespace: "default/loan-approval"
	Version     string            `json:"version,omitempty"`     // empty = the latest published
	BusinessKey string            `json:"businessKey,omitempty"` // the application's own key for the instance
	KeyParts    map[string]string `json:"keyParts,omitempty"`    // the business key, taken apart
	StartKey    string            `json:"startKey,omitempty"`    // makes a repeat recognisable; empty = no such check
	Input       json.RawMessage   `json:"input,omitempty"`       // any JSON; null when absent
	Parent      *Parent           `json:"parent,omitempty"`      // the instance that asks; absent = an application
	Schedule    *Schedule         `json:"schedule,omitempty"`    // keep the definition's schedule; absent = run its tasks
}

// MaxKeyBytes bounds businessKey and startKey, and each part of a key.
const MaxKeyBytes = 256

// DecodeStart reads the payload of a StartRequest. Its problems have the code
// signal.invalid-start.
func DecodeStart(payload json.RawMessage) (Start, error) {
	var s Start
	if err := json.Unmarshal(payload, &s); err != nil {
		return Start{}, problem.Wrap(err, problem.Invalid, "signal.invalid-start", "payload is not a start request")
	}
	return s, s.Validate()
}

// Validate checks a start request's fields.
func (s Start) Validate() error {
	if s.Definition == "" {
		return problem.New(problem.Invalid, "signal.invalid-start", "definition is missing")
	}
	check := func(name, value string) error {
		if len(value) > MaxKeyBytes {
			return problem.New(problem.TooLarge, "signal.invalid-start", "%s of %d bytes exceeds %d", name, len(value), MaxKeyBytes)
		}
		return nil
	}
	for name, value := range map[string]string{
		"definition": s.Definition, "version": s.Version, "businessKey": s.BusinessKey, "startKey": s.StartKey,
	} {
		if err := check(name, value); err != nil {
			return err
		}
	}
	for name, value := range s.KeyParts {
		if err := check("keyParts."+clip(name), value); err != nil {
			return err
		}
	}
	return nil
}
