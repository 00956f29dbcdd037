package aqueducttest_test

import "testing"

// A step of the application is stubbed as any other call: by its kind and name.
func TestStepsAreStubbed(t *testing.T) {
	t.Parallel()
	w := example(t, "stock-reservation")
	w.OnCall("sql/take-stock").Return(map[string]any{"rows": []any{}, "affected": 1})
	w.OnCall("sql/note-reservation").Fail("runtime", 500, "Constraint violated")
	w.OnCall("sql/put-stock-back").Return(map[string]any{"rows": []any{}, "affected": 1})
	w.Start(map[string]any{"order": "o-1", "item": "pen", "qty": 3})
	w.Completed(`{"order": "o-1", "reserved": false, "why": "runtime"}`) // the kit titles an error by its kind
	if len(w.Calls("sql/put-stock-back")) != 1 {
		t.Error("what was taken is not put back")
	}
}
