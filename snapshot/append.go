package snapshot

import (
	"strconv"

	"github.com/aqueduct-engine/aqueduct/appendjson"
)

// The encoder writes document by hand: a snapshot is encoded in every turn,
// and this is more than twice as fast as encoding/json or json/v2 (see
// BenchmarkEncode and BenchmarkEncodeByReflection). A test holds the two forms
// together.

// present begins every document of the present schema version.
var present = `{"engineSchemaVersion":` + strconv.Itoa(SchemaVersion) + `,`

// append appends the document of s.
func (s *Snapshot) append(b []byte) []byte {
	o := &appendjson.Object{B: append(b, present[:len(present)-1]...)}
	o.Str("instanceId", s.InstanceID)
	o.Open("definition")
	o.Str("name", s.Definition.Name)
	o.Str("version", s.Definition.Version)
	o.Str("digest", s.Definition.Digest)
	o.Close()
	o.Open("businessReference")
	o.Opt("key", s.Business.Key)
	o.OptMap("parts", s.Business.Parts)
	o.Close()
	o.Str("status", string(s.Status))
	o.Num("version", s.Version)
	o.Num("position", s.Position)
	o.Time("startedAtUtc", s.StartedAt)
	o.Time("updatedAtUtc", s.UpdatedAt)
	o.OptMap("headers", s.Headers)
	o.Open("workflowState")
	o.OptRaw("input", s.State.Input)
	o.OptRaw("context", s.State.Context)
	o.OptRaw("output", s.State.Output)
	o.Opt("name", s.State.Name)
	o.Close()
	s.appendOrigin(o)
	s.appendSummary(o)
	o.Objects("branches", len(s.Branches), func(i int) { s.Branches[i].append(o) })
	o.OptNum("lastBranch", int64(s.LastBranch))
	others := s.others()
	o.Objects("waits", len(others), func(i int) { others[i].append(o) })
	o.Objects("subWorkflowFrames", len(s.SubFrames), func(i int) {
		f := s.SubFrames[i]
		o.Str("instanceId", f.InstanceID)
		o.Str("token", f.Token)
		o.Str("ptr", f.Pointer)
	})
	o.Objects("continuationBuffer", len(s.Buffer), func(i int) { s.Buffer[i].append(o) })
	o.Objects("senders", len(s.Senders), func(i int) {
		o.Str("sender", s.Senders[i].Name)
		o.OptNum("last", s.Senders[i].Last)
	})
	o.Objects("ahead", len(s.Ahead), func(i int) { s.Ahead[i].append(o) })
	if s.Error != nil {
		s.Error.append(o)
	}
	o.Opt("resumeAs", string(s.ResumeAs))
	s.appendCompensating(o)
	o.OptNum("lifecycle", s.Lifecycle)
	s.appendIdentity(o)
	o.Close()
	return o.B
}

// appendIdentity appends what keys are made of, and remembered by.
func (s *Snapshot) appendIdentity(o *appendjson.Object) {
	o.Opt("incarnation", s.Incarnation)
	if s.Epoch > 1 {
		o.Num("epoch", s.Epoch)
	}
	o.Objects("effects", len(s.Effects), func(i int) {
		e := s.Effects[i]
		o.Str("ptr", e.Pointer)
		o.Str("visit", e.Visit)
		o.OptNum("arm", int64(e.Arm))
		o.Opt("key", e.Key)
		o.OptNum("command", e.Command)
		if e.Unknown {
			o.Key("unknown")
			o.B = append(o.B, "true"...)
		}
		o.OptNum("undone", int64(e.Undone))
	})
	o.OptMap("moved", s.Moved)
}

func (s *Snapshot) appendCompensating(o *appendjson.Object) {
	o.Objects("compensations", len(s.Compensations), func(i int) {
		c := s.Compensations[i]
		o.Num("step", int64(c.Step))
		o.Str("ptr", c.Pointer)
		o.Str("target", c.Target)
		o.OptRaw("input", c.Input)
		o.Opt("key", c.Key)
		o.Opt("visit", c.Visit)
	})
	o.OptNum("lastStep", int64(s.LastStep))
	if s.Undo != nil {
		o.Open("undo")
		s.Undo.Error.append(o)
		if s.Undo.Done {
			o.Key("done")
			o.B = append(o.B, "true"...)
		}
		o.Close()
	}
}

func (e *Error) append(o *appendjson.Object) {
	o.Open("error")
	o.Str("type", e.Type)
	o.Num("status", int64(e.Status))
	o.Opt("title", e.Title)
	o.Opt("detail", e.Detail)
	o.Opt("instance", e.Instance)
	o.Close()
}

// appendOrigin appends why there is the instance.
func (s *Snapshot) appendOrigin(o *appendjson.Object) {
	if s.Parent != nil {
		o.Open("parent")
		o.Str("instanceId", s.Parent.InstanceID)
		o.Opt("token", s.Parent.Token)
		o.OptNum("depth", int64(s.Parent.Depth))
		o.Close()
	}
	if x := s.Schedule; x != nil {
		o.Open("schedule")
		o.OptNum("generation", int64(x.Generation))
		o.OptNum("ticks", int64(x.Ticks))
		o.OptNum("missed", x.Missed)
		o.OptTime("dueUtc", x.Due)
		o.Opt("successor", x.Successor)
		o.Close()
	}
}

func (s *Snapshot) appendSummary(o *appendjson.Object) {
	if w, ok := s.Primary(); ok {
		o.Open("waiting")
		w.append(o)
		o.Close()
	}
	if r := s.Resume(); r != nil {
		o.Open("resume")
		o.Str("entryPointKind", r.EntryPointKind)
		o.Str("taskName", r.TaskName)
		o.List("branchPath", len(r.BranchPath), func(i int) { o.B = appendjson.String(o.B, r.BranchPath[i]) })
		o.Num("nextStepIndex", int64(r.NextStepIndex))
		o.Close()
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

func (b *Branch) append(o *appendjson.Object) {
	o.Num("id", int64(b.ID))
	o.OptNum("parent", int64(b.Parent))
	o.OptNum("arm", int64(b.Arm))
	o.Key("frames")
	o.B = append(o.B, '[')
	for i := range b.Frames {
		if i > 0 {
			o.B = append(o.B, ',')
		}
		b.Frames[i].append(o)
	}
	o.B = append(o.B, ']')
	o.OptRaw("data", b.Data)
}

func (f *Frame) append(o *appendjson.Object) {
	o.B = append(o.B, '{')
	o.Str("ptr", f.Pointer)
	o.OptNum("next", int64(f.Next))
	o.Opt("phase", f.Phase)
	o.OptRaw("input", f.Input)
	o.OptRaw("raw", f.Raw)
	o.OptRaws("items", f.Items)
	o.OptRaws("results", f.Results)
	o.OptNum("open", int64(f.Open))
	if len(f.Done) > 0 {
		o.List("done", len(f.Done), func(i int) { o.B = strconv.AppendInt(o.B, int64(f.Done[i]), 10) })
	}
	o.OptMap("bound", f.Bound)
	o.OptRawMap("vars", f.Vars)
	o.OptNum("mark", int64(f.Mark))
	o.OptNum("attempt", int64(f.Attempt))
	o.OptTime("startedAt", f.StartedAt)
	o.OptTime("failedAt", f.FailedAt)
	o.Opt("deadline", f.Deadline)
	o.OptNum("jumps", int64(f.Jumps))
	o.OptNum("epoch", f.Epoch)
	o.B = append(o.B, '}')
}

func (w *Wait) append(o *appendjson.Object) {
	o.Str("kind", string(w.Kind))
	o.Str("token", w.Token)
	o.OptNum("branch", int64(w.Branch))
	o.Str("ptr", w.Pointer)
	o.OptTime("untilUtc", w.Until)
	o.OptNum("arm", int64(w.Arm))
	o.OptNum("command", w.Command)
	o.Opt("taskId", w.TaskID)
	o.Opt("event", w.Event)
	o.OptMap("key", w.Key)
	o.OptNum("bound", int64(w.Bound))
	o.Opt("effect", w.Effect)
	o.Opt("visit", w.Visit)
}

func (b *Buffered) append(o *appendjson.Object) {
	o.Str("signalId", b.SignalID)
	o.Str("signalType", b.Type)
	o.Opt("waitingToken", b.Token)
	o.Time("occurredAtUtc", b.OccurredAt)
	o.Opt("actor", b.Actor)
	o.OptRaw("payload", b.Payload)
	o.Opt("sender", b.Sender)
	o.OptNum("sequence", b.Sequence)
}
