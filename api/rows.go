package api

import (
	"cmp"
	"encoding/json"
	"maps"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/aqueduct-engine/aqueduct/ack"
	"github.com/aqueduct-engine/aqueduct/api/client"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// This file makes documents of rows. Tokens are secrets: whoever has one can
// answer for the outside world, so no document has a place for them.

var (
	instances = copies[client.Instance, projections.Instance](map[string]string{
		"Version": "DefVersion", "State": "Position", "CorrelationID": "Correlation", "StateVersion": "Version",
	}, "Error")
	tasks  = copies[client.Task, projections.Task](map[string]string{"AssignedAs": "Role"}, "CompletedBy")
	starts = copies[signal.Start, client.StartRequest](nil, "Parent", "Schedule", "Signal")
)

func toInstance(r projections.Instance) client.Instance {
	i := instances.of(r)
	if r.ErrorType != "" {
		i.Error = &client.InstanceError{Type: r.ErrorType, Detail: r.ErrorDetail}
	}
	return i
}

// utc keeps the zero time zero.
func utc(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC()
}

func toWait(w snapshot.Wait) client.Wait {
	out := client.Wait{Kind: string(w.Kind), Pointer: w.Pointer, Until: utc(w.Until), TaskID: w.TaskID, Command: w.Command, Event: w.Event}
	if len(w.Key) > 0 {
		key := make(map[string]json.RawMessage, len(w.Key))
		for name, value := range w.Key {
			key[name] = document([]byte(value))
		}
		out.Key = object(key)
	}
	return out
}

// waitsOf are the waits of an instance; of a retry it says why.
func waitsOf(s *snapshot.Snapshot) []client.Wait {
	list := convert(s.Waits, toWait)
	for i, w := range s.Waits {
		b := s.Branch(w.Branch)
		if w.Kind != snapshot.WaitRetry || b == nil {
			continue
		}
		for _, f := range b.Frames {
			if f.Pointer != w.Pointer || f.Attempt == 0 {
				continue
			}
			list[i].Retry = &client.Retrying{Attempt: f.Attempt, FailedAt: f.FailedAt.UTC()}
			var e snapshot.Error
			if len(f.Results) == 1 && jsonv2.Unmarshal(f.Results[0], &e) == nil {
				list[i].Retry.Error = toError(&e)
			}
		}
	}
	return list
}

// branchesOf is what an instance knows. The first line has the input of the instance until a task has replaced it.
func branchesOf(s *snapshot.Snapshot) []client.Branch {
	var list []client.Branch
	for _, b := range s.Branches {
		out, vars := client.Branch{ID: b.ID, Parent: b.Parent, Data: b.Data}, map[string]json.RawMessage{}
		if b.ID == 0 && b.Data == nil {
			out.Data = s.State.Input
		}
		for i := range b.Frames { // an inner one hides an outer one
			out.Pointer = b.Frames[i].Pointer
			maps.Copy(vars, b.Frames[i].Vars)
		}
		if len(vars) > 0 {
			out.Variables = object(vars)
		}
		list = append(list, out)
	}
	return list
}

// object is a map as JSON; its values are strings or JSON already.
func object[T string | json.RawMessage](m map[string]T) json.RawMessage {
	b, _ := json.Marshal(m) // cannot fail
	return b
}

// document is a column as JSON, whatever is in it.
func document(b []byte) json.RawMessage {
	switch {
	case len(b) == 0:
		return nil
	case json.Valid(b):
		return b
	}
	text, _ := json.Marshal(string(b)) // strings cannot fail
	return text
}

func toCommand(e projections.Entry) client.Command {
	var c engine.Command
	_ = json.Unmarshal(e.Data, &c) // written by us; what cannot be read is not shown
	return client.Command{
		Position: e.Position, Name: nameOf(e.Type, c.Pointer, e.Data), Target: c.Target, Pointer: c.Pointer, Attempts: e.Attempts, ClaimedBy: e.ClaimedBy,
		NextAt: nextAt(e), LastError: strings.TrimPrefix(e.LastError, ack.Open), CreatedAt: e.CreatedAt.UTC(),
		DeliveredAt: utc(e.DeliveredAt), Deliveries: e.Deliveries, Await: c.Await, Key: e.Key, Outcome: outcome(e), State: commandState(e),
	}
}

// undoes reports whether a command undoes what another has done: whose key is spent.
func undoes(row projections.Entry) bool {
	var c engine.Command
	return json.Unmarshal(row.Data, &c) == nil && c.Compensates
}

// nameOf is what the author of a definition calls an entry. The views of stores say the
// same (WF_V_TIMELINE, WF_V_STREAM).
func nameOf(entry, pointer string, data []byte) string {
	var said struct {
		Type  string `json:"type"`
		Event string `json:"event"`
		Input struct {
			Type string `json:"type"`
		} `json:"input"`
	}
	switch entry {
	case string(signal.ExternalSignal), engine.EntryEmitted, "StateChanged":
		_ = json.Unmarshal(data, &said) // what is no object names none
		return cmp.Or(said.Input.Type, said.Event, said.Type)
	}
	name := pointer[strings.LastIndexByte(pointer, '/')+1:]
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
}

func toCommandDetail(e projections.Entry) client.CommandDetail {
	var c engine.Command
	_ = json.Unmarshal(e.Data, &c) // as above
	d := client.CommandDetail{
		Command: toCommand(e), Input: c.Input, Acknowledged: c.Ack > 0, Awaited: c.Token != "", Processed: commandState(e) == "processed", ProcessedAt: utc(e.ProcessedAt),
	}
	if c.Ack != 0 && !*e.Processed && e.GivenUpAt.IsZero() {
		d.Retry = &client.Redelivery{} // whoever shows it knows
	}
	return d
}

// nextAt is when a command is tried again; zero = it is not, unless an operator replays its dead letter.
func nextAt(e projections.Entry) time.Time {
	if !e.GivenUpAt.IsZero() || e.Processed != nil && *e.Processed {
		return time.Time{}
	}
	return utc(e.NextAttemptAt)
}

// stateOf says how far a command has come; the views of stores say the same. "" = it is none.
func commandState(e projections.Entry) string {
	switch {
	case e.Processed == nil:
		return ""
	case !e.GivenUpAt.IsZero() && *e.Processed:
		return "discarded"
	case !e.GivenUpAt.IsZero():
		return "given-up"
	case *e.Processed:
		return "processed"
	case !e.DeliveredAt.IsZero():
		return "delivered"
	case e.ClaimedBy != "":
		return "claimed"
	}
	return "open"
}

// outcome says of a command's attempts whether it is known what they have done.
func outcome(e projections.Entry) string {
	switch {
	case e.Unknown:
		return "unknown"
	case e.Processed != nil && e.Attempts+e.Deliveries > 0 && e.ClaimedBy == "":
		return "known"
	}
	return ""
}

func toEntry(r projections.Entry) client.Entry {
	var m engine.Meta
	_ = json.Unmarshal(r.Metadata, &m) // written by us; what cannot be read is not shown
	e := client.Entry{
		Position: r.Position, Kind: r.Kind, Direction: r.Direction, Type: r.Type, Name: nameOf(r.Type, m.Pointer, r.Data), At: r.CreatedAt.UTC(),
		Pointer: m.Pointer, Actor: m.Actor, Disposition: string(m.Disposition), Sender: m.Sender, Sequence: m.Sequence, Refusal: m.Refusal, Policy: m.Policy, Answers: m.Command, Steps: m.Steps,
		StateVersion: m.Version, CorrelationID: m.Correlation, SignalID: r.SignalID, Data: document(r.Data),
		Processed: r.Processed, ProcessedAt: utc(r.ProcessedAt), ClaimedBy: r.ClaimedBy, Attempts: r.Attempts,
		NextAt: nextAt(r), LastError: strings.TrimPrefix(r.LastError, ack.Open), DeliveredAt: utc(r.DeliveredAt), Deliveries: r.Deliveries,
		Key: r.Key, Outcome: outcome(r), State: commandState(r),
	}
	if !r.GivenUpAt.IsZero() {
		e.Processed = new(bool)
	}
	if r.Kind == string(engine.KindCommand) {
		e.Data = withoutToken(e.Data)
	}
	return e
}

// withoutToken removes the token from a command; one that cannot be read is
// not shown at all.
func withoutToken(data json.RawMessage) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil {
		return nil
	}
	delete(fields, "token")
	return object(fields)
}

func positionText(p int64) string { return strconv.FormatInt(p, 10) }

func toTask(r projections.Task) client.Task {
	t := tasks.of(r)
	if r.Status == projections.TaskCompleted {
		t.CompletedBy = r.EndedBy
	}
	return t
}

func list(names string) []string {
	var out []string
	_ = json.Unmarshal([]byte(names), &out) // written by us; "" is no name
	return out
}

func toTaskEvent(r projections.TaskEvent) client.TaskEvent {
	return client.TaskEvent{Event: r.Event, Actor: r.Actor, At: r.At.UTC(), Data: document(r.Data)}
}

func toDeadLetter(r projections.DeadLetter) client.DeadLetter {
	return client.DeadLetter{
		ID: r.ID, Queue: r.Queue, InstanceID: r.InstanceID, Reason: r.Reason, Detail: r.Detail, Attempts: r.Attempts,
		Node: r.Node, EnqueuedAt: r.EnqueuedAt.UTC(), DiedAt: r.DiedAt.UTC(), Priority: r.Priority,
	}
}

func toDeadLetterDetail(r projections.DeadLetter) client.DeadLetterDetail {
	d := client.DeadLetterDetail{DeadLetter: toDeadLetter(r), Envelope: r.Envelope}
	if utf8.Valid(r.Envelope) {
		d.Text = string(r.Envelope)
	}
	return d
}

func toDeadLetterEdit(e backend.DeadLetterEdit) client.DeadLetterEdit {
	d := client.DeadLetterEdit{No: e.No, What: e.What, At: e.At.UTC(), By: e.By, Reason: e.Reason, Body: e.Body}
	if utf8.Valid(e.Body) {
		d.Text = string(e.Body)
	}
	return d
}

func toQueue(q backend.Queue) client.Queue {
	return client.Queue{Name: q.Name, Ready: q.Ready, Delayed: q.Delayed, Leased: q.Leased, OldestAt: utc(q.OldestAt)}
}
