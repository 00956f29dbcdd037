package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/appendjson"
	"github.com/aqueduct-engine/aqueduct/problem"
)

// The stored form (A4) is a Snapshot with its version first, and before the branches the primary wait, which is not
// among the others, and where the instance goes on. The latter repeats what the branches say, for operators who read
// the row; Decode does not read it. The first epoch is left out.
var (
	form   = formOf()
	wait   = appendjson.Of[Wait]()
	waits  = appendjson.Of[[]Wait]()
	resume = appendjson.Of[ResumePoint]()
)

func formOf() *appendjson.Form[Snapshot] {
	f := appendjson.Of[Snapshot]()
	f.Before("branches", func(b []byte, s *Snapshot) []byte {
		if i := s.primary(); i >= 0 {
			b = wait.Append(appendjson.Key(b, "waiting"), &s.Waits[i])
		}
		if r := s.Resume(); r != nil {
			b = resume.Append(appendjson.Key(b, "resume"), r)
		}
		return b
	})
	f.Instead("waits", func(b []byte, s *Snapshot) []byte {
		if others := s.others(); len(others) > 0 {
			b = waits.Append(appendjson.Key(b, "waits"), &others)
		}
		return b
	})
	f.Instead("epoch", func(b []byte, s *Snapshot) []byte {
		if s.Epoch > 1 {
			b = strconv.AppendInt(appendjson.Key(b, "epoch"), s.Epoch, 10)
		}
		return b
	})
	return f
}

// present begins every document of the present schema version.
var present = `{"engineSchemaVersion":` + strconv.Itoa(SchemaVersion) + `,`

// others are the waits behind the primary one.
func (s *Snapshot) others() []Wait {
	switch primary := s.primary(); primary {
	case -1:
		return s.Waits
	case 0:
		return s.Waits[1:]
	default:
		return slices.Concat(s.Waits[:primary], s.Waits[primary+1:])
	}
}

// ResumePoint is the summary of where the instance goes on.
type ResumePoint struct {
	EntryPointKind string   `json:"entryPointKind"`
	TaskName       string   `json:"taskName"`
	BranchPath     []string `json:"branchPath"`
	NextStepIndex  int      `json:"nextStepIndex"`
}

// Encode returns the canonical bytes of s. The problem limit.snapshot says that it is larger than MaxBytes,
// limit.stream that its stream is too long. Raw values in s must be valid JSON.
func (s *Snapshot) Encode() ([]byte, error) {
	return s.EncodeTo(make([]byte, 0, 1024+len(s.State.Input)))
}

// EncodeTo is Encode into memory that the caller has for it, from its beginning.
func (s *Snapshot) EncodeTo(b []byte) ([]byte, error) {
	if last := s.lastPosition(); s.Position > last {
		return nil, problem.New(problem.TooLarge, "limit.stream", "stream position %d is over %d", s.Position, last)
	}
	b = append(form.Members(append(b[:0], present[:len(present)-1]...), s), '}')
	if len(b) > MaxBytes {
		return nil, problem.New(problem.TooLarge, "limit.snapshot", "snapshot of %d bytes exceeds %d", len(b), MaxBytes)
	}
	return b, nil
}

// Decode reads a stored snapshot of any schema version up to SchemaVersion. Problems: snapshot.corrupt, and
// snapshot.newer for a version this program does not know.
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
	var d struct {
		Snapshot
		Waiting *Wait `json:"waiting"`
	}
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
	return d.Snapshot, nil
}

// identify gives an instance that began before there were incarnations one that every node reads alike.
func (s *Snapshot) identify() {
	if s.Incarnation == "" {
		sum := sha256.Sum256([]byte(s.InstanceID + "|" + s.StartedAt.UTC().Format(time.RFC3339Nano)))
		s.Incarnation = base64.RawURLEncoding.EncodeToString(sum[:12])
	}
	s.Epoch = max(s.Epoch, 1)
}

// schemaVersion reads the version of a document. In ours it stands first, so that it need not be read twice.
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
	r.TaskName = top.Pointer[strings.LastIndexByte(top.Pointer, '/')+1:]
	return r
}

func (s *Snapshot) parent(b *Branch) *Branch {
	if b.ID == 0 {
		return nil
	}
	return s.Branch(b.Parent)
}

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
		fields["engineSchemaVersion"] = json.RawMessage(strconv.Itoa(v + 1))
	}
	return json.Marshal(fields)
}
