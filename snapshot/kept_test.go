package snapshot_test

import (
	"slices"
	"testing"

	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// A kept signal is there until each listen that it is kept for has had it, and no longer
// than they may listen: to others it is open only as long as nobody has had it.
func TestKeptForThoseThatWereAtWork(t *testing.T) {
	const a, b, other = "/do/0/a", "/do/0/b", "/do/1"
	places := func(p ...string) []string { return p }

	k, ok := snapshot.Buffered{}.Left(nil, places(a, b, a))
	if !ok || k.Taken || !slices.Equal(k.For, places(a, b)) {
		t.Fatalf("taken by nobody: %+v, %t", k, ok)
	}
	k, ok = k.Left(places(other), nil)
	if !ok || !k.Taken || !slices.Equal(k.For, places(a, b)) {
		t.Fatalf("taken by another: %+v, %t", k, ok)
	}
	s := &snapshot.Snapshot{Branches: []*snapshot.Branch{{ID: 1, Frames: []snapshot.Frame{{Pointer: "/do"}, {Pointer: a}, {Pointer: "/do/0/a/foreach/do/0"}}}}}
	if s.Over(k) {
		t.Error("the listen of branch 1 has not had it")
	}
	k, ok = k.Left(places(a), nil)
	if !ok || !slices.Equal(k.For, places(b)) || !s.Over(k) {
		t.Errorf("%+v, %t: its last listen is over", k, ok)
	}
	if k, ok = k.Left(places(b), nil); ok {
		t.Errorf("everybody has had it: %+v", k)
	}
	if _, ok := (snapshot.Buffered{}).Left(places(other), nil); ok {
		t.Error("kept for whoever comes, and taken")
	}
	if s.Over(snapshot.Buffered{}) {
		t.Error("it is kept for whoever comes")
	}
}
