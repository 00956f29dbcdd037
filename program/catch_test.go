package program_test

import (
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// TestAConditionSeesTheErrorThatItIsAbout, not one that a try further inside has
// taken before.
func TestAConditionSeesTheErrorThatItIsAbout(t *testing.T) {
	t.Parallel()
	def := parsed(t, "1.0.0", `do:
  - outer:
      try:
        - inner:
            try:
              - first: {raise: {error: {type: https://example.org/first, status: 400}}}
            catch:
              do:
                - second: {raise: {error: {type: https://example.org/second, status: 500}}}
      catch:
        when: '${ $error.status == 500 }'
        do:
          - seen: {set: {type: '${ $error.type }'}}
`)
	s := begin(t, def, `{}`)
	if s.Status != snapshot.Completed || !strings.Contains(string(s.State.Output), "example.org/second") {
		t.Errorf("%s with %s, %+v", s.Status, s.State.Output, s.Error)
	}
}
