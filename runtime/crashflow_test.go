package runtime_test

import (
	"fmt"
	"regexp"
	"sort"
	"strings"
	"testing"

	"github.com/aqueduct-engine/aqueduct/internal/testdb"
)

// flowDocument has what goes on at once and again: a loop over 10,000 items, a
// nested try with retries, a person and a sub-workflow, side by side; then
// what an error that is caught compensates.
const flowDocument = `
document: {dsl: '1.0.3', namespace: t, name: crash, version: '1.0.0'}
do:
  - all:
      fork:
        branches:
          - sum:
              for: {each: x, in: '${ [range(10000)] }', at: i}
              do:
                - add: {set: '${ {sum: ((.sum // 0) + $x), at: $i} }'}
          - flaky:
              try:
                - inner:
                    try:
                      - count: {set: {counted: true}, export: {as: '${ $context + {tries: (($context.tries // 0) + 1)} }'}}
                      - fails: {if: $context.tries < 3, raise: {error: {type: 'https://test.example/flaky', status: 503}}}
                      - charge: {call: effect, with: {do: charge, try: '${ $context.tries }'}}
                    catch:
                      errors: {with: {status: 503}}
                      retry: {delay: PT0.01S, backoff: {exponential: {}}, jitter: {from: PT0S, to: PT0.01S}, limit: {attempt: {count: 4}}}
                - breaks: {raise: {error: {type: 'https://test.example/broken', status: 500}}}
              catch:
                do: [{note: {set: '${ {tries: $context.tries, error: $error.status} }'}}]
          - person:
              call: humanTask
              with: {title: Approve, candidateUsers: [ann]}
              output: {as: .completedBy}
          - sub: {run: {workflow: {namespace: t, name: crash-child, input: {from: fork}}}}
  - saga:
      try:
        - each:
            for: {each: n, in: '[1, 2]'}
            do:
              - book:
                  call: effect
                  with: {do: book, n: '${ $n }'}
                  output: {as: '${ $input }'}
                  metadata: {compensate: {call: effect, with: {do: cancel, n: '${ $n }'}}}
        - lost: {raise: {error: {type: 'https://test.example/lost', status: 410}}}
      catch:
        do:
          - undo: {call: compensate}
`

var position = regexp.MustCompile(`(?m)^\S+ `)

// told is what is the same however the branches and their crashes fall: the
// output, and the effects without the positions of their commands.
func (r result) told() string {
	output := r.state[strings.Index(r.state, "output"):]
	effects := strings.Split(position.ReplaceAllString(r.effects, ""), "\n")
	sort.Strings(effects)
	return output + "\n" + strings.Join(effects, "\n")
}

// TestFlowSurvivesEachCrash stops a real process just before and just after
// each of its durable operations in a workflow with a fork, a loop over 10,000
// items, nested tries with retries, a person, a sub-workflow and a
// compensation, and lets another finish: output and effects are the undisturbed ones. It is
// conformance scenarios 4, 26 and 27 on a store.
func TestFlowSurvivesEachCrash(t *testing.T) {
	t.Parallel()
	step := int64(1)
	if testing.Short() {
		step = 7
	}
	undisturbed := scenario(t, testdb.OnFile(t), func(file, url string) int64 { return runToEnd(t, "flow", file, url) })
	want := undisturbed.told()
	const output = `output [{"at":9999,"sum":49995000},{"error":500,"tries":3},"ann",{"n":35}]`
	if !strings.HasPrefix(want, output) || strings.Count(want, "cancel") != 2 || undisturbed.operations < 30 {
		t.Fatalf("the undisturbed run of %d operations gives %s", undisturbed.operations, want)
	}
	for k := int64(1); k <= undisturbed.operations; k += step {
		for _, after := range []string{"", "1"} {
			t.Run(fmt.Sprintf("%d%s", k, after), func(t *testing.T) {
				t.Parallel()
				got := scenario(t, testdb.OnFile(t), func(file, url string) int64 {
					killed(t, "flow", file, url, k, after)
					return runToEnd(t, "flow", file, url)
				})
				if got.told() != want {
					t.Errorf("operation %d, after=%q:\n got %s\nwant %s", k, after, got.told(), want)
				}
			})
		}
	}
	t.Logf("%d operations, each stopped before and after", undisturbed.operations)
}
