package correlation

import (
	"testing"

	"github.com/aqueduct-engine/aqueduct/snapshot"
)

func TestSpecIsReadBack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		wait snapshot.Wait
		spec string
	}{
		{snapshot.Wait{Pointer: "/do/0/x#y"}, "a/b@1.0.0#/do/0/x#y"},
		{snapshot.Wait{Pointer: "/do/0/x", Arm: 2}, "a/b@1.0.0#2/do/0/x"},
		{snapshot.Wait{Pointer: "/do/0/x", Arm: 2, Bound: 5}, "a/b@1.0.0#2.5/do/0/x"},
		{snapshot.Wait{Pointer: "/do/0/x.2", Bound: 1}, "a/b@1.0.0#0.1/do/0/x.2"},
	} {
		spec := spec(snapshot.Definition{Name: "a/b", Version: "1.0.0"}, c.wait)
		got, ok := ParseSpec(spec)
		want := Place{Name: "a/b", Version: "1.0.0", Pointer: c.wait.Pointer, Arm: c.wait.Arm, Bound: c.wait.Bound}
		if spec != c.spec || !ok || got != want {
			t.Errorf("%s (want %s) gives %+v %t", spec, c.spec, got, ok)
		}
	}
	for _, bad := range []string{"", "a/b#/x", "a/b@1", "a/b@1#", "a/b@1#x/do", "a/b@1#1.x/do", "a/b@1#-1/do"} {
		if p, ok := ParseSpec(bad); ok {
			t.Errorf("%q is a spec: %+v", bad, p)
		}
	}
}
