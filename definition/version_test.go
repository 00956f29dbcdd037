package definition

import (
	"slices"
	"testing"
)

func TestCompareVersions(t *testing.T) {
	t.Parallel()
	want := []string{
		"", "latest", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0-rc.1", "1.0.0",
		"1.0.0+1", "1.2.0", "1.10.0", "10.0.0", "99999999999999999999.0.0",
	}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, compareVersions)
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}
