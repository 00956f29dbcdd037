package client

import (
	"encoding/json"
	"slices"
	"testing"
)

// What a document has no more and has now stands with its place, and nothing else does.
func TestDifferences(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		old, now string
		want     []string
	}{
		{`{"a": 1, "b": [1, 2]}`, `{"b":[1,2],"a":1}`, nil},
		{`{"a": 1}`, `{"a": 2}`, []string{"- /a 1", "+ /a 2"}},
		{`{"a": {"b/c": [1, {"d~": "<x>"}]}}`, `{"a": {"b/c": [1, {"d~": "é"}], "n": null}}`, []string{`- /a/b~1c/1/d~0 "<x>"`, `+ /a/b~1c/1/d~0 "é"`, `+ /a/n null`}},
		{`[1, 2]`, `[1]`, []string{"-  [1,2]", "+  [1]"}},
		{`{"checksum": 1}`, `{"checksum": 2}`, []string{"- /checksum 1", "+ /checksum 2"}},
		{`12345678901234567890`, `12345678901234567891`, []string{"-  12345678901234567890", "+  12345678901234567891"}},
		{`{}`, `[]`, []string{"-  {}", "+  []"}},
	} {
		if got := Differences(json.RawMessage(c.old), json.RawMessage(c.now)); !slices.Equal(got, c.want) {
			t.Errorf("%s to %s: %q", c.old, c.now, got)
		}
	}
}

// What the engine writes of an envelope by itself nobody has changed.
func TestDifferencesOfEnvelopes(t *testing.T) {
	t.Parallel()
	old, now := `{"checksum": "1", "payload": {"checksum": 1}}`, `{"checksum": "2", "expectedVersion": 0, "payload": {"checksum": 2}}`
	if got, want := EnvelopeDifferences(json.RawMessage(old), json.RawMessage(now)), []string{"- /payload/checksum 1", "+ /payload/checksum 2"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if got, want := EnvelopeDifferences(json.RawMessage(`{"expectedVersion": 3}`), json.RawMessage(`{}`)), []string{"- /expectedVersion 3"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
