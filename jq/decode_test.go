package jq

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

var documents = []string{
	``, ` `, `null`, ` true `, `false`, `nul`, `truer`, `0`, `-0`, `-`, `01`, `1.`, `.5`, `1.50`, `1e`, `1e+`, `-1.25E-007`, `1e400`,
	`123456789012345678901234567890`, `""`, `"a`, `"a\"b\\"`, `"\u00e9\ud83d\ude00"`, `"\ud800"`, `"\x"`, `"é"`, "\"\xff\"", "\"\xff\\n\"", "\"a\nb\"", "\"\x7f\"",
	`[]`, `[ ]`, `[1, 2 ,[3]]`, `[1,]`, `[,1]`, `[1`, `[1 2]`, `{}`, `{ }`, `{"a":1,"b":{"c":[null]}}`, `{"a":1,"a":2}`, `{"\u0061":1,"a":2}`, `{"a"}`,
	`{"a":}`, `{"a":1,}`, `{a:1}`, `{"a" : 1}`, `{"a":1}}`, `1 2`, `[1] [`, "\ufeff1", "\v", "[1]\x00",
	strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000), strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001),
	strings.Repeat(`{"a":`, 50) + "1" + strings.Repeat("}", 50),
}

// What is read fast is what encoding/json reads, and refused alike.
func decodesAlike(t *testing.T, raw []byte) {
	t.Helper()
	got, err := Decode(raw)
	want, wantErr := decodeStrict(raw)
	if len(strings.Trim(string(raw), " \t\r\n")) == 0 {
		want, wantErr = nil, nil
	}
	if (err == nil) != (wantErr == nil) {
		t.Fatalf("Decode(%.80q) = %v, encoding/json says %v", raw, err, wantErr)
	}
	if err != nil {
		if err.Error() != wantErr.Error() {
			t.Fatalf("Decode(%.80q) says %q, encoding/json %q", raw, err, wantErr)
		}
		return
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("Decode(%.80q) = %#v, encoding/json has %#v", raw, got, want)
	}
}

func TestDecodesAsEncodingJSON(t *testing.T) {
	t.Parallel()
	for _, d := range documents {
		decodesAlike(t, []byte(d))
	}
}

// Only what is no JSON is read a second time.
func TestNothingIsReadTwice(t *testing.T) {
	t.Parallel()
	for _, doc := range documents {
		d := decoder{text: doc}
		d.space()
		if !json.Valid([]byte(doc)) {
			continue
		}
		if _, ok := d.value(0); !ok {
			t.Errorf("%.80q is JSON, and was left to encoding/json", doc)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, d := range documents {
		f.Add([]byte(d))
	}
	f.Fuzz(func(t *testing.T, raw []byte) { decodesAlike(t, raw) })
}

func BenchmarkDecode(b *testing.B) {
	raw := []byte(`[` + strings.Repeat(`{"sku":"sku-07919","quantity":3,"note":"a \"quoted\" one"},`, 1_500) + `null]`)
	for name, decode := range map[string]func(json.RawMessage) (any, error){"Decode": Decode, "encodingJSON": decodeStrict} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := decode(raw); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
