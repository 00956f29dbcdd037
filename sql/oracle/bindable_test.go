package oracle

import (
	"encoding/json"
	"testing"

	"github.com/godror/godror"
)

// A whole number of more than 64 bits is bound as a number, with all of its digits.
func TestALargeNumberIsBoundWhole(t *testing.T) {
	t.Parallel()
	const n = "12345678901234567890123456789012345678"
	if v := bindable(json.Number(n)); v != godror.Number(n) {
		t.Errorf("bound as %#v", v)
	}
}
