package aqueducttest_test

import (
	"testing"

	"github.com/aqueduct-engine/aqueduct/aqueducttest"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// TestACompensationHasItsAuthorsKey, where he gives one; else one of its own.
func TestACompensationHasItsAuthorsKey(t *testing.T) {
	t.Parallel()
	w := aqueducttest.Text(t, `
document: {dsl: '1.0.3', namespace: t, name: keys, version: '1.0.0'}
do:
  - a: {call: book, with: {n: 1}, metadata: {compensate: {call: undoA, with: {idempotencyKey: '${ "back-\(.id)" }'}}}}
  - b: {call: book, with: {n: 2}, metadata: {compensate: {call: undoB}}}
  - c: {call: refuse}
`)
	w.OnCall("book").Return(map[string]int{"id": 7})
	w.OnCall("refuse").Fail("urn:no", 409, "no")
	w.OnCall("undo*").Return(nil)
	w.Start(nil)
	if s := w.Snapshot(); s.Status != snapshot.Compensated {
		t.Fatalf("%s: %+v", s.Status, s.Error)
	}
	if c := w.Calls("undoA"); len(c) != 1 || c[0].Key != "back-7" || string(c[0].Input) != "{}" {
		t.Errorf("%+v", c)
	}
	if c := w.Calls("undoB"); len(c) != 1 || c[0].Key == "" || c[0].Key == w.Calls("book")[1].Key {
		t.Errorf("%+v", c)
	}
}
