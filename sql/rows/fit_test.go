package rows

import (
	"errors"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/problem"
)

type leaf struct {
	Name  string `db:"NAME" width:"3"`
	Bytes string `width:"3B"`
	Free  string
}

var errHeavy = errors.New("too heavy")

type heavy struct{ Weight int }

func (h *heavy) Check() error {
	if h.Weight > 1 {
		return errHeavy
	}
	return nil
}

type tree struct {
	leaf  leaf // nobody else's
	Leaf  leaf
	One   *leaf
	Many  []leaf
	Heavy []heavy
	Trees []tree // of its own kind: who writes them looks at each
}

// TestFitFindsATextAtAnyDepth: by the name of its column, in its own unit.
func TestFitFindsATextAtAnyDepth(t *testing.T) {
	t.Parallel()
	long := leaf{Name: "four"}
	for name, c := range map[string]struct {
		v    tree
		says string
	}{
		"fits":           {tree{Leaf: leaf{Name: "äöü", Bytes: "abc", Free: strings.Repeat("x", 100)}, One: &leaf{}, Many: []leaf{{}}}, ""},
		"a struct":       {tree{Leaf: long}, "NAME has 4 characters; its column holds 3"},
		"a pointer":      {tree{One: &long}, "NAME has 4 characters; its column holds 3"},
		"a list":         {tree{Many: []leaf{{}, long}}, "NAME has 4 characters; its column holds 3"},
		"bytes":          {tree{Leaf: leaf{Bytes: "aé€"}}, "Bytes has 6 bytes; its column holds 3"},
		"hidden":         {tree{leaf: long}, ""},
		"its own kind":   {tree{Trees: []tree{{Leaf: long}}}, ""},
		"by a method":    {tree{Heavy: []heavy{{1}, {2}}}, "too heavy"},
		"by it, fitting": {tree{Heavy: []heavy{{1}}}, ""},
	} {
		err := Fit(&c.v)
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
		if c.says != "" && problem.CodeOf(err) != "store.value" && !errors.Is(err, errHeavy) {
			t.Errorf("%s: code %s", name, problem.CodeOf(err))
		}
	}
}

// BenchmarkFit is what each commit pays.
func BenchmarkFit(b *testing.B) {
	v := tree{Leaf: leaf{Name: "abc"}, Many: make([]leaf, 4), Heavy: make([]heavy, 2)}
	for b.Loop() {
		if err := Fit(&v); err != nil {
			b.Fatal(err)
		}
	}
}
