package api

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// counted has one instance.
type counted struct {
	backend.InstanceReader
	projections.StreamReader
}

func (counted) Instance(_ context.Context, id string) (projections.Instance, error) {
	return projections.Instance{ID: id}, nil
}

func (counted) Attributes(context.Context, string) ([]projections.Attribute, error) { return nil, nil }
func (counted) Pending(context.Context, string, int) ([]projections.Entry, error)   { return nil, nil }
func (counted) Received(context.Context, string, string) (projections.Entry, error) {
	return projections.Entry{}, nil
}
func (counted) Commands(context.Context, backend.CommandQuery) (backend.Page[projections.Entry], error) {
	return backend.Page[projections.Entry]{}, nil
}

// What a sender counts arrives with its number on each of the three ways, to
// the largest, and one that only takes its number says nothing.
func TestSequencesArriveAsTheyAreCounted(t *testing.T) {
	t.Parallel()
	b := &node{snap: waiting}
	h := handler(t, b)
	const of = `"sender":"crm","sequence":9223372036854775807`
	call(h, "POST", "/v1/instances/i/signals", `{"type":"paid","data":1,`+of+`}`)
	if s := b.signal; s.Sender != "crm" || s.Sequence != math.MaxInt64 || !strings.Contains(string(s.Payload), `"type":"paid"`) {
		t.Errorf("signal %+v", s)
	}
	call(h, "POST", "/v1/instances/i/signals", `{`+of+`}`)
	if s := b.signal; s.Sequence != math.MaxInt64 || string(s.Payload) != "{}" {
		t.Errorf("empty signal %+v, %s", s, s.Payload)
	}
	call(h, "POST", "/v1/instances", `{"definition":"a/b","signal":{"type":"paid",`+of+`}}`)
	if s := b.start.Signal; s.Sender != "crm" || s.Sequence != math.MaxInt64 {
		t.Errorf("start %+v", s)
	}
	b.start.Signal = nil
	call(h, "POST", "/v1/lifecycles/shop/loan/L-1/events", `{"event":"submit",`+of+`}`)
	if s := b.start.Signal; s == nil || s.Sender != "crm" || s.Sequence != math.MaxInt64 {
		t.Errorf("trigger %+v", s)
	}
}

// A number that is none is refused where it stands.
func TestSequencesThatAreNone(t *testing.T) {
	t.Parallel()
	h := handler(t, &node{})
	for body, where := range map[string]string{
		`{"type":"paid","sender":"crm","sequence":1.5}`:                            "/sequence",
		`{"type":"paid","sender":"crm","sequence":"1"}`:                            "/sequence",
		`{"type":"paid","sender":"crm","sequence":9223372036854775808}`:            "sequence",
		`{"type":"paid","sender":7,"sequence":1}`:                                  "/sender",
		`{"sender":"crm","sequence":1,"data":7}`:                                   "/data",
		`{"sender":"crm"}`:                                                         "/type",
		`{"type":"paid","sender":"` + strings.Repeat("x", 129) + `","sequence":1}`: "/sender",
	} {
		w := call(h, "POST", "/v1/instances/i/signals", body)
		if text := w.Body.String(); !strings.Contains(text, where) || problemOf(t, w).Code != "request.invalid" {
			t.Errorf("%s: %d %s", body, w.Code, text)
		}
	}
}

// An instance tells which number of which sender it waits for.
func TestAnInstanceTellsItsGaps(t *testing.T) {
	t.Parallel()
	b := &node{snap: waiting}
	b.snap.Senders = []snapshot.Sender{{Name: "erp", Last: 7}, {Name: "crm"}}
	b.InstanceReader, b.StreamReader = counted{}, counted{}
	b.snap.Ahead = []snapshot.Buffered{{Sender: "crm", Sequence: 3}, {Sender: "crm", Sequence: 2}}
	w := call(handler(t, b), "GET", "/v1/instances/i", "")
	if !strings.Contains(w.Body.String(), `"gaps":[{"sender":"crm","sequence":1,"waiting":2}]`) {
		t.Error(w.Body)
	}
}
