package aqueducttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// Status is the instance's life phase.
func (w *Workflow) Status() snapshot.Status { return w.snap.Status }

// Snapshot is what a node would remember of the instance.
func (w *Workflow) Snapshot() snapshot.Snapshot { return w.snap.Clone() }

// Completed fails the test unless the instance is completed with an output
// that is equal as JSON.
func (w *Workflow) Completed(want any) {
	w.t.Helper()
	w.driver.started()
	if w.snap.Status != snapshot.Completed {
		w.t.Fatalf("aqueducttest: the instance is not completed, it is %s", w.driver.where())
	}
	if got, want := w.snap.State.Output, w.driver.json(want); !same(got, want) {
		w.t.Errorf("aqueducttest: output\n got %s\nwant %s", compact(got), compact(want))
	}
}

// Output decodes the output of a completed instance into v.
func (w *Workflow) Output(v any) {
	w.t.Helper()
	if w.snap.Status != snapshot.Completed {
		w.t.Fatalf("aqueducttest: the instance is not completed, it is %s", w.driver.where())
	}
	if err := json.Unmarshal(w.snap.State.Output, v); err != nil {
		w.t.Fatalf("aqueducttest: output %s: %v", w.snap.State.Output, err)
	}
}

// Faulted fails the test unless the instance is faulted, or has ended compensated, with
// an error of a kind: a standard one such as "communication", or any other type as a URI.
// It returns the error.
func (w *Workflow) Faulted(kind string) snapshot.Error {
	w.t.Helper()
	w.driver.started()
	if w.snap.Status != snapshot.Faulted && w.snap.Status != snapshot.Compensated || w.snap.Error == nil {
		w.t.Fatalf("aqueducttest: the instance is not faulted, it is %s", w.driver.where())
		return snapshot.Error{}
	}
	if e := w.snap.Error; e.Type != kind && !engine.SameType(kind, e.Type) && e.Type != engine.ErrorBase+kind {
		w.t.Errorf("aqueducttest: error %s, not %s: %s: %s, at %s", e.Type, kind, e.Title, e.Detail, e.Instance)
	}
	return *w.snap.Error
}

// Waits fails the test unless the instance waits at exactly these tasks, in
// any order. Deadlines beside another wait do not count.
func (w *Workflow) Waits(tasks ...string) {
	w.t.Helper()
	w.driver.started()
	var got []string
	for _, wait := range w.snap.Waits {
		if !mere(wait) {
			got = append(got, taskName(wait.Pointer))
		}
	}
	slices.Sort(got)
	want := slices.Sorted(slices.Values(tasks))
	if !slices.Equal(got, want) {
		w.t.Errorf("aqueducttest: waits at %v, not %v", got, want)
	}
}

// Context decodes $context into v.
func (w *Workflow) Context(v any) {
	w.t.Helper()
	raw := w.snap.State.Context
	if raw == nil {
		raw = json.RawMessage("{}")
	}
	if err := json.Unmarshal(raw, v); err != nil {
		w.t.Fatalf("aqueducttest: context %s: %v", raw, err)
	}
}

// where says in a few words how the instance stands.
func (w driver) where() string {
	text := string(w.snap.Status)
	if e := w.snap.Error; e != nil && w.snap.Status == snapshot.Faulted {
		text += fmt.Sprintf(" with %s (%s: %s) at %s", e.Type, e.Title, e.Detail, e.Instance)
	}
	var waits []string
	for _, wait := range w.snap.Waits {
		waits = append(waits, fmt.Sprintf("%s at %s", wait.Kind, taskName(wait.Pointer)))
	}
	if len(waits) > 0 {
		text += " (" + strings.Join(waits, ", ") + ")"
	}
	return text
}

func taskName(pointer string) string {
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(pointer[strings.LastIndexByte(pointer, '/')+1:])
}

func same(a, b json.RawMessage) bool {
	var x, y any
	return decode(a, &x) == nil && decode(b, &y) == nil && reflect.DeepEqual(x, y)
}

func decode(raw json.RawMessage, v *any) error { return json.Unmarshal(raw, v) }

func compact(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}

// Timeline is what happened, one message of the stream a line: when, counted
// from the start, in or out, what, where, and its data. It is the same at every
// run, for golden files.
func (w *Workflow) Timeline() string {
	var b strings.Builder
	for _, e := range w.entries {
		arrow, data := "<-", e.Data
		if e.Dir == engine.Out {
			arrow = "->"
		}
		what := e.Type
		if e.Command != nil {
			what, data = what+" "+e.Command.Target, e.Command.Input
		}
		if e.Meta.Disposition != "" {
			what += " (" + string(e.Meta.Disposition) + ")"
		}
		fmt.Fprintf(&b, "%-8s %s %s", "+"+e.At.Sub(w.began).String(), arrow, what)
		if e.Meta.Pointer != "" {
			b.WriteString(" at " + e.Meta.Pointer)
		}
		if e.Meta.Actor != "" {
			b.WriteString(" by " + e.Meta.Actor)
		}
		if len(data) > 0 && string(data) != "null" {
			b.WriteString(" " + compact(data))
		}
		b.WriteByte('\n')
	}
	return b.String()
}
