// Package signal is the envelope in which everything that happens to an
// instance arrives: a result, a due timer, an event from outside, a start.
//
// An envelope is one compact JSON object in UTF-8, at most [MaxBytes] long, so that every peer of a queue can read it,
// PL/SQL included. Decoding keeps the fields it does not know, and the store keeps the bytes it was given: what goes to
// the dead letters is byte for byte what was sent.
//
// The package is pure: it reads no clock and does no I/O.
package signal

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"sort"
	"strings"
	"time"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// Limits of an envelope. They are the same on every store, chosen from the
// weakest reader: a RAW of PL/SQL holds 32,767 bytes.
const (
	MaxBytes      = 1 << 20 // of an encoded envelope
	MaxIDBytes    = 128     // of signalId, workflowInstanceId, waitingToken, sender
	MaxHeaders    = 32      // entries in headers
	MaxHeaderSize = 1_024   // bytes of one header's key, and of its value: the longest name of a person has so many
	MaxDepth      = 64      // nesting of the payload
)

// Type says what happened.
type Type string

// The types of A7, the start request, and its opposite for child instances.
const (
	TaskCompleted        Type = "TaskCompleted"        // a command's result or a person's answer
	TimerDue             Type = "TimerDue"             // a timed wait is over
	RetryDue             Type = "RetryDue"             // a failed attempt may be repeated now
	ExternalSignal       Type = "ExternalSignal"       // something the application says
	SubWorkflowCompleted Type = "SubWorkflowCompleted" // a child instance ended
	InternalContinue     Type = "InternalContinue"     // the step budget of a turn was used up
	TimerDueAll          Type = "TimerDueAll"          // several timed waits are over; the payload names them
	RetryDueAll          Type = "RetryDueAll"          // several failed attempts may be repeated now
	InternalContinueAll  Type = "InternalContinueAll"  // several branches go on
	StartRequest         Type = "StartRequest"         // begin an instance; the payload is a Start
	CancelRequest        Type = "CancelRequest"        // end a child instance; the payload is a Cancellation
	OperatorRequest      Type = "OperatorRequest"      // do what an operator asks; the payload names the operation
	AckRequest           Type = "AckRequest"           // what a consumer says of a command; the payload names both
)

// Types lists every type a node accepts.
var Types = []Type{TaskCompleted, TimerDue, RetryDue, ExternalSignal, SubWorkflowCompleted, InternalContinue, CancelRequest, StartRequest, OperatorRequest, AckRequest, InternalContinueAll, TimerDueAll, RetryDueAll}

// Provider is the runtimeProvider of envelopes addressed to Aqueduct.
const Provider = "aqueduct"

// Headers that Aqueduct itself reads; any other is carried along.
const (
	HeaderTraceparent = "traceparent"   // W3C trace context
	HeaderCorrelation = "correlationId" // follows everything one request causes
	HeaderActor       = "actor"         // who did it, for the stream
	HeaderLineage     = "lineage"       // the definitions that have had to do with it, as a node writes them
)

// Envelope is one signal. Its JSON form is the contract with applications.
type Envelope struct {
	SignalID        string            `json:"signalId"`
	DedupeKey       string            `json:"dedupeKey,omitempty"` // of the application (B7): who has one is known by it, not by the SignalID
	InstanceID      string            `json:"workflowInstanceId"`
	RuntimeProvider string            `json:"runtimeProvider"`
	Type            Type              `json:"signalType"`
	ExpectedVersion int64             `json:"expectedVersion"` // 0 = any
	WaitingToken    string            `json:"waitingToken,omitempty"`
	OccurredAt      time.Time         `json:"occurredAtUtc"`
	DueAt           time.Time         `json:"dueAtUtc,omitzero"`
	Headers         map[string]string `json:"headers,omitempty"`
	Payload         json.RawMessage   `json:"payload"` // an object

	// Sender and Sequence put the signals of one sender to one instance in order, on whatever ways and nodes they
	// come: the first has the sequence 1. A signal that comes before its turn waits. Both or neither.
	Sender    string          `json:"sender,omitempty"`
	Sequence  int64           `json:"sequence,omitempty"`
	Principal json.RawMessage `json:"principal,omitempty"` // who sends it, in the words of whoever has let them in

	// Unknown holds the fields this version does not know. Encode writes them back, last, in order of name.
	Unknown map[string]json.RawMessage `json:"-"`
}

// known lists the JSON names of Envelope's fields.
var known = map[string]bool{
	"signalId": true, "workflowInstanceId": true, "runtimeProvider": true, "signalType": true, "expectedVersion": true,
	"waitingToken": true, "occurredAtUtc": true, "dueAtUtc": true, "headers": true, "payload": true,
	"sender": true, "sequence": true, "principal": true, "dedupeKey": true,
}

// Decode reads and validates an envelope. Errors are problems with the codes signal.too-large, signal.corrupt,
// signal.not-utf8, signal.not-json, signal.duplicate-key, signal.too-deep and those of Validate.
func Decode(raw []byte) (Envelope, error) {
	if len(raw) > MaxBytes {
		return Envelope{}, tooLarge(len(raw))
	}
	if err := intact(raw); err != nil {
		return Envelope{}, err
	}
	if !utf8.Valid(raw) {
		return Envelope{}, problem.New(problem.Invalid, "signal.not-utf8", "envelope is not valid UTF-8")
	}
	if Depth(raw) > MaxDepth {
		return Envelope{}, tooDeep()
	}
	var w wire
	if err := jsonv2.Unmarshal(raw, &w); err != nil {
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return Envelope{}, problem.Wrap(err, problem.Invalid, "signal.duplicate-key", "a key stands twice in one object")
		}
		return Envelope{}, problem.Wrap(err, problem.Invalid, "signal.not-json", "envelope is not the expected JSON object")
	}
	e := w.Envelope
	if e.Unknown = w.Unknown; e.DedupeKey != "" {
		e.SignalID = Keyed(e.DedupeKey)
	}
	return e, e.Validate()
}

// wire is an envelope as it is read: the strict decoder refuses keys that stand twice, and collects those it does not
// know. The checksum is no field of the envelope: it is of these bytes, and Encode makes it anew.
type wire struct {
	Envelope `json:",embed"`
	Checksum jsontext.Value             `json:"checksum"`
	Unknown  map[string]json.RawMessage `json:",embed"`
}

// Depth is the deepest nesting of raw, strings left out. On text that is no
// JSON it is some number, and the decoder says what is wrong.
func Depth(raw []byte) int {
	deepest, now, quoted := 0, 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			now++
			deepest = max(deepest, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return deepest
}

func tooLarge(n int) error {
	return problem.New(problem.TooLarge, "signal.too-large", "envelope of %d bytes exceeds %d", n, MaxBytes).
		WithHint("store large data in the application's own table and send a reference")
}

func tooDeep() error {
	return problem.New(problem.TooLarge, "signal.too-deep", "envelope nests deeper than %d levels", MaxDepth)
}

func notJSON(err error) error {
	return problem.Wrap(err, problem.Invalid, "signal.not-json", "envelope cannot be written as JSON")
}

// Encode validates e and returns its bytes: what it writes, Decode reads.
func (e Envelope) Encode() ([]byte, error) {
	if e.RuntimeProvider == "" {
		e.RuntimeProvider = Provider
	}
	if len(e.Payload) == 0 {
		e.Payload = json.RawMessage("{}")
	}
	if err := e.Validate(); err != nil {
		return nil, err
	}
	e.OccurredAt = e.OccurredAt.UTC().Truncate(time.Microsecond)
	e.DueAt = e.DueAt.UTC().Truncate(time.Microsecond)
	b, err := marshal(e)
	if err != nil {
		return nil, notJSON(err)
	}
	if len(e.Unknown) > 0 {
		names := make([]string, 0, len(e.Unknown))
		for name := range e.Unknown {
			if !known[name] && name != checksumKey {
				names = append(names, name)
			}
		}
		sort.Strings(names)
		b = b[:len(b)-1]
		for _, name := range names {
			field, err := marshal(map[string]json.RawMessage{name: e.Unknown[name]})
			if err != nil {
				return nil, notJSON(err)
			}
			b = append(append(b, ','), field[1:len(field)-1]...)
		}
		b = append(b, '}')
	}
	b = seal(b)
	if len(b) > MaxBytes {
		return nil, tooLarge(len(b))
	}
	if Depth(b) > MaxDepth { // nobody could read it
		return nil, tooDeep()
	}
	return b, nil
}

// marshal is json.Marshal without HTML escaping and without a final newline.
func marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}

// Validate checks e's fields. Its problems have the code signal.invalid and name the field, but for an unknown type
// (signal.unknown-type) and another engine's envelope (signal.foreign).
func (e Envelope) Validate() error {
	invalid := func(detail string, args ...any) error {
		return problem.New(problem.Invalid, "signal.invalid", detail, args...)
	}
	if e.RuntimeProvider != Provider && e.RuntimeProvider != "" {
		return problem.New(problem.Invalid, "signal.foreign", "runtimeProvider is %q, not %q", clip(e.RuntimeProvider), Provider)
	}
	if !slices.Contains(Types, e.Type) {
		return problem.New(problem.Invalid, "signal.unknown-type", "signalType %q is unknown", clip(string(e.Type))).
			WithHint("one of %v", Types)
	}
	for _, f := range []struct{ name, value string }{
		{"workflowInstanceId", e.InstanceID}, {"signalId", e.SignalID}, {"waitingToken", e.WaitingToken}, {"dedupeKey", e.DedupeKey},
	} {
		if f.value == "" && (f.name == "waitingToken" || f.name == "dedupeKey") {
			continue
		}
		if err := checkID(f.name, f.value); err != nil {
			return err
		}
	}
	if e.ExpectedVersion < 0 {
		return invalid("expectedVersion %d is negative", e.ExpectedVersion)
	}
	if err := e.checkSequence(); err != nil {
		return err
	}
	if e.OccurredAt.IsZero() {
		return invalid("occurredAtUtc is missing")
	}
	for _, t := range []time.Time{e.OccurredAt, e.DueAt} {
		if y := t.UTC().Year(); !t.IsZero() && (y < 1970 || y > 9999) {
			return invalid("time of year %d is outside 1970 to 9999", y)
		}
	}
	if p := bytes.TrimLeft(e.Payload, " \t\r\n"); len(p) > 0 && p[0] != '{' {
		return invalid("payload is not a JSON object")
	}
	if len(e.Headers) > MaxHeaders {
		return problem.New(problem.TooLarge, "signal.too-large", "%d headers exceed %d", len(e.Headers), MaxHeaders)
	}
	for k, v := range e.Headers {
		if n := max(len(k), len(v)); n > MaxHeaderSize {
			return problem.New(problem.TooLarge, "signal.too-large", "key or value of header %q has %d bytes; at most %d", clip(k), n, MaxHeaderSize)
		}
	}
	return nil
}

// checkSequence checks sender and sequence. A signal that has them may wait for
// its turn, so it can name no version, and no wait, of the present.
func (e Envelope) checkSequence() error {
	if e.Sender == "" && e.Sequence == 0 {
		return nil
	}
	if err := checkSender(e.Sender, e.Sequence); err != nil {
		return err
	}
	switch {
	case e.Type != ExternalSignal:
		return problem.New(problem.Invalid, "signal.invalid", "sender and sequence belong to %s, not to %s", ExternalSignal, e.Type)
	case e.WaitingToken != "" || e.ExpectedVersion != 0:
		return problem.New(problem.Invalid, "signal.invalid", "a signal with a sequence has no waitingToken and no expectedVersion").
			WithHint("leave out sender and sequence, or what stands beside them")
	}
	return nil
}

func checkSender(sender string, sequence int64) error {
	if err := checkID("sender", sender); err != nil {
		return err
	}
	if sequence < 1 {
		return problem.New(problem.Invalid, "signal.invalid", "sequence %d of the sender is not 1 or more", sequence)
	}
	return nil
}

// checkID checks what names a signal, an instance or a wait.
func checkID(name, value string) error {
	if value == "" {
		return problem.New(problem.Invalid, "signal.invalid", "%s is missing", name)
	}
	if len(value) > MaxIDBytes {
		return problem.New(problem.Invalid, "signal.invalid", "%s of %d bytes exceeds %d", name, len(value), MaxIDBytes)
	}
	if value == "." || value == ".." { // what reads a path takes them for something else
		return problem.New(problem.Invalid, "signal.invalid", "%s is %q, which no address can name", name, value)
	}
	if i := strings.IndexFunc(value, func(r rune) bool { return r <= ' ' || r == 0x7f }); i >= 0 {
		return problem.New(problem.Invalid, "signal.invalid", "%s holds a space or a control character at byte %d", name, i)
	}
	return nil
}

// clip keeps hostile input out of logs and messages.
func clip(s string) string {
	const most = 64
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
