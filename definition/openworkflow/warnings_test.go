package openworkflow

import "testing"

func TestWarningsOfBranchesAndListens(t *testing.T) {
	t.Parallel()
	const export = "export: {as: '${ {n: 1} }'}"
	for _, c := range []struct{ what, source, warned string }{
		{"exports in two branches", "do:\n  - f: {fork: {branches: [{a: {set: {n: 1}, " + export + "}}, {b: {do: [{c: {set: {n: 1}, " + export + "}}]}}]}}", warnExports},
		{"an export in one branch", "do:\n  - f: {fork: {branches: [{a: {set: {n: 1}, " + export + "}}, {b: {set: {n: 1}}}]}}", ""},
		{"exports of competitors", "do:\n  - f: {fork: {compete: true, branches: [{a: {set: {n: 1}, " + export + "}}, {b: {set: {n: 1}, " + export + "}}]}}", ""},
		{"no correlation", "do:\n  - l: {listen: {to: {any: [{with: {type: a}}]}}}", warnUncorrelated},
		{"a correlation", "do:\n  - l: {listen: {to: {all: [{with: {type: a}}, {with: {type: b}, correlate: {k: {from: .id}}}]}}}", ""},
	} {
		p, err := Parse("w.yaml", []byte(head(c.source)))
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		got := ""
		if len(p.Warnings) > 0 {
			got = p.Warnings[0].Code
		}
		if len(p.Warnings) > 1 || got != c.warned {
			t.Errorf("%s: warnings %+v, want %q", c.what, p.Warnings, c.warned)
		}
	}
}
