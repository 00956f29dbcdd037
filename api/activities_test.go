package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// What a request says of an activity arrives as it is meant: a member that is absent leaves
// what there is, and null takes it away.
func TestActivitiesAreChangedAsAsked(t *testing.T) {
	t.Parallel()
	b := &node{}
	h := handler(t, b)
	w := call(h, "POST", "/v1/instances/i%201/activities", `{"id":"x","name":"survey","status":"begun","data":{"n":1.50}}`, "X-Aqueduct-Actor", "ann")
	want := backend.Activity{InstanceID: "i 1", ID: "x", Name: "survey", Status: "begun", Data: []byte(`{"n":1.50}`), UpdatedBy: "ann"}
	if w.Code != http.StatusCreated || !reflect.DeepEqual(b.attached, want) {
		t.Errorf("%d %s: %+v", w.Code, w.Body, b.attached)
	}
	status := ""
	for body, want := range map[string]backend.ActivityChange{
		`{"version":3}`:             {Version: 3},
		`{"version":3,"status":""}`: {Version: 3, Status: &status},
		`{"version":3,"data":null}`: {Version: 3, Data: json.RawMessage("null")},
		`{"version":3,"data":[1]}`:  {Version: 3, Data: json.RawMessage("[1]")},
	} {
		want.InstanceID, want.ID, want.Actor = "i", "x/y", "ann"
		w := call(h, "POST", "/v1/instances/i/activities/x%2Fy/update", body, "X-Aqueduct-Actor", "ann")
		if w.Code != http.StatusOK || !reflect.DeepEqual(b.change, want) {
			t.Errorf("%s: %d %s: %+v", body, w.Code, w.Body, b.change)
		}
	}
	w = call(h, "POST", "/v1/instances/i/activities/x/freeze", `{"version":4}`)
	if want := (backend.ActivityChange{InstanceID: "i", ID: "x", Version: 4, Freeze: true}); w.Code != http.StatusOK || !reflect.DeepEqual(b.change, want) {
		t.Errorf("%d %s: %+v", w.Code, w.Body, b.change)
	}
	for _, c := range []struct{ path, body string }{
		{"", `{"name":"n"}`}, {"", `{"id":"x"}`}, {"", `{"id":"","name":"n"}`}, {"/x/update", `{}`}, {"/x/update", `{"version":0}`}, {"/x/freeze", `{}`}, {"/x/freeze", `{"version":1,"status":"x"}`},
	} {
		if w := call(h, "POST", "/v1/instances/i/activities"+c.path, c.body); w.Code != http.StatusUnprocessableEntity {
			t.Errorf("%s %s: %d %s", c.path, c.body, w.Code, w.Body)
		}
	}
	for code, status := range map[problem.Kind]int{problem.Conflict: 409, problem.TooLarge: 413, problem.NotFound: 404} {
		b.err = problem.New(code, "activity.some", "a reason")
		w := call(h, "POST", "/v1/instances/i/activities/x/freeze", `{"version":4}`)
		if w.Code != status || !json.Valid(w.Body.Bytes()) {
			t.Errorf("%v: %s", code, fmt.Sprint(w.Code, w.Body))
		}
	}
}

// A timeline is asked of a business key or of an instance, and says of what each moment is.
func TestTimelineIsOfOne(t *testing.T) {
	t.Parallel()
	b := &node{}
	h := handler(t, b)
	w := call(h, "GET", "/v1/timeline?businessKey=L%201&definition=shop/loan&kind=command&kind=task&after=x&limit=7", "")
	want := backend.MomentQuery{BusinessKey: "L 1", Definition: "shop/loan", Kinds: []string{"command", "task"}, After: "x", Limit: 7}
	if w.Code != http.StatusOK || !reflect.DeepEqual(b.moments, want) {
		t.Errorf("%d %s: %+v", w.Code, w.Body, b.moments)
	}
	for _, part := range []string{`"taskId":"t"`, `"activityId":"a"`} {
		if !strings.Contains(w.Body.String(), part) {
			t.Errorf("no %s in %s", part, w.Body)
		}
	}
	for _, query := range []string{"", "?businessKey=a&instance=b", "?businessKey=a&kind=other"} {
		if w := call(h, "GET", "/v1/timeline"+query, ""); w.Code != http.StatusBadRequest && w.Code != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
}
