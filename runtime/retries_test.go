package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/program"
)

// There is one budget of retries: where a policy of the author is for a
// failure, the node makes one attempt for each of its runs; elsewhere the
// node's own policy counts, which allows five here.
func TestOneBudgetOfRetries(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, do, end string
		calls         int
	}{
		{"the author's policy", `{try: [{work: {call: effect}}], catch: {retry: {limit: {attempt: {count: 3}}}}}`, "faulted", 4},
		{"around a fork", `{try: [{both: {fork: {branches: [{work: {call: effect}}]}}}], catch: {retry: {limit: {attempt: {count: 2}}}}}`, "faulted", 3},
		{"of the try outside, when the inner one is not for it",
			`{try: [{inner: {try: [{work: {call: effect}}], catch: {errors: {with: {status: 404}}, retry: {limit: {attempt: {count: 9}}}}}}], catch: {retry: {limit: {attempt: {count: 1}}}}}`, "faulted", 2},
		{"a policy that allows none is one", `{try: [{work: {call: effect}}], catch: {retry: {limit: {attempt: {count: 0}}}}}`, "faulted", 1},
		{"no try", `{do: [{work: {call: effect}}]}`, "faulted", 5},
		{"a try for another error", `{try: [{work: {call: effect}}], catch: {errors: {with: {status: 404}}, retry: {limit: {attempt: {count: 3}}}}}`, "faulted", 5},
		{"a catch without a policy", `{try: [{work: {call: effect}}], catch: {do: [{note: {set: {caught: true}}}]}}`, "completed", 5},
		{"a policy for another error", `{try: [{work: {call: effect}}], catch: {retry: {when: '${ $error.status == 404 }', limit: {attempt: {count: 3}}}}}`, "faulted", 5},
		{"an inner catch that goes on", `{try: [{inner: {try: [{work: {call: effect}}], catch: {do: [{note: {set: {caught: true}}}]}}}], catch: {retry: {limit: {attempt: {count: 3}}}}}`, "completed", 5},
		{"a fan-out, which raises nothing", `{try: [{all: {call: forEach, with: {in: [1], call: effect}}}], catch: {retry: {limit: {attempt: {count: 3}}}}}`, "completed", 5},
	}
	documents := make([]string, len(cases))
	for i, c := range cases {
		documents[i] = doc(fmt.Sprintf("budget-%d", i), "\n  - safe: "+c.do+"\n")
	}
	var mu sync.Mutex
	calls := map[string]int{}
	n := start(t, t.TempDir()+"/a.db", func(ctx context.Context, _ json.RawMessage) (any, error) {
		mu.Lock()
		defer mu.Unlock()
		calls[activity.Info(ctx).Instance]++
		return nil, errors.New("down")
	}, documents...)
	for i, c := range cases {
		id := fmt.Sprintf("i%d", i)
		n.begin(t, id, fmt.Sprintf("t/budget-%d", i), nil)
		n.until(t, id, status(c.end))
		mu.Lock()
		if got := calls[id]; got != c.calls {
			t.Errorf("%s: %d attempts, not %d", c.name, got, c.calls)
		}
		mu.Unlock()
	}
}

// A policy with neither a delay nor a limit does not fill the database: after
// its first retries each waits.
func TestEndlessRetriesArePaced(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var calls []time.Time
	n := start(t, t.TempDir()+"/a.db", func(context.Context, json.RawMessage) (any, error) {
		mu.Lock()
		defer mu.Unlock()
		calls = append(calls, time.Now())
		return nil, errors.New("down")
	}, doc("endless", `
  - safe: {try: [{work: {call: effect}}], catch: {retry: {}}}
`))
	n.begin(t, "i", "t/endless", nil)
	const paced = program.EagerRetries + 2 // retries, of which two are
	eventually(t, "retries", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(calls) > paced
	})
	mu.Lock()
	defer mu.Unlock()
	if took := calls[paced].Sub(calls[program.EagerRetries]); took < program.MinRetryDelay {
		t.Errorf("two retries more after %s", took)
	}
}
