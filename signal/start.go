package signal

import (
	"encoding/json"
	"maps"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
	jsonv2 "github.com/go-json-experiment/json"
)

// Start is the payload of a StartRequest: begin an instance of a definition.
//
// It is idempotent: a second request with the same instance id, or with the same definition, business key and start
// key, gives the first one's instance and changes nothing, but for its Signal, which that instance gets.
type Start struct {
	Definition  string            `json:"definition"`            // name, in its namespace: "default/loan-approval"
	Version     string            `json:"version,omitempty"`     // empty = the latest published
	BusinessKey string            `json:"businessKey,omitempty"` // the application's own key for the instance
	KeyParts    map[string]string `json:"keyParts,omitempty"`    // the business key, taken apart
	StartKey    string            `json:"startKey,omitempty"`    // makes a repeat recognisable; empty = no such check
	Input       json.RawMessage   `json:"input,omitempty"`       // any JSON; null when absent
	Parent      *Parent           `json:"parent,omitempty"`      // the instance that asks; absent = an application
	Schedule    *Schedule         `json:"schedule,omitempty"`    // keep the definition's schedule; absent = run its tasks
	Signal      *FirstSignal      `json:"signal,omitempty"`      // what is said to the instance, whether it begins or is there; absent = nothing
}

// Business is what a start says of the instance to those who read it, as its snapshot keeps it.
func (s Start) Business() business { return business{s.BusinessKey, s.KeyParts} }

type business = struct {
	Key   string
	Parts map[string]string
}

// LifecycleKey is the start key of the one instance that a definition has for an application's reference, which is
// its business key: what a trigger starts or signals (D2).
const LifecycleKey = "lifecycle"

// FirstSignal is an event that belongs to a start. An instance that the start begins gets it in its first turn, and
// does not begin when it refuses it; one that is there gets it as an ExternalSignal. It is what Temporal calls
// SignalWithStart.
type FirstSignal struct {
	ID          string          `json:"id"`                    // the signal id: an instance that has recorded it takes it for a repeat (B7)
	Type        string          `json:"type"`                  // of the event
	Data        json.RawMessage `json:"data,omitempty"`        // any JSON
	Actor       string          `json:"actor,omitempty"`       // who says it; empty = the actor of the start
	Sender      string          `json:"sender,omitempty"`      // with Sequence: see Envelope
	Sequence    int64           `json:"sequence,omitempty"`    // of the sender at the instance, from 1
	AckRequired *bool           `json:"ackRequired,omitempty"` // false = who is told of it has but to take it; nil = true
}

// Envelope is the signal to an instance, said when the start was, by who says that
// and under its headers. The source of its event is "start".
func (f FirstSignal) Envelope(instanceID string, start Envelope) (Envelope, error) {
	at, headers := start.OccurredAt, start.Headers
	event, err := marshal(struct {
		ID     string          `json:"id"`
		Type   string          `json:"type"`
		Source string          `json:"source"`
		Data   json.RawMessage `json:"data,omitempty"`
		Time   time.Time       `json:"time"`
		Ack    *bool           `json:"ackRequired,omitempty"`
	}{f.ID, f.Type, "start", f.Data, at.UTC().Truncate(time.Microsecond), f.AckRequired})
	if err != nil {
		return Envelope{}, notJSON(err)
	}
	if f.Actor != "" {
		headers = maps.Clone(headers)
		if headers == nil {
			headers = map[string]string{}
		}
		headers[HeaderActor] = f.Actor
	}
	e := Envelope{
		SignalID: f.ID, InstanceID: instanceID, RuntimeProvider: Provider, Type: ExternalSignal, OccurredAt: at, Headers: headers, Payload: event,
		Sender: f.Sender, Sequence: f.Sequence, Principal: start.Principal,
	}
	return e, e.Validate()
}

func (f FirstSignal) validate(s Start) error {
	if f.Type == "" {
		return problem.New(problem.Invalid, "signal.invalid-start", "the signal has no type")
	}
	if s.Schedule != nil {
		return problem.New(problem.Invalid, "signal.invalid-start", "a schedule instance takes no signal")
	}
	if err := checkID("id of the signal", f.ID); err != nil {
		return err
	}
	if f.Sender != "" || f.Sequence != 0 {
		if err := checkSender(f.Sender, f.Sequence); err != nil {
			return err
		}
	}
	if err := checkKey("type of the signal", f.Type); err != nil {
		return err
	}
	return checkKey("actor of the signal", f.Actor)
}

// MaxKeyBytes bounds businessKey and startKey, and each part of a key.
const MaxKeyBytes = 256

// DecodeStart reads the payload of a StartRequest. Its problems have the code signal.invalid-start.
func DecodeStart(payload json.RawMessage) (Start, error) {
	var s Start
	if err := jsonv2.Unmarshal(payload, &s); err != nil {
		return Start{}, problem.Wrap(err, problem.Invalid, "signal.invalid-start", "payload is not a start request")
	}
	return s, s.Validate()
}

// Validate checks a start request's fields.
func (s Start) Validate() error {
	if s.Definition == "" {
		return problem.New(problem.Invalid, "signal.invalid-start", "definition is missing")
	}
	for name, value := range map[string]string{
		"definition": s.Definition, "version": s.Version, "businessKey": s.BusinessKey, "startKey": s.StartKey,
	} {
		if err := checkKey(name, value); err != nil {
			return err
		}
	}
	for name, value := range s.KeyParts {
		if err := checkKey("keyParts."+clip(name), value); err != nil {
			return err
		}
	}
	if s.Signal != nil {
		return s.Signal.validate(s)
	}
	return nil
}

func checkKey(name, value string) error {
	if len(value) > MaxKeyBytes {
		return problem.New(problem.TooLarge, "signal.invalid-start", "%s of %d bytes exceeds %d", name, len(value), MaxKeyBytes)
	}
	return nil
}
