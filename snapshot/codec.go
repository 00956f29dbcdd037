package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"slices"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// document is the stored form (A4). Waiting is the primary wait, Waits are the
// others. Resume repeats what the branches say, for operators who read the row;
// Decode does not read it.
type document struct {
	EngineSchemaVersion int               `json:"engineSchemaVersion"`
	InstanceID          string            `json:"instanceId"`
	Definition          Definition        `json:"definition"`
	BusinessReference   BusinessReference `json:"businessReference"`
	Status              Status            `json:"status"`
	Version             int64             `json:"version"`
	Position            int64             `json:"position"`
	StartedAt           time.Time         `json:"startedAtUtc"`
	UpdatedAt           time.Time         `json:"updatedAtUtc"`
	Headers             map[string]string `json:"headers,omitempty"`
	WorkflowState       State             `json:"workflowState"`
	Parent              *Parent           `json:"parent,omitempty"`
	Schedule            *Schedule         `json:"schedule,omitempty"`
	Waiting             *Wait             `json:"waiting,omitempty"`
	Resume              *ResumePoint      `json:"resume,omitempty"`
	Branches            []*Branch         `json:"branches,omitempty"`
	LastBranch          int               `json:"lastBranch,omitempty"`
	Waits               []Wait            `json:"waits,omitempty"`
	SubWorkflowFrames   []SubFrame        `json:"subWorkflowFrames,omitempty"`
	ContinuationBuffer  []Buffered        `json:"continuationBuffer,omitempty"`
	Senders             []Sender          `json:"senders,omitempty"`
	Ahead               []Buffered        `json:"ahead,omitempty"`
	Error               *Error            `json:"error,omitempty"`
	ResumeAs            Status            `json:"resumeAs,omitempty"`
	Compensations       []Compensation    `json:"compensations,omitempty"`
	LastStep            int               `json:"lastStep,omitempty"`
	Undo                *Undo             `json:"undo,omitempty"`
	Lifecycle           int64             `json:"lifecycle,omitempty"`
	Incarnation         string            `json:"incarnation,omitempty"`
	Epoch               int64             `json:"epoch,omitempty"`
	Effects             []Effect          `json:"effects,omitempty"`
	Moved               map[string]string `json:"moved,omitempty"`
}

// ResumePoint is the summary of where the instance goes on.
type ResumePoint struct {
	EntryPointKind string   `json:"entryPointKind"`
	TaskName       string   `json:"taskName"`
	BranchPath     []string `json:"branchPath"`
	NextStepIndex  int      `json:"nextStepIndex"`
}

// Encode returns the canonical bytes of s. The problem limit.snapshot says
// that it is larger than MaxBytes, limit.stream that its stream is too long. Raw
// values in s must be valid JSON.
func (s *Snapshot) Encode() ([]byte, error) {
	return s.EncodeTo(make([]byte, 0, 1024+len(s.State.Input)))
}

// EncodeTo is Encode into memory that the caller has for it, from its beginning.
func (s *Snapshot) EncodeTo(b []byte) ([]byte, error) {
	if last := s.lastPosition(); s.Position > last {
		return nil, problem.New(problem.TooLarge, "limit.stream", "stream position %d is over %d", s.Position, last)
	}
	if b = s.append(b[:0]); len(b) > MaxBytes {
		return nil, problem.New(problem.TooLarge, "limit.snapshot", "snapshot of %d bytes exceeds %d", len(b), MaxBytes)
	}
	return b, nil
}

// Decode reads a stored snapshot of any schema version up to SchemaVersion.
// Problems: snapshot.corrupt, and snapshot.newer for a version this program
// does not know.
func Decode(raw []byte) (Snapshot, error) {
	v, err := schemaVersion(raw)
	if err != nil {
		return Snapshot{}, err
	}
	if v > SchemaVersion {
		return Snapshot{}, problem.New(problem.Unavailable, "snapshot.newer", "snapshot has schema version %d, this node knows %d", v, SchemaVersion).
			WithHint("upgrade this node; a newer one has written the instance")
	}
	if raw, err = upcast(raw, v); err != nil {
		return Snapshot{}, err
	}
	var d document
	if err := json.Unmarshal(raw, &d); err != nil {
		return Snapshot{}, problem.Wrap(err, problem.Internal, "snapshot.corrupt", "snapshot is not a document of schema version %d", SchemaVersion)
	}
	if d.InstanceID == "" || d.Version < 1 || d.Status == "" {
		return Snapshot{}, problem.New(problem.Internal, "snapshot.corrupt", "snapshot lacks instanceId, version or status")
	}
	if d.Waiting != nil {
		d.Waits = append([]Wait{*d.Waiting}, d.Waits...)
	}
	d.identify()
	return Snapshot{
		InstanceID: d.InstanceID, Definition: d.Definition, Business: d.BusinessReference,
		Status: d.Status, Version: d.Version, Position: d.Position, StartedAt: d.StartedAt, UpdatedAt: d.UpdatedAt,
		Headers: d.Headers, State: d.WorkflowState, Branches: d.Branches, LastBranch: d.LastBranch, Waits: d.Waits, SubFrames: d.SubWorkflowFrames,
		Parent: d.Parent, Schedule: d.Schedule,
		Buffer: d.ContinuationBuffer, Senders: d.Senders, Ahead: d.Ahead, Error: d.Error, ResumeAs: d.ResumeAs,
		Compensations: d.Compensations, LastStep: d.LastStep, Undo: d.Undo, Lifecycle: d.Lifecycle,
		Incarnation: d.Incarnation, Epoch: d.Epoch, Effects: d.Effects, Moved: d.Moved,
	}, nil
}

// identify gives an instance that began before there were incarnations one that
// every node reads alike.
func (d *document) identify() {
	if d.Incarnation == "" {
		sum := sha256.Sum256([]byte(d.InstanceID + "|" + d.StartedAt.UTC().Format(time.RFC3339Nano)))
		d.Incarnation = base64.RawURLEncoding.EncodeToString(sum[:12])
	}
	d.Epoch = max(d.Epoch, 1)
}

// schemaVersion reads the version of a document. In ours it stands first, so
// that the document need not be read twice.
func schemaVersion(raw []byte) (int, error) {
	if bytes.HasPrefix(raw, []byte(present)) {
		return SchemaVersion, nil
	}
	var head struct {
		EngineSchemaVersion int `json:"engineSchemaVersion"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return 0, problem.Wrap(err, problem.Internal, "snapshot.corrupt", "snapshot is not JSON")
	}
	return head.EngineSchemaVersion, nil
}

// Resume returns the summary of where s goes on, or nil when it will not.
func (s *Snapshot) Resume() *ResumePoint {
	w, waits := s.Primary()
	b := s.Branch(w.Branch)
	if b == nil || len(b.Frames) == 0 {
		return nil
	}
	r := &ResumePoint{EntryPointKind: "Continue", BranchPath: make([]string, 0, len(b.Frames))}
	if waits {
		r.EntryPointKind = string(w.Kind)
	}
	for at := b; at != nil; at = s.parent(at) {
		for i := len(at.Frames) - 1; i >= 0; i-- {
			r.BranchPath = append(r.BranchPath, at.Frames[i].Pointer)
		}
	}
	slices.Reverse(r.BranchPath)
	top := b.Frames[len(b.Frames)-1]
	r.NextStepIndex = top.Next
	r.TaskName = top.Pointer[lastSlash(top.Pointer)+1:]
	return r
}

func (s *Snapshot) parent(b *Branch) *Branch {
	if b.ID == 0 {
		return nil
	}
	return s.Branch(b.Parent)
}

func lastSlash(s string) int { return bytes.LastIndexByte([]byte(s), '/') }

// upcasts[v] turns a document of schema version v into one of v+1.
var upcasts = map[int]func(map[string]json.RawMessage) error{
	0: fromDraft,
}

// fromDraft reads the form that preceded the first release: it said state for
// workflowState and signals for continuationBuffer.
func fromDraft(d map[string]json.RawMessage) error {
	for from, to := range map[string]string{"state": "workflowState", "signals": "continuationBuffer"} {
		if v, ok := d[from]; ok {
			d[to] = v
			delete(d, from)
		}
	}
	return nil
}

// upcast applies the chain from version v to SchemaVersion.
func upcast(raw []byte, v int) ([]byte, error) {
	if v == SchemaVersion {
		return raw, nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, problem.Wrap(err, problem.Internal, "snapshot.corrupt", "snapshot is not a JSON object")
	}
	for ; v < SchemaVersion; v++ {
		step, ok := upcasts[v]
		if !ok {
			return nil, problem.New(problem.Internal, "snapshot.corrupt", "snapshot has the unknown schema version %d", v)
		}
		if err := step(fields); err != nil {
			return nil, problem.Wrap(err, problem.Internal, "snapshot.corrupt", "upcast from schema version %d", v)
		}
		fields["engineSchemaVersion"] = json.RawMessage(itoa(v + 1))
	}
	return json.Marshal(fields)
}

func itoa(n int) string {
	b, _ := json.Marshal(n)
	return string(b)
}
