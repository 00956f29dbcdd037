package api

import (
	"slices"
	"testing"
)

// A field of a row that no document shows is one of those that are not to be shown: tokens,
// what only nodes ask for, and what a document says in its own way.
func TestEveryFieldOfARowIsShownOrKept(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ unused, kept []string }{
		"instance": {instances.unused, []string{"StartKey", "Ahead", "ErrorType", "ErrorDetail"}},
		"task":     {tasks.unused, []string{"Token", "Version", "EndedBy"}},
		"start":    {starts.unused, []string{"InstanceID", "Signal"}},
	} {
		slices.Sort(c.unused)
		slices.Sort(c.kept)
		if !slices.Equal(c.unused, c.kept) {
			t.Errorf("%s: %v go nowhere, which are %v", name, c.unused, c.kept)
		}
	}
}
