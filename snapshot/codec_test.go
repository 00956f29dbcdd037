package snapshot

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
)

var rewrite = flag.Bool("rewrite", false, "write the golden file of the present schema version")

// full is a snapshot with every field set.
func full() Snapshot {
	at := time.Date(2026, 3, 1, 8, 30, 0, 123456000, time.UTC)
	return Snapshot{
		InstanceID: "i-1",
		Definition: Definition{Name: "examples/loan", Version: "1.0.0", Digest: "abc"},
		Business:   BusinessReference{Key: "order 7 <&> ü", Parts: map[string]string{"b": "2", "a": "1"}},
		Status:     Waiting, Version: 3, Position: 9, StartedAt: at, UpdatedAt: at.Add(time.Second),
		Headers: map[string]string{"traceparent": "00-1-2-01"},
		State:   State{Input: json.RawMessage(`{"n":1.10}`), Context: json.RawMessage(`{"c":[1,2]}`)},
		Branches: []*Branch{{
			Frames: []Frame{
				{Pointer: "/do", Next: 1},
				{Pointer: "/do/1/loop", Next: 2, Items: []json.RawMessage{json.RawMessage(`1`), json.RawMessage(`"x"`)}, Vars: map[string]json.RawMessage{"i": json.RawMessage(`2`)}, Deadline: "t-2", StartedAt: at},
				{Pointer: "/do/1/loop/do/0/ask", Input: json.RawMessage(`null`), Raw: json.RawMessage(`{}`)},
			},
			Data: json.RawMessage(`{"n":2}`),
		}},
		Waits: []Wait{
			{Kind: WaitTask, Token: "t-1", Pointer: "/do/1/loop/do/0/ask", TaskID: "i-1.3.1"},
			{Kind: WaitTimeout, Token: "t-2", Pointer: "/do/1/loop", Until: at.Add(time.Hour)},
		},
		Buffer: []Buffered{{SignalID: "s-1", Type: "ExternalSignal", OccurredAt: at, Payload: json.RawMessage(`{"type":"paid"}`)}},
		Error:  &Error{Type: "x", Status: 500, Title: "t", Detail: "d", Instance: "/do/0/x"},

		Incarnation: "INC", Epoch: 1,
	}
}

// tried is an instance that remembers effects.
func tried() Snapshot {
	s := full()
	s.Epoch, s.Moved = 2, map[string]string{"/do/1/b": "/do/0/b"}
	s.Effects = []Effect{
		{Pointer: "/do/1/loop/do/0/ask", Visit: "0.2.0", Arm: 1, Key: "INC/1/do/1/loop/do/0/ask/0.2.0/1/d", Command: 7, Unknown: true},
		{Pointer: "/do/1/loop", Visit: "0", Arm: -1, Compensated: 1},
	}
	s.Branches[0].Frames[0].Jumps, s.Branches[0].Frames[0].Epoch = 3, 1
	s.Waits[0].Effect, s.Waits[0].Visit = "INC/2/x/0/0/d", "0"
	s.Compensations = []Compensation{{Step: 1, Pointer: "/do/0/a", Target: "undo", Key: "INC/2/do/0/a/compensate/0/0/d", Visit: "0"}}
	return s
}

// family is an instance between its parent and its child.
func family() Snapshot {
	s := full()
	s.Waits[0] = Wait{Kind: WaitChild, Token: "t-3", Pointer: "/do/1/loop/do/0/ask"}
	s.SubFrames = []SubFrame{{InstanceID: "i-2", Token: "t-3", Pointer: "/do/1/loop/do/0/ask"}}
	s.Parent = &Parent{InstanceID: "i-0", Token: "t-0", Depth: 2}
	s.Schedule = &Schedule{Generation: 1, Ticks: 2, Missed: 3, Due: s.UpdatedAt}
	return s
}

func TestRoundTripKeepsEverything(t *testing.T) {
	for _, s := range []Snapshot{full(), family(), tried()} {
		roundTrip(t, s)
	}
}

func roundTrip(t *testing.T, want Snapshot) {
	t.Helper()
	raw, err := want.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	again, err := got.Encode()
	if err != nil || string(again) != string(raw) {
		t.Errorf("second encoding differs (%v):\n%s\n%s", err, again, raw)
	}
}

func TestPrimaryWaitComesFirstAfterARoundTrip(t *testing.T) {
	s := full()
	s.Waits[0], s.Waits[1] = s.Waits[1], s.Waits[0]
	raw, _ := s.Encode()
	got, err := Decode(raw)
	if err != nil || !reflect.DeepEqual(got.Waits, full().Waits) {
		t.Errorf("%v, %+v", err, got.Waits)
	}
}

func TestDocumentSaysWhatOperatorsRead(t *testing.T) {
	s := full()
	raw, _ := s.Encode()
	var d map[string]any
	if err := json.Unmarshal(raw, &d); err != nil {
		t.Fatal(err)
	}
	waiting := d["waiting"].(map[string]any)
	if waiting["kind"] != "Task" || waiting["token"] != "t-1" {
		t.Errorf("waiting is %v, not the task", waiting)
	}
	resume := d["resume"].(map[string]any)
	if resume["taskName"] != "ask" || resume["entryPointKind"] != "Task" || len(resume["branchPath"].([]any)) != 3 {
		t.Errorf("resume is %v", resume)
	}
	for _, name := range []string{"engineSchemaVersion", "workflowState", "businessReference", "status", "continuationBuffer"} {
		if d[name] == nil {
			t.Errorf("the document lacks %s", name)
		}
	}
}

// TestGoldenFilesStayReadable decodes a file of every schema version there has
// been; the file of the present one is what Encode writes.
func TestGoldenFilesStayReadable(t *testing.T) {
	present := filepath.Join("testdata", "v1.json")
	snap := full()
	raw, err := snap.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if *rewrite {
		if err := os.WriteFile(present, raw, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	files, _ := filepath.Glob("testdata/v*.json")
	if len(files) != SchemaVersion+1 {
		t.Fatalf("%d golden files for versions 0 to %d", len(files), SchemaVersion)
	}
	for _, f := range files {
		old, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(old)
		if err != nil {
			t.Errorf("%s: %v", f, err)
			continue
		}
		if want := full(); !reflect.DeepEqual(got, want) {
			t.Errorf("%s gives %+v\nwant %+v", f, got, want)
		}
		if f == present && string(old) != string(raw) {
			t.Errorf("%s is not what Encode writes now: a change of the form needs a new schema version and an upcast", f)
		}
	}
}

// TestOldDocumentGetsAnIncarnation reads an instance from before there were
// incarnations: every node gives it the same.
func TestOldDocumentGetsAnIncarnation(t *testing.T) {
	s := full()
	s.Incarnation, s.Epoch = "", 0
	raw, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(raw)
	again, err2 := Decode(raw)
	if err != nil || err2 != nil || len(got.Incarnation) != 16 || got.Incarnation != again.Incarnation || got.Epoch != 1 {
		t.Errorf("%v, %v: %q and %q, epoch %d", err, err2, got.Incarnation, again.Incarnation, got.Epoch)
	}
	other := full()
	other.Incarnation, other.StartedAt = "", s.StartedAt.Add(1)
	raw, _ = other.Encode()
	if another, _ := Decode(raw); another.Incarnation == got.Incarnation {
		t.Error("two instances of one id have one incarnation")
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, c := range []struct{ name, raw, code string }{
		{"a newer version", `{"engineSchemaVersion": 2, "instanceId": "i", "version": 1, "status": "running"}`, "snapshot.newer"},
		{"no JSON", `{`, "snapshot.corrupt"},
		{"nothing", ``, "snapshot.corrupt"},
		{"an array", `[]`, "snapshot.corrupt"},
		{"a negative version", `{"engineSchemaVersion": -1}`, "snapshot.corrupt"},
		{"no identity", `{"engineSchemaVersion": 1}`, "snapshot.corrupt"},
		{"a wrong type", `{"engineSchemaVersion": 1, "instanceId": 7}`, "snapshot.corrupt"},
	} {
		if _, err := Decode([]byte(c.raw)); problem.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want %s", c.name, err, c.code)
		}
	}
}

func TestEncodeRefusesTooLarge(t *testing.T) {
	s := full()
	s.State.Input = json.RawMessage(`"` + strings.Repeat("x", MaxBytes) + `"`)
	if _, err := s.Encode(); problem.CodeOf(err) != "limit.snapshot" {
		t.Errorf("got %v", err)
	}
}

func TestCloneSharesNothingThatChanges(t *testing.T) {
	s := forked()
	before, _ := s.Encode()
	c := s.Clone()
	c.Branches[0].Frames[0].Next = 99
	c.Branches[0].Frames[1].Vars["i"] = json.RawMessage(`0`)
	c.Branches[0].Frames = append(c.Branches[0].Frames[:1], Frame{Pointer: "/x"})
	c.Waits[0].Token = "other"
	c.Buffer[0].SignalID = "other"
	c.Senders[0].Last = 99
	c.Ahead[0].Sequence = 99
	c.Error.Status = 1
	if after, _ := s.Encode(); string(after) != string(before) {
		t.Errorf("a change of the clone shows in the original:\n%s\n%s", before, after)
	}
}

func FuzzDecode(f *testing.F) {
	snap := full()
	raw, _ := snap.Encode()
	f.Add(raw)
	f.Add([]byte(`{"engineSchemaVersion":1,"instanceId":"i","version":1,"status":"running"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := Decode(raw)
		if err != nil {
			return
		}
		out, err := s.Encode()
		if err != nil {
			return // invalid raw JSON inside cannot be: Decode has checked it
		}
		again, err := Decode(out)
		if err != nil {
			t.Fatalf("our own document is refused: %v\n%s", err, out)
		}
		twice, err := again.Encode()
		if err != nil || string(twice) != string(out) {
			t.Fatalf("encoding is not canonical: %v\n%s\n%s", err, out, twice)
		}
	})
}

// document is what Encode writes, by the tags of Snapshot: in another order.
type document struct {
	EngineSchemaVersion int `json:"engineSchemaVersion"`
	Snapshot
	Waiting *Wait        `json:"waiting,omitempty"`
	Resume  *ResumePoint `json:"resume,omitempty"`
}

// byReflection is what Encode must write, as encoding/json does, in the order of names.
func byReflection(t testing.TB, s Snapshot) string {
	t.Helper()
	raw, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	var d document
	if err := json.Unmarshal(raw, &d); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return inOrder(t, out)
}

// inOrder is a document with its members in the order of their names.
func inOrder(t testing.TB, raw []byte) string {
	t.Helper()
	var d any
	if err := json.Unmarshal(raw, &d); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// forked is a snapshot with branches.
func forked() Snapshot {
	s := full()
	s.LastBranch = 7
	s.Senders = []Sender{{Name: "crm", Last: 3}, {Name: "erp"}}
	s.Ahead = []Buffered{{SignalID: "s-2", Type: "ExternalSignal", OccurredAt: s.StartedAt, Payload: json.RawMessage(`{"type":"late"}`), Sender: "crm", Sequence: 5}}
	s.Compensations = []Compensation{{Step: 2, Pointer: "/do/0/pay", Target: "refund", Input: json.RawMessage(`{"n":1}`)}, {Step: 3, Pointer: "/do/1/ship", Target: "http"}}
	s.Lifecycle = 9
	s.LastStep, s.Compensating = 3, &Compensating{Error: Error{Type: "x", Status: 500}, Done: true}
	s.Branches[0].Frames[2] = Frame{Pointer: "/do/1/loop/do/0/ask", Results: []json.RawMessage{json.RawMessage("null"), json.RawMessage(`1`)}, Open: 1, Done: []int{0, 2}, Bound: map[string]string{"k": `"v"`}, Mark: 2, Attempt: 2, FailedAt: s.StartedAt}
	s.Branches = append(s.Branches, &Branch{ID: 5, Arm: 1, Frames: []Frame{{Pointer: "/x/fork/branches", Next: 1}, {Pointer: "/x/fork/branches/1/y"}}})
	s.Branches = append(s.Branches, &Branch{ID: 7, Parent: 5, Frames: []Frame{{Pointer: "/x/fork/branches/1/y/fork/branches"}}, Data: json.RawMessage(`2`)})
	s.Waits = []Wait{
		{Kind: WaitTimer, Token: "t-1", Branch: 7, Pointer: "/a", Until: s.StartedAt}, {Kind: WaitEvent, Token: "t-2", Branch: 5, Pointer: "/b"},
		{Kind: WaitEvent, Token: "t-3", Pointer: "/c", Arm: 1, Key: map[string]string{"k": `"v"`}, Bound: 1},
	}
	return s
}

// TestArrangedIsReadBackAlike holds a snapshot in memory to the one that
// another node reads.
func TestArrangedIsReadBackAlike(t *testing.T) {
	s := forked()
	s.Arrange()
	raw, err := s.Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(raw)
	if err != nil || !reflect.DeepEqual(got, s) {
		t.Errorf("%v\n got %+v\nwant %+v", err, got, s)
	}
	if w, _ := got.Primary(); w.Token != "t-2" {
		t.Errorf("%+v stands for the instance, not the first event", w)
	}
	if path := got.Resume().BranchPath; !reflect.DeepEqual(path, []string{"/do", "/do/1/loop", "/do/1/loop/do/0/ask", "/x/fork/branches", "/x/fork/branches/1/y"}) {
		t.Errorf("branch path %v", path)
	}
}

func TestEncoderAgreesWithTheDocument(t *testing.T) {
	for name, s := range map[string]Snapshot{
		"full":   full(),
		"fork":   forked(),
		"family": family(),
		"small":  {InstanceID: "i", Status: Running, Version: 1, Branches: []*Branch{{Frames: []Frame{{Pointer: "/do"}}}}},
		"empty":  {},
	} {
		raw, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if got, want := inOrder(t, raw), byReflection(t, s); got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
}

func BenchmarkEncodeByReflection(b *testing.B) {
	s := full()
	raw, _ := s.Encode()
	var d document
	if err := json.Unmarshal(raw, &d); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := json.Marshal(d); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	s := full()
	for b.Loop() {
		if _, err := s.Encode(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	snap := full()
	raw, _ := snap.Encode()
	for b.Loop() {
		if _, err := Decode(raw); err != nil {
			b.Fatal(err)
		}
	}
}
