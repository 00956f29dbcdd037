package program

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/aqueduct-engine/aqueduct/problem"
	jsonv2 "github.com/go-json-experiment/json"
)

// EventRoles are the roles that events of a lifecycle are for, by the names of events; none =
// whoever may trigger events.
func (p *Program) EventRoles() map[string][]string {
	all := map[string][]string{}
	if p.Machine != nil {
		for _, e := range p.Machine.Events {
			all[e.Name] = e.Roles
		}
	}
	return all
}

// sender is who has sent a signal, as whoever has let them in says.
type sender struct {
	Kind   string   `json:"kind"`
	Name   string   `json:"name,omitempty"`
	Groups []string `json:"groups,omitempty"`
}

// Kinds of senders that nobody asks for a role: the engine and the programs that it is
// part of, and who comes to a node that asks nobody who they are.
const (
	senderNode   = "node"
	senderNobody = "nobody"
)

// forbidden says which event was refused to whom.
type forbidden struct {
	InstanceID string   `json:"instanceId"`
	Reference  string   `json:"reference,omitempty"`
	Definition string   `json:"definition"`
	State      string   `json:"state"`
	Event      string   `json:"event"`
	Roles      []string `json:"roles"`           // one of which it takes
	Principal  sender   `json:"principal"`       // without its groups
	Actor      string   `json:"actor,omitempty"` // in whose name it was sent

	begins bool // the instance would have begun with it
}

// Error implements error.
func (f *forbidden) Error() string { return "roles of the event: " + strings.Join(f.Roles, ", ") }

// Notice is what an instance records of it; nothing, where it has not begun. Same says
// what is one and the same: an event in a state, and who has sent it.
func (f *forbidden) Notice() (instance, actor, same string, data json.RawMessage) {
	if f.begins {
		return "", "", "", nil
	}
	data, _ = json.Marshal(f)                                                              // of texts
	key, _ := json.Marshal([]string{f.State, f.Event, f.Principal.Kind, f.Principal.Name}) // of texts
	return f.InstanceID, f.Actor, string(key), data
}

// allowed refuses an event that is for others than those who have sent it. Who that is
// the signal says, whatever way it has come.
func (r states) allowed(n *Node, event *Event, actor string) error {
	if len(event.Roles) == 0 {
		return nil
	}
	var who sender
	if raw := r.t.In.Signal.Principal; len(raw) > 0 {
		if err := jsonv2.Unmarshal(raw, &who); err != nil {
			return problem.Wrap(err, problem.Invalid, "signal.invalid", "the principal of the signal is not {kind, name, groups}")
		}
	}
	if who.Kind == senderNode || who.Kind == senderNobody || slices.ContainsFunc(event.Roles, func(role string) bool { return slices.Contains(who.Groups, role) }) {
		return nil
	}
	by := "somebody of whom nobody says who it is"
	if who.Name != "" {
		by = who.Name + ", of the groups [" + strings.Join(who.Groups, ", ") + "],"
	}
	who.Groups = nil
	s := r.t.Snap
	return problem.Wrap(&forbidden{
		InstanceID: s.InstanceID, Reference: s.Business.Key, Definition: s.Definition.Name, State: n.Name, Event: event.Name, Roles: event.Roles,
		Principal: who, Actor: actor, begins: s.Version == 1,
	}, problem.Denied, "event.forbidden", "%s may not trigger event %s of instance %s, which is for %s", by, event.Name, s.InstanceID, strings.Join(event.Roles, ", ")).
		WithHint("the roles of the event, in the lifecycle or its policy, say who may")
}
