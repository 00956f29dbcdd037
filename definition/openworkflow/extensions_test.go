package openworkflow

import (
	"strings"
	"testing"
)

const extensionDoc = `
document: {dsl: '1.0.3', namespace: t, name: ext, version: '1.0.0'}
use:
  extensions:
    - a: {extend: switch, when: .x, before: [one: {set: {x: 1}}], after: [two: {set: {x: 1}}]}
do:
  - s: {switch: [c: {when: .x, then: e}]}
  - e: {set: {x: 1}}
`

func TestExtensionFindings(t *testing.T) {
	t.Parallel()
	for change, want := range map[string]string{
		"|":                                     `unsupported /do/0/s/switch/0/c/then: a task with a flow directive of its own`,
		", after|, afer":                        `did you mean after?`,
		"extend: switch|extend: swich":          `did you mean switch?`,
		"when: .x, before|when: '.x |', before": `definition.expression /use/extensions/0/a/when`,
		"one: {set|one: {sett":                  `/use/extensions/0/a/before/0/one: task does not say`,
		"- a: {|- ":                             `definition.`,
		", after: [two: {set: {x: 1}}]|":        "ok",
		"then: e}|then: continue}":              "ok",
	} {
		old, replacement, _ := strings.Cut(change, "|")
		if strings.Contains(change, ".x |") {
			old, replacement = "when: .x, before", "when: '.x |', before"
		}
		if got := findings(strings.Replace(extensionDoc, old, replacement, 1)); !strings.Contains(got, want) {
			t.Errorf("%s:\n got %s\nwant %s", change, got, want)
		}
	}
}
