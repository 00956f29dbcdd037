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

// TestDiffOfLifecycles: states are tasks, and keep their place by their name.
func TestDiffOfLifecycles(t *testing.T) {
	t.Parallel()
	old := `{"lifecycle": "1.0", "version": "1", "events": {"go": {}}, "transitions": [{"from": "A", "event": "go", "to": "B"}],
	  "states": {"A": {"category": "initial", "onExit": [{"h": {"call": "f"}}]}, "B": {"timeout": "PT1H"}, "C": {}}}`
	now := `{"lifecycle": "1.0", "version": "2", "events": {"go": {}}, "transitions": [{"from": "A", "event": "go", "to": "D"}],
	  "states": {"A": {"category": "initial", "onExit": [{"h": {"call": "g"}}]}, "B": {"timeout": "PT2H"}, "D": {"onEnter": []}}}`
	want := []definition.Change{
		{Kind: definition.Changed, Fields: []string{"transitions"}},
		{Kind: definition.Changed, Old: "/states/A/onExit/0/h", New: "/states/A/onExit/0/h", Task: "h", Fields: []string{"call"}},
		{Kind: definition.Changed, Old: "/states/B", New: "/states/B", Task: "B", Fields: []string{"timeout"}},
		{Kind: definition.Removed, Old: "/states/C", Task: "C"},
		{Kind: definition.Added, New: "/states/D", Task: "D"},
	}
	if got := diff(t, old, now); !reflect.DeepEqual(got, want) {
		t.Errorf("\n got %+v\nwant %+v", got, want)
	}
}
