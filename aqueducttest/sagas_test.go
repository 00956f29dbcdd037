package aqueducttest_test

import (
	"errors"
	"testing"

	"github.com/aqueduct-engine/aqueduct/activity"
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

// TestWhatAnEarlierAttemptLeftOpenStaysOpen, as on a node: the refusal of the next says nothing
// of it, and what it may have done is compensated.
func TestWhatAnEarlierAttemptLeftOpenStaysOpen(t *testing.T) {
	t.Parallel()
	for first, compensated := range map[int]int{500: 1, 429: 0} {
		w := aqueducttest.Text(t, `
document: {dsl: '1.0.3', namespace: t, name: open, version: '1.0.0'}
do:
  - a: {call: http, with: {method: post, endpoint: 'https://x.example/a'}, metadata: {compensate: {call: undo, with: {n: 1}}}}
`)
		w.OnCall("POST https://x.example/a").Fail("communication", first, "no").Fail("communication", 409, "no")
		w.OnCall("undo").Return(nil)
		w.Start(nil)
		w.NextTimer()
		if n := len(w.Calls("undo")); n != compensated || len(w.Calls("")) != 2+compensated {
			t.Errorf("%d, then 409: compensated %d times after %d calls", first, n, len(w.Calls("")))
		}
	}
}

// TestWhatAConsumerHasFailedIsNotDone, as on a node: a consumer knows what became of what it
// got, so that there is nothing to compensate.
func TestWhatAConsumerHasFailedIsNotDone(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]func(*aqueducttest.Stub){
		"a status":  func(s *aqueducttest.Stub) { s.Fail("communication", 502, "no") },
		"another":   func(s *aqueducttest.Stub) { s.Fail("communication", 409, "no") },
		"a timeout": func(s *aqueducttest.Stub) { s.Fail("timeout", 408, "no") },
		"a function": func(s *aqueducttest.Stub) {
			s.Do(func(aqueducttest.Call) (any, error) { return nil, activity.Unknown(errors.New("no")) })
		},
	} {
		w := aqueducttest.Text(t, `
document: {dsl: '1.0.3', namespace: t, name: failed, version: '1.0.0'}
do:
  - a:
      call: acknowledged
      with: {call: http, with: {method: put, endpoint: 'https://x.example/a'}, within: PT1H}
      metadata: {compensate: {call: undo}}
`)
		fails(w.OnCall("PUT https://x.example/a"))
		w.OnCall("undo").Return(nil)
		w.Start(nil)
		if s := w.Snapshot(); len(w.Calls("undo")) != 0 || len(w.Calls("")) != 1 {
			t.Errorf("%s: %s after %+v", name, s.Status, w.Calls(""))
		}
	}
}
