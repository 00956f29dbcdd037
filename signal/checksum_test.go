package signal

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// TestDamageIsKnown flips each bit of an envelope that a node has written: what
// is read is refused, or it is what was written.
func TestDamageIsKnown(t *testing.T) {
	t.Parallel()
	e := Envelope{SignalID: "s", InstanceID: "i", RuntimeProvider: Provider, Type: ExternalSignal, OccurredAt: time.Unix(1, 0).UTC(),
		Payload: json.RawMessage(`{"type":"paid","data":{"amount":100}}`), Unknown: map[string]json.RawMessage{"traceparent": json.RawMessage(`"t"`)}}
	whole, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	back, err := Decode(whole)
	if err != nil || len(back.Unknown) != 1 || string(back.Unknown["traceparent"]) != `"t"` {
		t.Fatalf("%+v, %v", back, err)
	}
	if again, err := back.Encode(); err != nil || !bytes.Equal(again, whole) {
		t.Errorf("encoded again: %s, %v", again, err)
	}
	told := 0
	for i := range len(whole) * 8 {
		broken := bytes.Clone(whole)
		broken[i/8] ^= 1 << (i % 8)
		got, err := Decode(broken)
		switch {
		case problem.CodeOf(err) == "signal.corrupt":
			told++
		case err != nil:
		case i/8 < len(whole)-sealBytes || string(got.Payload) != string(back.Payload):
			t.Fatalf("bit %d of byte %d: read as %s", i%8, i/8, broken)
		}
	}
	if told < (len(whole)-sealBytes)*8 {
		t.Errorf("%d of %d bits were told as damage", told, len(whole)*8)
	}
}

// TestForeignEnvelopesHaveNoChecksum: an application's is accepted without one,
// and one of a node's when somebody has formatted it anew.
func TestForeignEnvelopesHaveNoChecksum(t *testing.T) {
	t.Parallel()
	const foreign = `{"signalId":"s","workflowInstanceId":"i","runtimeProvider":"aqueduct","signalType":"ExternalSignal","expectedVersion":0,"occurredAtUtc":"2026-01-01T00:00:00Z","payload":{}}`
	e, err := Decode([]byte(foreign))
	if err != nil {
		t.Fatal(err)
	}
	for _, theirs := range []string{`7`, `{"crc":[1]}`, `"0123456789"`} { // the key is the nodes', whatever stands there
		got, err := Decode([]byte(`{"checksum":` + theirs + `,` + foreign[1:]))
		if err != nil || !reflect.DeepEqual(got, e) {
			t.Errorf("%s: %+v, %v", theirs, got, err)
		}
	}
	sealed, err := e.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Decode(sealed); err != nil || !reflect.DeepEqual(got, e) {
		t.Errorf("%+v, want %+v, %v", got, e, err)
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, sealed, "", "  "); err != nil {
		t.Fatal(err)
	}
	if got, err := Decode(pretty.Bytes()); err != nil || len(got.Unknown) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}
