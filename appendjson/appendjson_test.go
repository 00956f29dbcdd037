package appendjson

import (
	"encoding/json"
	"testing"
	"time"
)

// What is written by hand is what encoding/json writes.
func TestAnObjectIsAsEncodingJSONWritesIt(t *testing.T) {
	t.Parallel()
	texts := []string{"", "plain", "a \"quoted\" \\ text", "Größe\n\u2028<&>\x00", "\xff"}
	o := New(16)
	o.Opt("none", "")
	o.OptNum("zero", 0)
	o.OptTime("never", time.Time{})
	o.OptMap("empty", nil)
	if end := o.End(); end != nil {
		t.Errorf("nothing is %s", end)
	}
	o = New(16)
	o.Str("", texts[3])
	o.Num("n", -7)
	o.Time("at", time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC))
	o.OptRaw("raw", json.RawMessage(`[1]`))
	o.OptRaws("raws", []json.RawMessage{nil, json.RawMessage(`{}`)})
	o.OptTexts("texts", texts)
	o.OptMap("map", map[string]string{"b\n": "1", "a": "\""})
	o.Objects("objects", 2, func(i int) { o.Num("i", int64(i)) })
	got := o.End()
	var value any
	if err := json.Unmarshal(got, &value); err != nil {
		t.Fatalf("%v: %s", err, got)
	}
	want := `{"":"Größe\n\u2028<&>\u0000","n":-7,"at":"2026-01-02T03:04:05.000000006Z","raw":[1],"raws":[null,{}],` +
		`"texts":["","plain","a \"quoted\" \\ text","Größe\n\u2028<&>\u0000","\ufffd"],"map":{"a":"\"","b\n":"1"},"objects":[{"i":0},{"i":1}]}`
	if string(got) != want {
		t.Errorf("%s\nnot %s", got, want)
	}
}
