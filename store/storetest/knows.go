package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store"
)

// KnownSQL selects what Knowing knows, in SQL that both stores have, and known is that as JSON.
const KnownSQL = "select WORKFLOW_STATE_JSON, DATA_JSON, VARIABLES_JSON from WF_V_STATES where INSTANCE_ID = 'i'"

var known = [3]string{`{"context":{"x":1},"input":[1],"name":"Review"}`, `{"a":"é"}`, `[{"i":0,"line":[]},{"error":{"status":500}}]`}

// Knowing is the first turn of an instance that knows something.
func Knowing() store.Change {
	c := turn("i", 1)
	c.Snapshot.State = snapshot.State{Input: json.RawMessage(`[1]`), Context: json.RawMessage(`{"x":1}`), Name: "Review"}
	c.Snapshot.Branches = []*snapshot.Branch{
		{Data: json.RawMessage(`{"a":"é"}`), Frames: []snapshot.Frame{
			{Pointer: "/do"}, {Pointer: "/do/0/each", Deadline: "t0ps3cret", Vars: map[string]json.RawMessage{"i": []byte("0"), "line": []byte("[]")}},
		}},
		{ID: 1, Frames: []snapshot.Frame{{Pointer: "/do/1/try", Vars: map[string]json.RawMessage{"error": []byte(`{"status":500}`)}}}},
	}
	c.Encoded = encode(c.Snapshot)
	return c
}

// CheckKnown compares what a view has shown with what is known.
func CheckKnown(got [3]string) error {
	var wrong error
	for i := range got {
		var have, want any
		err := errors.Join(jsonv2.Unmarshal([]byte(got[i]), &have), jsonv2.Unmarshal([]byte(known[i]), &want))
		if err != nil || !reflect.DeepEqual(have, want) {
			wrong = errors.Join(wrong, fmt.Errorf("the view shows %q, want %s (%w)", got[i], known[i], err))
		}
	}
	return wrong
}
