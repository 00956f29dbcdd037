package openworkflow

import (
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/program"
)

const acknowledgedDoc = `
document: {dsl: '1.0.3', namespace: t, name: acks, version: '1.0.0'}
use:
  functions:
    notify: {call: acknowledged, with: {call: http, with: {method: post, endpoint: 'https://a.example'}, await: false}}
    ask: {call: http, with: {method: get, endpoint: 'https://a.example/{id}'}}
do:
  - a: {call: acknowledged, with: {call: ship, with: {order: '${ .id }'}, within: PT30S}}
  - b: {call: notify}
  - c: {call: 'acknowledged:1.0.0@default', with: {call: ask, within: {hours: 1}, await: true}}
  - d: {call: forEach, with: {in: '[1]', call: notify}}
`

func TestAcknowledged(t *testing.T) {
	t.Parallel()
	p, err := Parse("w.yaml", []byte(acknowledgedDoc))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		kind     program.NodeKind
		target   string
		ack      string
		detached bool
	}{
		{program.KindCall, "ship", "PT30S", false},
		{program.KindCall, "http", "PT5M", true},
		{program.KindCall, "http", "PT1H", false},
		{program.KindEach, "http", "PT5M", true},
	} {
		n := p.Definition.(*program.Program).Root.List[i]
		ack := ""
		if n.Call.Ack != nil {
			ack = n.Call.Ack.String()
		}
		if n.Kind != want.kind || n.Call.Target != want.target || !strings.Contains(ack, want.ack) || n.Call.Detached != want.detached || n.Call.With == nil {
			t.Errorf("%s: %s %+v, acknowledged within %s", n.Pointer, n.Kind, n.Call, ack)
		}
	}
}

func TestAcknowledgedFindings(t *testing.T) {
	t.Parallel()
	for change, want := range map[string]string{
		"call: ship, with: {order: '${ .id }'}, within|within":                             `/do/0/a/with: field call is missing`,
		"within: PT30S|within: 30":                                                         `/do/0/a/with/within: want a duration, not a number`,
		"within: PT30S|within: soon":                                                       `/do/0/a/with/within: "soon" is not an ISO 8601 duration`,
		"within: PT30S|within: PT0S":                                                       `/do/0/a/with/within: an acknowledgement cannot come within no time (write PT5M)`,
		"within: PT30S|within: '${ .x | }'":                                                `/do/0/a/with/within: `,
		"within: PT30S|await: maybe":                                                       `/do/0/a/with/await: want a boolean, not a string`,
		"within: PT30S|wait: true":                                                         `/do/0/a/with/wait: `,
		"call: ship, with: {order|call: humanTask, with: {order":                           `acknowledged of "humanTask" is outside the supported profile`,
		"call: ship, with: {order|call: acknowledged, with: {call: ship, with: {}}, x: {y": `acknowledged of "acknowledged" is outside the supported profile`,
		"{call: ask, within|{call: ask, with: {id: 1}, within":                             `arguments of a named function in acknowledged are outside the supported profile`,
		"{call: ask, within|{call: notify, within":                                         `acknowledged of "notify" is outside the supported profile`,
		"- b: {call: notify}|- b: {call: x, metadata: {compensate: {call: notify}}}":       `a compensation that nobody waits for is outside the supported profile (leave await out)`,
		"- b: {call: notify}|- b: {call: Acknowledged}":                                    `function "Acknowledged" is not known (did you mean acknowledged?)`,
	} {
		old, replacement, _ := strings.Cut(change, "|")
		source := strings.Replace(acknowledgedDoc, old, replacement, 1)
		if got := findings(source); source == acknowledgedDoc || !strings.Contains(got, want) {
			t.Errorf("%s:\n got %s\nwant %s", change, got, want)
		}
	}
}
