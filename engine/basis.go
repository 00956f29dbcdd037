package engine

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// Rules counts the changes by which something is decided otherwise than by engines before.
const Rules = 4

// Basis is what a decision was made on that neither the snapshot before it nor its own entries say: with all three,
// whoever has the definition decides it again. The first entry of the decision has it.
type Basis struct {
	By        string             `json:"by,omitempty"`       // who has decided, or EntryFaulted; "" = a signal
	With      json.RawMessage    `json:"with,omitempty"`     // what they were told: an output, a map of pointers
	Wait      int                `json:"wait,omitempty"`     // place, from 1, of the wait whose token the signal has; -1 = of none
	Expected  int64              `json:"expected,omitempty"` // version
	Due       time.Time          `json:"due,omitzero"`       // of the signal, when it came early
	Occurred  time.Time          `json:"occurred,omitzero"`  // the signal, when it is kept
	Clock     time.Time          `json:"clock,omitzero"`     // of the turn, where it counts
	Epoch     int64              `json:"epoch,omitempty"`    // where another begins
	Limits    []int              `json:"limits,omitempty"`   // in the order of their struct; absent = the defaults
	Lifecycle bool               `json:"lifecycle,omitempty"`
	Principal json.RawMessage    `json:"principal,omitempty"` // who has sent the signal
	Crowded   bool               `json:"crowded,omitempty"`
	Engine    string             `json:"engine,omitempty"` // version of the program
	Rules     int                `json:"rules,omitempty"`  // see Rules
	Origin    *snapshot.Snapshot `json:"origin,omitempty"` // of a first turn, with the digest of its input for it
}

func (b *Basis) begun(s snapshot.Snapshot) {
	s.State.Input = fmt.Appendf(nil, `"%x"`, sha256.Sum256(s.State.Input))
	b.Origin = &s
}

// basis is that of a decision on s, which nothing has changed yet.
func (in *Input) basis(s *snapshot.Snapshot) Basis {
	b := Basis{Expected: in.Signal.ExpectedVersion, Lifecycle: in.Lifecycle, Crowded: in.Crowded, Engine: in.Engine, Rules: Rules, Principal: in.Signal.Principal}
	if token := in.Signal.WaitingToken; token != "" {
		b.Wait = cmp.Or(1+slices.IndexFunc(s.Waits, func(w snapshot.Wait) bool { return w.Token == token }), -1)
	}
	if s.Epoch != in.Epoch {
		b.Epoch = in.Epoch
	}
	if in.Signal.DueAt.After(in.Now) {
		b.Due = in.Signal.DueAt
	}
	if l := &in.Limits; *l != (Limits{Steps: DefaultSteps, FanOut: DefaultFanOut, Items: DefaultItems}) {
		b.Limits = []int{l.Steps, l.FanOut, l.Items, l.Expression.Steps, l.Expression.Bytes}
	}
	return b
}
