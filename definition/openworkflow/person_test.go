package openworkflow

import (
	"errors"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/problem"
)

const personDoc = `
document: {dsl: '1.0.3', namespace: t, name: person, version: '1.0.0'}
do:
  - ask: {call: humanTask, with: WITH}
`

// TestPersonFindings: what stands in the document is wrong at its own place,
// with the name that was meant.
func TestPersonFindings(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 257)
	many := "[" + strings.Repeat(strings.Repeat("g", 200)+", ", 15) + "g]"
	for with, want := range map[string]string{
		`{titel: Hi}`:                                   "unknown-field /do/0/ask/with/titel: did you mean title?",
		`{escalate: [a], due: {after: PT1H}}`:           "unknown-field /do/0/ask/with/escalate: did you mean escalateTo?",
		`{title: 7}`:                                    "type /do/0/ask/with/title: want a string",
		`{title: ''}`:                                   "type /do/0/ask/with/title: want a text of 1 to 1000",
		`{assignee: ` + long + `}`:                      "type /do/0/ask/with/assignee: want a text of 1 to 256",
		`{candidateUsers: ann}`:                         "type /do/0/ask/with/candidateUsers: want a list of strings",
		`{candidateGroups: [a, 1]}`:                     "type /do/0/ask/with/candidateGroups/1: want a string",
		`{candidateGroups: ` + many + `}`:               "type /do/0/ask/with/candidateGroups: the list is a list of",
		`{outcomes: ['']}`:                              "type /do/0/ask/with/outcomes/0: want a text of 1 to 256",
		`{priority: high}`:                              "type /do/0/ask/with/priority: want a whole number from 0 to 100",
		`{priority: -1}`:                                "type /do/0/ask/with/priority: want a whole number",
		`{priority: 101}`:                               "type /do/0/ask/with/priority: want a whole number",
		`{due: PT1H}`:                                   "type /do/0/ask/with/due: want an object",
		`{due: {}}`:                                     "missing-field /do/0/ask/with/due",
		`{due: {afer: PT1H}}`:                           "unknown-field /do/0/ask/with/due/afer: did you mean after?",
		`{due: {after: soon}}`:                          "/do/0/ask/with/due/after",
		`{due: {after: PT1H, calendar: x}}`:             "unsupported /do/0/ask/with/due/calendar",
		`{escalateTo: [leads]}`:                         "missing-field /do/0/ask/with/escalateTo: escalateTo needs due",
		`{assignee: bob, excludedUsers: [ann, bob]}`:    "type /do/0/ask/with/assignee",
		`{form: any}`:                                   "type /do/0/ask/with/form: want an object",
		`{form: {}}`:                                    "missing-field /do/0/ask/with/form: a form has either",
		`{form: {ref: a}}`:                              "missing-field /do/0/ask/with/form: the form needs a version",
		`{form: {ref: a, version: 0}}`:                  "type /do/0/ask/with/form/version",
		`{form: {schema: {}, version: 1}}`:              "type /do/0/ask/with/form/version",
		`{form: {shema: {}}}`:                           "unknown-field /do/0/ask/with/form/shema: did you mean schema?",
		`{form: {ref: a, version: 3}, priority: 0}`:     "ok",
		`{form: '${ .f }', due: '${ .d }', assignee: }`: "ok",
		`{due: {after: {hours: 2}}, escalateTo: '${ .leads }', candidateUsers: ['${ .a }']}`: "ok",
	} {
		_, err := Parse("w.yaml", []byte(strings.Replace(personDoc, "WITH", with, 1)))
		got := []string{"ok"}
		var e *problem.Error
		if errors.As(err, &e) {
			got = nil
			for _, p := range e.Where {
				got = append(got, strings.TrimPrefix(p.Code, "definition.")+" "+p.Pointer+": "+p.Detail+" "+p.Hint,
					strings.TrimPrefix(p.Code, "definition.")+" "+p.Pointer+": "+p.Hint)
			}
		}
		if all := strings.Join(got, "\n"); !strings.Contains(all, want) {
			t.Errorf("%.80s\n got %s\nwant %s", with, all, want)
		}
	}
}
