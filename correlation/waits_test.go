package correlation

import (
	"reflect"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

func event(token, pointer string) snapshot.Wait {
	return snapshot.Wait{Kind: snapshot.WaitEvent, Token: token, Pointer: pointer, Event: "paid", Key: map[string]string{"o": "7"}}
}

func TestAStartWritesWhatItWaitsFor(t *testing.T) {
	t.Parallel()
	at := time.Unix(7, 0)
	next := &snapshot.Snapshot{
		InstanceID: "i", Definition: snapshot.Definition{Name: "n/d", Version: "1.0.0"}, UpdatedAt: at,
		Waits: []snapshot.Wait{event("tok", "/do/0/paid"), {Kind: snapshot.WaitTimer, Token: "t"}},
	}
	var rows projections.Rows
	Waits(&rows, nil, next)
	want := []projections.Wait{{
		Token: "tok", InstanceID: "i", EventType: "paid", Spec: "n/d@1.0.0#/do/0/paid", KeyHash: KeyHash(`{"o":"7"}`), CreatedAt: at,
	}}
	if !reflect.DeepEqual(rows.Waits, want) || rows.WaitsGone != nil {
		t.Errorf("waits %+v, want %+v; gone %v", rows.Waits, want, rows.WaitsGone)
	}
}

func TestWaitsAreTheDifference(t *testing.T) {
	t.Parallel()
	prev := &snapshot.Snapshot{Waits: []snapshot.Wait{event("a", "/l"), event("b", "/l"), {Kind: snapshot.WaitTimer, Token: "t"}}}
	var rows projections.Rows
	Waits(&rows, prev, &snapshot.Snapshot{Waits: []snapshot.Wait{event("b", "/l"), event("c", "/l")}})
	if len(rows.Waits) != 1 || rows.Waits[0].Token != "c" || !reflect.DeepEqual(rows.WaitsGone, []string{"a"}) {
		t.Errorf("came %+v, went %v", rows.Waits, rows.WaitsGone)
	}
}

// Under another version of the definition the same wait is found by another spec.
func TestMigrationMovesWaits(t *testing.T) {
	t.Parallel()
	prev := &snapshot.Snapshot{Definition: snapshot.Definition{Name: "d", Version: "1"}, Waits: []snapshot.Wait{event("t", "/do/0/a")}}
	next := &snapshot.Snapshot{Definition: snapshot.Definition{Name: "d", Version: "2"}, Waits: []snapshot.Wait{event("t", "/do/1/a")}}
	var rows projections.Rows
	Waits(&rows, prev, next)
	if len(rows.Waits) != 1 || rows.Waits[0].Token != "t" || rows.Waits[0].Spec != "d@2#/do/1/a" || !reflect.DeepEqual(rows.WaitsGone, []string{"t"}) {
		t.Errorf("%+v, gone %v", rows.Waits, rows.WaitsGone)
	}
}
