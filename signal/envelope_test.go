package signal

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
)

func sample() Envelope {
	return Envelope{
		SignalID: "s-1", InstanceID: "i-1", RuntimeProvider: Provider, Type: TaskCompleted, ExpectedVersion: 4,
		WaitingToken: "tok", OccurredAt: time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC),
		DueAt:   time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC),
		Headers: map[string]string{HeaderTraceparent: "00-a-b-01"},
		Payload: json.RawMessage(`{"output":{"text":"<grün> & 漢","n":1.10}}`),
		Unknown: map[string]json.RawMessage{"later": json.RawMessage(`{"x":1}`), "alpha": json.RawMessage(`true`)},
	}
}

func TestRoundTripKeepsUnknownFields(t *testing.T) {
	raw, err := sample().Encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	if want := sample(); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if unsealed := string(raw[:len(raw)-sealBytes]); !strings.HasSuffix(unsealed, `,"alpha":true,"later":{"x":1}`) {
		t.Errorf("unknown fields are not last and in order: %s", raw)
	}
	if !strings.Contains(string(raw), "<grün> & 漢") {
		t.Errorf("text is escaped without need: %s", raw)
	}
}

func TestDecodeRefuses(t *testing.T) {
	ok := `"signalId":"s","workflowInstanceId":"i","runtimeProvider":"aqueduct","signalType":"TimerDue","expectedVersion":0,"occurredAtUtc":"2026-01-01T00:00:00Z"`
	with := func(more string) string { return "{" + ok + "," + more + "}" }
	for _, c := range []struct{ name, raw, code string }{
		{"nothing", "", "signal.not-json"},
		{"no object", "[]", "signal.not-json"},
		{"half", "{", "signal.not-json"},
		{"two documents", "{" + ok + ",\"payload\":{}}{}", "signal.not-json"},
		{"a tail", "{" + ok + ",\"payload\":{}} x", "signal.not-json"},
		{"bad UTF-8", with("\"payload\":{\"a\":\"\xff\"}"), "signal.not-utf8"},
		{"a key twice", with(`"payload":{"a":1,"a":2}`), "signal.duplicate-key"},
		{"a field twice", with(`"payload":{},"signalId":"t"`), "signal.duplicate-key"},
		{"deep nesting", with(`"payload":` + strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100)), "signal.too-deep"},
		{"too many bytes", with(`"payload":{"a":"` + strings.Repeat("x", MaxBytes) + `"}`), "signal.too-large"},
		{"payload of another kind", with(`"payload":[1]`), "signal.invalid"},
		{"type unknown", strings.Replace(with(`"payload":{}`), "TimerDue", "Timer", 1), "signal.unknown-type"},
		{"another engine's", strings.Replace(with(`"payload":{}`), "aqueduct", "other", 1), "signal.foreign"},
		{"no id", strings.Replace(with(`"payload":{}`), `"signalId":"s"`, `"signalId":""`, 1), "signal.invalid"},
		{"id with a line break", strings.Replace(with(`"payload":{}`), `"signalId":"s"`, `"signalId":"s\n"`, 1), "signal.invalid"},
		{"an instance that no address can name", strings.Replace(with(`"payload":{}`), `InstanceId":"i"`, `InstanceId":".."`, 1), "signal.invalid"},
		{"id too long", strings.Replace(with(`"payload":{}`), `"signalId":"s"`, `"signalId":"`+strings.Repeat("s", 200)+`"`, 1), "signal.invalid"},
		{"negative version", strings.Replace(with(`"payload":{}`), `Version":0`, `Version":-1`, 1), "signal.invalid"},
		{"no time", strings.Replace(with(`"payload":{}`), `2026-01-01T00:00:00Z`, `0001-01-01T00:00:00Z`, 1), "signal.invalid"},
		{"ancient time", strings.Replace(with(`"payload":{}`), `2026-01-01T00:00:00Z`, `1869-01-01T00:00:00Z`, 1), "signal.invalid"},
		{"a number as id", strings.Replace(with(`"payload":{}`), `"signalId":"s"`, `"signalId":7`, 1), "signal.not-json"},
		{"large header", with(`"payload":{},"headers":{"a":"` + strings.Repeat("x", MaxHeaderSize+1) + `"}`), "signal.too-large"},
		{"large key of a header", with(`"payload":{},"headers":{"` + strings.Repeat("x", MaxHeaderSize+1) + `":"a"}`), "signal.too-large"},
	} {
		if _, err := Decode([]byte(c.raw)); problem.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want %s", c.name, err, c.code)
		}
	}
	if _, err := Decode([]byte(with(`"payload":{}`))); err != nil {
		t.Errorf("the sound one: %v", err)
	}
}

func TestLimitIsExact(t *testing.T) {
	e := sample()
	e.Payload = json.RawMessage(`{"a":""}`)
	raw, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	fill := func(n int) Envelope {
		e.Payload = json.RawMessage(fmt.Sprintf(`{"a":"%s"}`, strings.Repeat("x", n)))
		return e
	}
	room := MaxBytes - len(raw)
	if raw, err = fill(room).Encode(); err != nil || len(raw) != MaxBytes {
		t.Errorf("%d bytes: %v", len(raw), err)
	}
	if _, err := Decode(raw); err != nil {
		t.Errorf("decode of %d bytes: %v", len(raw), err)
	}
	if _, err := fill(room + 1).Encode(); problem.CodeOf(err) != "signal.too-large" {
		t.Errorf("one byte more: %v", err)
	}
}

func TestStart(t *testing.T) {
	for _, c := range []struct{ name, payload, code string }{
		{"sound", `{"definition":"a/b","input":[1]}`, ""},
		{"no definition", `{}`, "signal.invalid-start"},
		{"no object", `7`, "signal.invalid-start"},
		{"long key", `{"definition":"a/b","businessKey":"` + strings.Repeat("k", 300) + `"}`, "signal.invalid-start"},
		{"long part", `{"definition":"a/b","keyParts":{"x":"` + strings.Repeat("k", 300) + `"}}`, "signal.invalid-start"},
	} {
		_, err := DecodeStart(json.RawMessage(c.payload))
		if (c.code == "" && err != nil) || (c.code != "" && problem.CodeOf(err) != c.code) {
			t.Errorf("%s: %v, want %q", c.name, err, c.code)
		}
	}
}

func TestCommandAnnouncement(t *testing.T) {
	raw, err := ForCommand("i", 7, 2, time.Unix(1, 0), time.Time{}).Encode()
	if err != nil {
		t.Fatal(err)
	}
	e, err := Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := CommandPosition(e.Payload); p != 7 || err != nil {
		t.Errorf("position %d, %v", p, err)
	}
	for _, bad := range []string{`{}`, `{"command":0}`, `{"command":"x"}`, ``} {
		if _, err := CommandPosition(json.RawMessage(bad)); err == nil {
			t.Errorf("%q names a command", bad)
		}
	}
}

func FuzzDecode(f *testing.F) {
	raw, _ := sample().Encode()
	f.Add(raw)
	f.Add([]byte(`{"signalId":"s","workflowInstanceId":"i","runtimeProvider":"aqueduct","signalType":"TimerDue","expectedVersion":0,"occurredAtUtc":"2026-01-01T00:00:00Z","payload":{},"x":[{}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		e, err := Decode(raw)
		if err != nil {
			if problem.CodeOf(err) == "internal" {
				t.Fatalf("no problem: %v", err)
			}
			return
		}
		out, err := e.Encode()
		if err != nil {
			if problem.CodeOf(err) == "signal.too-large" {
				return // invisible characters may be written longer
			}
			t.Fatalf("decoded but not encoded: %v\n%s", err, raw)
		}
		again, err := Decode(out)
		if err != nil {
			t.Fatalf("our own envelope is refused: %v\n%s", err, out)
		}
		twice, err := again.Encode()
		if err != nil || string(twice) != string(out) {
			t.Fatalf("encoding is not stable: %v\n%s\n%s", err, out, twice)
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	raw, _ := sample().Encode()
	for b.Loop() {
		if _, err := Decode(raw); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	e := sample()
	for b.Loop() {
		if _, err := e.Encode(); err != nil {
			b.Fatal(err)
		}
	}
}

// A first signal becomes the same envelope wherever it goes (B7).
func TestFirstSignalIsAnExternalSignal(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.UTC)
	headers := map[string]string{HeaderActor: "app", HeaderCorrelation: "c"}
	f := FirstSignal{ID: "r-1", Type: "submit", Data: json.RawMessage(`{"n":1.10}`), Actor: "ann"}
	got, err := f.Envelope("i-1", Envelope{OccurredAt: at, Headers: headers, Principal: json.RawMessage(`{"kind":"node"}`)})
	if err != nil {
		t.Fatal(err)
	}
	want := Envelope{
		SignalID: "r-1", InstanceID: "i-1", RuntimeProvider: Provider, Type: ExternalSignal, OccurredAt: at,
		Headers:   map[string]string{HeaderActor: "ann", HeaderCorrelation: "c"},
		Payload:   json.RawMessage(`{"id":"r-1","type":"submit","source":"start","data":{"n":1.10},"time":"2026-01-02T03:04:05.678901Z"}`),
		Principal: json.RawMessage(`{"kind":"node"}`),
	}
	if !reflect.DeepEqual(got, want) || headers[HeaderActor] != "app" {
		t.Errorf("got  %+v\nwant %+v, headers %v", got, want, headers)
	}
	f.Actor, f.Data = "", nil
	if got, err := f.Envelope("i-1", Envelope{OccurredAt: at, Headers: headers, Principal: json.RawMessage(`{"kind":"node"}`)}); err != nil || got.Headers[HeaderActor] != "app" || strings.Contains(string(got.Payload), "data") {
		t.Errorf("%+v, %v", got, err)
	}
	f.Actor = "ann"
	if got, err := f.Envelope("i-1", Envelope{OccurredAt: at}); err != nil || got.Headers[HeaderActor] != "ann" {
		t.Errorf("%+v, %v", got, err)
	}
	f.Data = json.RawMessage(`{`)
	if _, err := f.Envelope("i-1", Envelope{OccurredAt: at}); problem.CodeOf(err) != "signal.not-json" {
		t.Errorf("bad data: %v", err)
	}
}

func TestStartRefusesAWrongSignal(t *testing.T) {
	ok := FirstSignal{ID: "r", Type: "t"}
	for _, c := range []struct {
		name string
		edit func(*Start)
		code string
	}{
		{"right", func(*Start) {}, ""},
		{"no id", func(s *Start) { s.Signal.ID = "" }, "signal.invalid"},
		{"an id with a space", func(s *Start) { s.Signal.ID = "a b" }, "signal.invalid"},
		{"a long id", func(s *Start) { s.Signal.ID = strings.Repeat("x", MaxIDBytes+1) }, "signal.invalid"},
		{"no type", func(s *Start) { s.Signal.Type = "" }, "signal.invalid-start"},
		{"a long type", func(s *Start) { s.Signal.Type = strings.Repeat("x", MaxKeyBytes+1) }, "signal.invalid-start"},
		{"a long actor", func(s *Start) { s.Signal.Actor = strings.Repeat("x", MaxKeyBytes+1) }, "signal.invalid-start"},
		{"a schedule", func(s *Start) { s.Schedule = &Schedule{} }, "signal.invalid-start"},
	} {
		first := ok
		s := Start{Definition: "d", Signal: &first}
		c.edit(&s)
		if err := s.Validate(); (err == nil) != (c.code == "") || err != nil && problem.CodeOf(err) != c.code {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
