package snapshot

import (
	"bytes"
	"encoding/json"
	"sort"
	"strconv"
	"time"
)

// The encoder writes document by hand: a snapshot is encoded in every turn,
// and this is more than twice as fast as encoding/json or json/v2 (see
// BenchmarkEncode and BenchmarkEncodeByReflection). A test holds the two forms
// together.

// present begins every document of the present schema version.
var present = `{"engineSchemaVersion":` + strconv.Itoa(SchemaVersion) + `,`

// object appends the members of a JSON object. The caller opens and closes it.
type object struct{ b []byte }

func (o *object) key(name string) {
	if c := o.b[len(o.b)-1]; c != '{' {
		o.b = append(o.b, ',')
	}
	o.b = append(o.b, '"')
	o.b = append(o.b, name...)
	o.b = append(o.b, '"', ':')
}

func (o *object) str(name, v string) {
	o.key(name)
	o.b = appendString(o.b, v)
}

// opt appends a string unless it is empty; so do the other opt methods.
func (o *object) opt(name, v string) {
	if v != "" {
		o.str(name, v)
	}
}

func (o *object) num(name string, v int64) {
	o.key(name)
	o.b = strconv.AppendInt(o.b, v, 10)
}

func (o *object) optNum(name string, v int64) {
	if v != 0 {
		o.num(name, v)
	}
}

func (o *object) time(name string, v time.Time) {
	o.key(name)
	o.b = append(o.b, '"')
	o.b = v.UTC().AppendFormat(o.b, time.RFC3339Nano)
	o.b = append(o.b, '"')
}

func (o *object) optTime(name string, v time.Time) {
	if !v.IsZero() {
		o.time(name, v)
	}
}

func (o *object) optRaw(name string, v json.RawMessage) {
	if len(v) > 0 {
		o.key(name)
		o.b = append(o.b, v...)
	}
}

func (o *object) optRaws(name string, v []json.RawMessage) {
	if len(v) == 0 {
		return
	}
	o.list(name, len(v), func(i int) {
		if v[i] == nil {
			o.b = append(o.b, "null"...)
			return
		}
		o.b = append(o.b, v[i]...)
	})
}

// open and close bracket a nested object.
func (o *object) open(name string) {
	o.key(name)
	o.b = append(o.b, '{')
}

func (o *object) close() { o.b = append(o.b, '}') }

// list appends an array of n elements that each writes.
func (o *object) list(name string, n int, each func(i int)) {
	o.key(name)
	o.b = append(o.b, '[')
	for i := range n {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		each(i)
	}
	o.b = append(o.b, ']')
}

// objects is list with elements that are objects.
func (o *object) objects(name string, n int, each func(i int)) {
	if n == 0 {
		return
	}
	o.list(name, n, func(i int) {
		o.b = append(o.b, '{')
		each(i)
		o.b = append(o.b, '}')
	})
}

func (o *object) optMap(name string, m map[string]string) {
	if len(m) == 0 {
		return
	}
	o.open(name)
	for _, k := range sortedKeys(m) {
		o.member(k)
		o.b = appendString(o.b, m[k])
	}
	o.close()
}

func (o *object) optRawMap(name string, m map[string]json.RawMessage) {
	if len(m) == 0 {
		return
	}
	o.open(name)
	for _, k := range sortedKeys(m) {
		o.member(k)
		o.b = append(o.b, m[k]...)
	}
	o.close()
}

// Object is the same for who else writes rows in every turn: the members of a
// JSON object, without those that are empty.
type Object struct{ o object }

// NewObject begins an object that has about so many bytes.
func NewObject(size int) Object { return Object{object{append(make([]byte, 0, size), '{')}} }

// Text adds a string.
func (o *Object) Text(name, v string) { o.o.opt(name, v) }

// Number adds a number.
func (o *Object) Number(name string, v int64) { o.o.optNum(name, v) }

// Texts adds a list of strings.
func (o *Object) Texts(name string, v []string) {
	if len(v) > 0 {
		o.o.list(name, len(v), func(i int) { o.o.b = appendString(o.o.b, v[i]) })
	}
}

// End returns the object, nil when it has no member.
func (o *Object) End() []byte {
	if len(o.o.b) == 1 {
		return nil
	}
	o.o.close()
	return o.o.b
}

// member is key for a name that is not ours.
func (o *object) member(name string) {
	if c := o.b[len(o.b)-1]; c != '{' {
		o.b = append(o.b, ',')
	}
	o.b = append(appendString(o.b, name), ':')
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// appendString appends s as a JSON string. All that is not plain ASCII goes
// through encoding/json, which knows what to escape.
func appendString(b []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			var buf bytes.Buffer
			enc := json.NewEncoder(&buf)
			enc.SetEscapeHTML(false)
			_ = enc.Encode(s) // a string cannot fail
			return append(b, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// append appends the document of s.
func (s *Snapshot) append(b []byte) []byte {
	o := &object{append(b, present[:len(present)-1]...)}
	o.str("instanceId", s.InstanceID)
	o.open("definition")
	o.str("name", s.Definition.Name)
	o.str("version", s.Definition.Version)
	o.str("digest", s.Definition.Digest)
	o.close()
	o.open("businessReference")
	o.opt("key", s.Business.Key)
	o.optMap("parts", s.Business.Parts)
	o.close()
	o.str("status", string(s.Status))
	o.num("version", s.Version)
	o.num("position", s.Position)
	o.time("startedAtUtc", s.StartedAt)
	o.time("updatedAtUtc", s.UpdatedAt)
	o.optMap("headers", s.Headers)
	o.open("workflowState")
	o.optRaw("input", s.State.Input)
	o.optRaw("context", s.State.Context)
	o.optRaw("output", s.State.Output)
	o.opt("name", s.State.Name)
	o.close()
	s.appendOrigin(o)
	s.appendSummary(o)
	o.objects("branches", len(s.Branches), func(i int) { s.Branches[i].append(o) })
	o.optNum("lastBranch", int64(s.LastBranch))
	others := s.others()
	o.objects("waits", len(others), func(i int) { others[i].append(o) })
	o.objects("subWorkflowFrames", len(s.SubFrames), func(i int) {
		f := s.SubFrames[i]
		o.str("instanceId", f.InstanceID)
		o.str("token", f.Token)
		o.str("ptr", f.Pointer)
	})
	o.objects("continuationBuffer", len(s.Buffer), func(i int) { s.Buffer[i].append(o) })
	o.objects("senders", len(s.Senders), func(i int) {
		o.str("sender", s.Senders[i].Name)
		o.optNum("last", s.Senders[i].Last)
	})
	o.objects("ahead", len(s.Ahead), func(i int) { s.Ahead[i].append(o) })
	if s.Error != nil {
		s.Error.append(o)
	}
	o.opt("resumeAs", string(s.ResumeAs))
	s.appendCompensating(o)
	o.optNum("lifecycle", s.Lifecycle)
	s.appendIdentity(o)
	o.close()
	return o.b
}

// appendIdentity appends what keys are made of, and remembered by.
func (s *Snapshot) appendIdentity(o *object) {
	o.opt("incarnation", s.Incarnation)
	if s.Epoch > 1 {
		o.num("epoch", s.Epoch)
	}
	o.objects("effects", len(s.Effects), func(i int) {
		e := s.Effects[i]
		o.str("ptr", e.Pointer)
		o.str("visit", e.Visit)
		o.optNum("arm", int64(e.Arm))
		o.opt("key", e.Key)
		o.optNum("command", e.Command)
		if e.Unknown {
			o.key("unknown")
			o.b = append(o.b, "true"...)
		}
		o.optNum("undone", int64(e.Undone))
	})
	o.optMap("moved", s.Moved)
}

func (s *Snapshot) appendCompensating(o *object) {
	o.objects("compensations", len(s.Compensations), func(i int) {
		c := s.Compensations[i]
		o.num("step", int64(c.Step))
		o.str("ptr", c.Pointer)
		o.str("target", c.Target)
		o.optRaw("input", c.Input)
		o.opt("key", c.Key)
		o.opt("visit", c.Visit)
	})
	o.optNum("lastStep", int64(s.LastStep))
	if s.Undo != nil {
		o.open("undo")
		s.Undo.Error.append(o)
		if s.Undo.Done {
			o.key("done")
			o.b = append(o.b, "true"...)
		}
		o.close()
	}
}

func (e *Error) append(o *object) {
	o.open("error")
	o.str("type", e.Type)
	o.num("status", int64(e.Status))
	o.opt("title", e.Title)
	o.opt("detail", e.Detail)
	o.opt("instance", e.Instance)
	o.close()
}

// appendOrigin appends why there is the instance.
func (s *Snapshot) appendOrigin(o *object) {
	if s.Parent != nil {
		o.open("parent")
		o.str("instanceId", s.Parent.InstanceID)
		o.opt("token", s.Parent.Token)
		o.optNum("depth", int64(s.Parent.Depth))
		o.close()
	}
	if x := s.Schedule; x != nil {
		o.open("schedule")
		o.optNum("generation", int64(x.Generation))
		o.optNum("ticks", int64(x.Ticks))
		o.optNum("missed", x.Missed)
		o.optTime("dueUtc", x.Due)
		o.opt("successor", x.Successor)
		o.close()
	}
}

func (s *Snapshot) appendSummary(o *object) {
	if w, ok := s.Primary(); ok {
		o.open("waiting")
		w.append(o)
		o.close()
	}
	if r := s.Resume(); r != nil {
		o.open("resume")
		o.str("entryPointKind", r.EntryPointKind)
		o.str("taskName", r.TaskName)
		o.list("branchPath", len(r.BranchPath), func(i int) { o.b = appendString(o.b, r.BranchPath[i]) })
		o.num("nextStepIndex", int64(r.NextStepIndex))
		o.close()
	}
}

// others are the waits behind the primary one.
func (s *Snapshot) others() []Wait {
	primary := s.primary()
	if primary < 0 {
		return s.Waits
	}
	if primary == 0 {
		return s.Waits[1:]
	}
	others := make([]Wait, 0, len(s.Waits)-1)
	return append(append(others, s.Waits[:primary]...), s.Waits[primary+1:]...)
}

func (b *Branch) append(o *object) {
	o.num("id", int64(b.ID))
	o.optNum("parent", int64(b.Parent))
	o.optNum("arm", int64(b.Arm))
	o.key("frames")
	o.b = append(o.b, '[')
	for i := range b.Frames {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		b.Frames[i].append(o)
	}
	o.b = append(o.b, ']')
	o.optRaw("data", b.Data)
}

func (f *Frame) append(o *object) {
	o.b = append(o.b, '{')
	o.str("ptr", f.Pointer)
	o.optNum("next", int64(f.Next))
	o.opt("phase", f.Phase)
	o.optRaw("input", f.Input)
	o.optRaw("raw", f.Raw)
	o.optRaws("items", f.Items)
	o.optRaws("results", f.Results)
	o.optNum("open", int64(f.Open))
	if len(f.Done) > 0 {
		o.list("done", len(f.Done), func(i int) { o.b = strconv.AppendInt(o.b, int64(f.Done[i]), 10) })
	}
	o.optMap("bound", f.Bound)
	o.optRawMap("vars", f.Vars)
	o.optNum("mark", int64(f.Mark))
	o.optNum("attempt", int64(f.Attempt))
	o.optTime("startedAt", f.StartedAt)
	o.optTime("failedAt", f.FailedAt)
	o.opt("deadline", f.Deadline)
	o.optNum("jumps", int64(f.Jumps))
	o.optNum("epoch", f.Epoch)
	o.b = append(o.b, '}')
}

func (w *Wait) append(o *object) {
	o.str("kind", string(w.Kind))
	o.str("token", w.Token)
	o.optNum("branch", int64(w.Branch))
	o.str("ptr", w.Pointer)
	o.optTime("untilUtc", w.Until)
	o.optNum("arm", int64(w.Arm))
	o.optNum("command", w.Command)
	o.opt("taskId", w.TaskID)
	o.opt("event", w.Event)
	o.optMap("key", w.Key)
	o.optNum("bound", int64(w.Bound))
	o.opt("effect", w.Effect)
	o.opt("visit", w.Visit)
}

func (b *Buffered) append(o *object) {
	o.str("signalId", b.SignalID)
	o.str("signalType", b.Type)
	o.opt("waitingToken", b.Token)
	o.time("occurredAtUtc", b.OccurredAt)
	o.opt("actor", b.Actor)
	o.optRaw("payload", b.Payload)
	o.opt("sender", b.Sender)
	o.optNum("sequence", b.Sequence)
}
