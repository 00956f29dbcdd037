package runtime_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"
)

// stepsFault has steps in the turns of a start, a timer and a signal.
var stepsFault = doc("fault", `
  - begun: {call: sql, with: {statement: note, args: {id: '${ $workflow.id }', what: begun}}, output: {as: '${ {begun: .affected} }'}}
  - pause: {wait: PT0.01S}
  - rested: {call: sql, with: {statement: note, args: {id: '${ $workflow.id }', what: rested}}, output: {as: '${ $input + {rested: .affected} }'}}
  - paid: {listen: {to: {one: {with: {type: paid}}}}, output: {as: '${ $input }'}}
  - paying: {call: sql, with: {statement: note, args: {id: '${ $workflow.id }', what: paid}}, output: {as: '${ $input + {paid: .affected} }'}}
`)

// Every call of a scenario with steps fails once, in each way: one in seven, others in
// every run. The end is the undisturbed run's, and each step is done once.
func TestEveryCallOfStepsMayFailOnOracle(t *testing.T) {
	t.Parallel()
	f := newFaulty(t)
	f.document, f.steps = stepsFault, shopSet(t)
	s := &shop{t, f.d.DSN()}
	for _, text := range shopTables {
		s.exec(text)
	}
	noted := func() string {
		return strings.Join(s.texts(fmt.Sprintf("select WHAT from SHOP_DONE where ORDER_ID = 'i-%d' order by NO", f.runs)), " ")
	}
	digest := regexp.MustCompile(`/0/0/[A-Za-z0-9_-]{12}"`) // of arguments with the id of the instance
	play := func(fault string) string { return digest.ReplaceAllString(f.scenario(fault), `"`) }
	want := play("all:0:none")
	if calls := f.calls; !strings.Contains(want, "completed") || noted() != "begun rested paid" || calls < 30 {
		t.Fatalf("the undisturbed run made %d calls: %s, %s", calls, want, noted())
	}
	begun, ran, calls := time.Now(), 0, f.calls
	for k := 1 + rand.IntN(7); k <= calls && time.Since(begun) < 2*time.Minute; k += 7 {
		for _, action := range append([]string{"error=4068", "error=60"}, faultActions...) {
			fault := fmt.Sprintf("all:%d:%s", k, action)
			if got := play(fault); got != want || noted() != "begun rested paid" {
				t.Errorf("%s: noted %q\n got %s\nwant %s\n%s", fault, noted(), got, want, f.log)
			}
			ran++
		}
	}
	t.Logf("report: faults of steps: %d calls in the undisturbed scenario; %d scenarios with a fault", calls, ran)
}
