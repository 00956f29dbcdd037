package signal

import (
	"reflect"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// TestEveryTextOfAStartIsBounded: a text that is added to a start is checked, too.
func TestEveryTextOfAStartIsBounded(t *testing.T) {
	t.Parallel()
	of := reflect.TypeFor[Start]()
	for i := range of.NumField() {
		if of.Field(i).Type.Kind() != reflect.String {
			continue
		}
		for n, fits := range map[int]bool{MaxKeyBytes: true, MaxKeyBytes + 1: false} {
			s := Start{Definition: "a/b"}
			reflect.ValueOf(&s).Elem().Field(i).SetString(strings.Repeat("k", n))
			if err := s.Validate(); (err == nil) != fits || err != nil && problem.CodeOf(err) != "signal.invalid-start" {
				t.Errorf("%s of %d bytes: %v", of.Field(i).Name, n, err)
			}
		}
	}
}
