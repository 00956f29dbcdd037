// Package humantask is what is known of a piece of work for a person wherever it is
// asked for, stored or given out.
package humantask

import (
	"encoding/json"
	"fmt"
	"slices"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/aqueduct-engine/aqueduct/engine"
)

// Bounds of a human task. Names are those of users, groups and outcomes.
const (
	DefaultPriority = 50    // of a task that does not say; smaller comes first
	MaxPriority     = 100   // from 0
	MaxTitle        = 1_000 // characters
	MaxName         = 256   // characters
	MaxNames        = 2_000 // bytes of a list as JSON: a store's column holds 4,000, and an escalation adds a list or a holder
)

// CheckNames checks a list of users, groups or outcomes.
func CheckNames(names []string) error {
	for i, name := range names {
		if n := utf8.RuneCountInString(name); n == 0 || n > MaxName {
			return fmt.Errorf("has at %d a name of %d characters, not 1 to %d", i, n, MaxName)
		}
	}
	if raw, err := json.Marshal(names); err != nil || len(raw) > MaxNames {
		return fmt.Errorf("is a list of %d bytes; at most %d", len(raw), MaxNames)
	}
	return nil
}

// FormSchema returns the schema that answers to a human task must fit, when its
// form has one.
func FormSchema(form json.RawMessage) (json.RawMessage, bool) {
	var f struct {
		Schema json.RawMessage `json:"schema"`
	}
	if jsonv2.Unmarshal(form, &f) != nil || len(f.Schema) == 0 || string(f.Schema) == "null" {
		return nil, false
	}
	return f.Schema, true
}

// Candidate reports whether a user with these groups may claim a task, and by
// which of the groups; "" = in person. Nobody excluded may, whatever else
// holds; without candidates everybody else may.
func Candidate(t engine.Task, user string, groups []string) (role string, ok bool) {
	switch {
	case slices.Contains(t.ExcludedUsers, user):
		return "", false
	case slices.Contains(t.CandidateUsers, user), len(t.CandidateUsers) == 0 && len(t.CandidateGroups) == 0:
		return "", true
	}
	for _, g := range groups {
		if slices.Contains(t.CandidateGroups, g) {
			return g, true
		}
	}
	return "", false
}

// Escalate returns a task as it is once it has been escalated. Without groups
// to escalate to, that is a reminder and changes nothing. With them, they are
// candidates too, and whoever has the task gives it back and stays a candidate
// in person. A task that is open to everybody stays so.
func Escalate(t engine.Task) engine.Task {
	if len(t.EscalateTo) == 0 {
		return t
	}
	holder := t.Assignee
	t.Assignee = ""
	if len(t.CandidateUsers) == 0 && len(t.CandidateGroups) == 0 {
		return t
	}
	if holder != "" && !slices.Contains(t.CandidateUsers, holder) {
		t.CandidateUsers = append(slices.Clone(t.CandidateUsers), holder)
	}
	t.CandidateGroups = slices.Clone(t.CandidateGroups)
	for _, g := range t.EscalateTo {
		if !slices.Contains(t.CandidateGroups, g) {
			t.CandidateGroups = append(t.CandidateGroups, g)
		}
	}
	return t
}
