package projections

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

var at = time.Date(2026, 5, 1, 9, 0, 0, 1000, time.UTC)

// What is written without reflection is what the tags of the struct say, for every field.
func TestMetadataIsThatOfItsTags(t *testing.T) {
	t.Parallel()
	texts := []string{"", "plain", "<&>\"\\\n\u2028 Ω", "\xff"}
	numbers := []int64{0, 7, -1, 1 << 60}
	bases := []*engine.Basis{nil, {}, {By: "skip", With: json.RawMessage(`{"n":1}`), Wait: -1, Expected: 3, Epoch: 2, Limits: []int{1, 0, 3}, Lifecycle: true, Crowded: true, Engine: "v1"}, {
		Due: at, Occurred: at, Clock: at, Origin: &snapshot.Snapshot{
			InstanceID: "i", Parent: &snapshot.Parent{InstanceID: "p", Token: "t"}, Schedule: &snapshot.Schedule{Due: at}, Headers: map[string]string{"a": "b"},
			State: snapshot.State{Input: json.RawMessage(`"digest"`)},
		},
	}}
	whole := engine.Meta{}
	check := func(m engine.Meta) {
		t.Helper()
		row, err := entry(&snapshot.Snapshot{}, &engine.Entry{Meta: m})
		if err != nil {
			t.Fatal(err)
		}
		got := row.Metadata
		want, _ := json.Marshal(m)
		if string(want) == "{}" {
			if got != nil {
				t.Errorf("%+v: %s", m, got)
			}
			return
		}
		var a, b any
		if json.Unmarshal(got, &a) != nil || json.Unmarshal(want, &b) != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("%+v: %s, want %s", m, got, want)
		}
	}
	for i := range reflect.TypeFor[engine.Meta]().NumField() {
		for k := range texts {
			one := engine.Meta{}
			for _, m := range []*engine.Meta{&one, &whole} {
				switch f := reflect.ValueOf(m).Elem().Field(i); f.Kind() {
				case reflect.String:
					f.SetString(texts[k])
				case reflect.Int64:
					f.SetInt(numbers[k])
				case reflect.Slice:
					f.Set(reflect.ValueOf(texts[:k]))
				case reflect.Pointer:
					f.Set(reflect.ValueOf(bases[k]))
				default:
					t.Fatalf("a field of kind %s is not written", f.Kind())
				}
			}
			check(one)
			check(whole)
		}
	}
}
