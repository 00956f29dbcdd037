package projections

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// What is written without reflection is what the tags of the struct say, for every field.
func TestMetadataIsThatOfItsTags(t *testing.T) {
	t.Parallel()
	texts := []string{"", "plain", "<&>\"\\\n\u2028 Ω", "\xff"}
	numbers := []int64{0, 7, -1, 1 << 60}
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
				default:
					t.Fatalf("a field of kind %s is not written", f.Kind())
				}
			}
			check(one)
			check(whole)
		}
	}
}
