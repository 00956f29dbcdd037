package definition_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"testing"

	"github.com/aqueduct-engine/aqueduct/definition"
)

func diff(t *testing.T, old, now string) []definition.Change {
	t.Helper()
	read := func(text string) (v any) {
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	return definition.Diff(read(old), read(now))
}

const oldDoc = `{"document": {"version": "1"}, "timeout": {"after": "P1D"}, "do": [
  {"a": {"set": {"x": 1}}},
  {"b": {"for": {"in": ".l"}, "do": [{"c": {"call": "f"}}, {"d": {"wait": "PT1S"}}]}},
  {"e": {"try": [{"g": {"call": "h"}}], "catch": {"do": [{"i": {"set": {"do": [{"z": {"set": {}}}]}}}]}}},
  {"j": {"do": [{"k": {"set": {"y": 1}}}]}}]}`

const newDoc = `{"document": {"version": "2"}, "timeout": {"after": "P2D"}, "do": [
  {"n": {"set": {"new": true}}},
  {"a": {"set": {"x": 1}}},
  {"b": {"for": {"in": ".l"}, "do": [{"m": {"call": "f"}}, {"c": {"call": "f"}}]}},
  {"e": {"try": [{"g": {"call": "humanTask"}}], "catch": {"retry": {}, "do": [{"i": {"set": {"do": [{"z": {"set": {}}}]}}}]}}},
  {"p": {"do": [{"d": {"wait": "PT1S"}}]}}]}`

func TestDiffSaysWhatBecameOfEachTask(t *testing.T) {
	t.Parallel()
	want := []definition.Change{
		{Kind: definition.Changed, Fields: []string{"timeout"}},
		{Kind: definition.Moved, Old: "/do/0/a", New: "/do/1/a", Task: "a"},
		{Kind: definition.Moved, Old: "/do/1/b", New: "/do/2/b", Task: "b"},
		{Kind: definition.Moved, Old: "/do/1/b/do/0/c", New: "/do/2/b/do/1/c", Task: "c"},
		{Kind: definition.Moved, Old: "/do/1/b/do/1/d", New: "/do/4/p/do/0/d", Task: "d"},
		{Kind: definition.Changed, Old: "/do/2/e", New: "/do/3/e", Task: "e", Fields: []string{"catch"}},
		{Kind: definition.Changed, Old: "/do/2/e/try/0/g", New: "/do/3/e/try/0/g", Task: "g", Fields: []string{"call", "(kind)"}},
		{Kind: definition.Removed, Old: "/do/3/j", Task: "j"},
		{Kind: definition.Added, New: "/do/0/n", Task: "n"},
		{Kind: definition.Added, New: "/do/2/b/do/0/m", Task: "m"},
		{Kind: definition.Added, New: "/do/4/p", Task: "p"},
	}
	got := diff(t, oldDoc, newDoc)
	if !reflect.DeepEqual(got, want) {
		for _, c := range got {
			t.Logf("%+v", c)
		}
		t.Error("not the changes that were made")
	}
	moves := map[string]string{
		"/do/0/a": "/do/1/a", "/do/1/b": "/do/2/b", "/do/1/b/do/0/c": "/do/2/b/do/1/c", "/do/1/b/do/1/d": "/do/4/p/do/0/d", "/do/2/e": "/do/3/e",
	}
	if got := definition.Moves(got); !maps.Equal(got, moves) {
		t.Errorf("%v", got)
	}
}

func TestDiffOfTheSameIsNothing(t *testing.T) {
	t.Parallel()
	for _, doc := range []string{oldDoc, newDoc, `{}`, `null`, `{"do": [1, {}, {"a": 1}]}`} {
		if got := diff(t, doc, doc); len(got) != 0 {
			t.Errorf("%+v", got)
		}
	}
}
