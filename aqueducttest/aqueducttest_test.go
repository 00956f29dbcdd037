package aqueducttest_test

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/aqueducttest"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

func example(t *testing.T, name string) *aqueducttest.Workflow {
	t.Helper()
	return aqueducttest.File(t, filepath.Join("..", "examples", name, "workflow.yaml"))
}

const services = "http://services"

func TestLoanApproval(t *testing.T) {
	t.Parallel()
	start := func(t *testing.T) *aqueducttest.Workflow {
		w := example(t, "loan-approval")
		w.OnCall("POST " + services + "/notifications").Return(nil)
		return w
	}
	input := map[string]any{"services": services, "applicant": "ann", "amount": 5000, "income": 3000}
	result := func(score int, decision, by string) any {
		return map[string]any{"applicant": "ann", "amount": 5000, "score": score, "decision": decision, "decidedBy": by}
	}
	t.Run("a person decides", func(t *testing.T) {
		t.Parallel()
		w := start(t)
		w.OnCall("POST " + services + "/scoring").Return(`{"score": 500}`)
		w.Start(input)
		w.Waits("askOfficer")
		task := w.Task("askOfficer")
		if task.Title != "Approve 5000 for ann" || task.MayClaim("ann", "loan-officers") || task.MayClaim("bob") || !task.DueAt.Equal(w.Now().Add(24*time.Hour)) {
			t.Errorf("%+v", task.Task)
		}
		task.Claim("olga", "loan-officers").Complete("approved", nil)
		w.Completed(result(500, "approved", "olga"))
		if calls := w.Calls("POST */notifications"); len(calls) != 1 || string(calls[0].Body()) != `{"text":"Your application was approved","to":"ann"}` {
			t.Errorf("%+v", calls)
		}
	})
	t.Run("nobody decides in time", func(t *testing.T) {
		t.Parallel()
		w := start(t)
		w.OnCall("POST */scoring").Return(`{"score": 500}`)
		w.Start(input)
		w.Advance(3*24*time.Hour - time.Second)
		w.Waits("askOfficer")
		w.Advance(time.Second)
		w.Completed(result(500, "rejected", "timeout"))
		if open := w.Tasks(); len(open) != 0 {
			t.Errorf("%d tasks are open", len(open))
		}
	})
	t.Run("the score decides", func(t *testing.T) {
		t.Parallel()
		for score, decision := range map[int]string{800: "approved", 299: "rejected"} {
			w := start(t)
			w.OnCall("POST */scoring").Return(map[string]any{"score": score})
			w.Start(input).Completed(result(score, decision, "score"))
		}
	})
	t.Run("no score", func(t *testing.T) {
		t.Parallel()
		w := start(t)
		w.OnCall("POST */scoring").Fail("communication", 503, "down")
		w.Start(input)
		w.Waits("askScore") // a node asks five times
		w.Advance(20 * time.Second)
		if asked := w.Calls("POST */scoring"); len(asked) != 5 || asked[4].Attempt != 5 || asked[4].Key != asked[0].Key {
			t.Errorf("asked %+v", asked)
		}
		w.Task("askOfficer").Claim("olga", "loan-officers").Complete("rejected", nil)
		w.Completed(result(0, "rejected", "olga"))
	})
}

func TestGroupCheckout(t *testing.T) {
	t.Parallel()
	w := example(t, "group-checkout")
	w.OnCall("POST " + services + "/checkout/*").Return(nil)
	w.OnCall("POST "+services+"/checkout/bo").Fail("communication", 409, "minibar")
	w.Start(map[string]any{"services": services, "group": "g", "guests": []string{"al", "bo", "cy"}})
	w.Completed(`{"group": "g", "checkedOut": ["al", "cy"], "failed": [{"guest": "bo", "reason": "communication"}], "status": "failed"}`)
}

func TestTrafficFine(t *testing.T) {
	t.Parallel()
	w := example(t, "traffic-fine")
	w.OnCall("POST */system-number").After(20 * time.Second).Return(`{"systemNumber": 7}`)
	w.OnCall("POST */issue").Return(`"issued"`)
	w.StartWithKey("r-1", map[string]any{"services": services, "policeReport": "r-1"})
	w.EarlyEvent("org.example.fines.manual-code-generated", map[string]any{"policeReport": "other", "manualIdentificationCode": "no"})
	if d := w.NextTimer(); d != 20*time.Second {
		t.Errorf("the number came after %v", d)
	}
	w.Waits("awaitManualCode")
	if w.ListensFor("org.example.fines.manual-code-generated", map[string]any{"policeReport": "r-2"}) {
		t.Error("another report's code is taken")
	}
	w.Event("org.example.fines.manual-code-generated", map[string]any{"policeReport": "r-1", "manualIdentificationCode": "m-1"})
	w.Completed(`{"policeReport": "r-1", "systemNumber": 7, "manualCode": "m-1", "fine": "issued"}`)
}

func TestChildrenAndEmittedEvents(t *testing.T) {
	t.Parallel()
	w := aqueducttest.Text(t, `
document: {dsl: '1.0.3', namespace: test, name: parent, version: 1.0.0}
do:
  - child:
      try:
        - ask: { run: { workflow: { namespace: test, name: child, version: 1.0.0, input: { n: '${ .n }' } } } }
      catch: { do: [ { failed: { set: { failed: true } } } ] }
  - tell: { emit: { event: { with: { source: urn:x, type: org.example.told, data: '${ . }' } } }, output: { as: .data } }
`)
	w.OnCall("run test/child").After(time.Hour).Return(`{"sum": 3}`)
	w.Start(`{"n": 1}`)
	w.Waits("ask")
	w.Advance(time.Hour)
	w.Completed(`{"sum": 3}`)
	if calls := w.Calls("run *"); len(calls) != 1 || string(calls[0].Input) != `{"n":1}` || calls[0].Pointer != "/do/0/child/try/0/ask" {
		t.Errorf("%+v", calls)
	}
	if told := w.Calls("event:publish"); len(told) != 1 || !strings.Contains(string(told[0].Input), `"type":"org.example.told"`) {
		t.Errorf("%+v", told)
	}
	w = aqueducttest.Text(t, `
document: {dsl: '1.0.3', namespace: test, name: fire, version: 1.0.0}
do:
  - go: { run: { workflow: { namespace: test, name: child, version: 1.0.0 }, await: false } }
`)
	w.Start(`{"n": 2}`)
	if calls := w.Calls("run test/child"); len(calls) != 1 || w.Status() != snapshot.Completed {
		t.Errorf("%+v, %s", calls, w.Status())
	}
}

// recorder is a test that is expected to fail.
type recorder struct {
	log      strings.Builder
	failed   bool
	cleanups []func()
}

func (*recorder) Helper()            {}
func (r *recorder) Failed() bool     { return r.failed }
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Logf(format string, args ...any) {
	fmt.Fprintf(&r.log, format+"\n", args...)
}
func (r *recorder) Errorf(format string, args ...any) { r.failed = true; r.Logf(format, args...) }
func (r *recorder) Fatalf(format string, args ...any) { r.Errorf(format, args...); runtime.Goexit() }

func fails(test func(t aqueducttest.TB)) string {
	r, done := &recorder{}, make(chan struct{})
	go func() {
		defer close(done)
		test(r)
	}()
	<-done
	for _, f := range r.cleanups {
		f()
	}
	return r.log.String()
}

const ask = `
document: {dsl: '1.0.3', namespace: test, name: ask, version: 1.0.0}
do:
  - first: { call: price, with: { of: '${ .item }' } }
  - second: { call: humanTask, with: { candidateGroups: [ staff ], outcomes: [ 'yes', 'no' ] } }
`

func TestMistakesAreSaid(t *testing.T) {
	t.Parallel()
	priced := func(t aqueducttest.TB) *aqueducttest.Workflow {
		w := aqueducttest.Text(t, ask)
		w.OnCall("price").Return(1)
		return w.Start(`{"item": "i"}`)
	}
	for name, c := range map[string]struct {
		test func(aqueducttest.TB)
		want []string
	}{
		"unexpected call": {func(t aqueducttest.TB) {
			w := aqueducttest.Text(t, ask)
			w.OnCall("prize").Return(1)
			w.OnCall("price") // and no answer
			w.Start(`{"item": "i"}`)
		}, []string{"unexpected call of price", "at    /do/0/first", `input {"of":"i"}`, "price (which has no answer), prize", `w.OnCall("price").Return(...)`, "timeline:\n+0s      <- InstanceStarted"}},
		"wrong output": {func(t aqueducttest.TB) {
			priced(t).Task("second").Claim("x", "staff").Complete("yes", nil).Completed(`{"a": 1}`)
		}, []string{"output\n got {", `want {"a":1}`}},
		"not completed":  {func(t aqueducttest.TB) { priced(t).Completed(nil) }, []string{"not completed, it is waiting (Task at second)"}},
		"not faulted":    {func(t aqueducttest.TB) { priced(t).Faulted("timeout") }, []string{"not faulted, it is waiting"}},
		"wrong waits":    {func(t aqueducttest.TB) { priced(t).Waits("first") }, []string{"waits at [second], not [first]"}},
		"no task":        {func(t aqueducttest.TB) { priced(t).Task("third") }, []string{"0 open human tasks are named third; open: [second]"}},
		"may not claim":  {func(t aqueducttest.TB) { priced(t).Task("second").Claim("x", "guests") }, []string{"x [guests] may not claim second"}},
		"not claimed":    {func(t aqueducttest.TB) { priced(t).Task("second").Complete("yes", nil) }, []string{"not claimed"}},
		"wrong outcome":  {func(t aqueducttest.TB) { priced(t).Task("second").Claim("x", "staff").Complete("maybe", nil) }, []string{`"maybe" is no outcome`}},
		"nobody listens": {func(t aqueducttest.TB) { priced(t).Event("paid", nil) }, []string{"nothing waits for event paid"}},
		"no timer":       {func(t aqueducttest.TB) { priced(t).NextTimer() }, []string{"no timer is set"}},
		"no JSON":        {func(t aqueducttest.TB) { aqueducttest.Text(t, ask).Start("text") }, []string{"quotes of its own"}},
		"not started":    {func(t aqueducttest.TB) { aqueducttest.Text(t, ask).Waits() }, []string{"not started"}},
		"bad definition": {func(t aqueducttest.TB) { aqueducttest.Text(t, "do: []") }, []string{"definition:1:1", "document"}},
		"no file":        {func(t aqueducttest.TB) { aqueducttest.File(t, "nope.yaml") }, []string{"nope.yaml"}},
	} {
		got := fails(c.test)
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q is not said in\n%s", name, want, got)
			}
		}
	}
}

func TestFaultsAreMended(t *testing.T) {
	t.Parallel()
	w := aqueducttest.Text(t, ask)
	w.OnCall("price").Never().Fail("https://example.org/odd", 418, "teapot").Return(2)
	w.Start(`{"item": "i"}`)
	if w.Status() != snapshot.Waiting || len(w.Calls("")) != 1 {
		t.Fatal(w.Status())
	}
	w = aqueducttest.Text(t, ask)
	w.OnCall("price").Fail("https://example.org/odd", 418, "teapot").Return(2)
	w.Start(`{"item": "i"}`)
	if e := w.Faulted("https://example.org/odd"); e.Status != 418 || e.Instance != "/do/0/first" {
		t.Errorf("%+v", e)
	}
	w.Operate(engine.Retry, nil)
	w.Waits("second")
}

func TestTheSameTestGivesTheSame(t *testing.T) {
	t.Parallel()
	play := func() (string, string) {
		w := example(t, "loan-approval")
		w.OnCall("POST *").After(time.Second).Return(`{"score": 500}`)
		w.Start(map[string]any{"services": services, "applicant": "ann", "amount": 1})
		w.Advance(100 * time.Hour)
		s := w.Snapshot()
		raw, err := s.Encode()
		if err != nil {
			t.Fatal(err)
		}
		return w.Timeline(), string(raw)
	}
	a, first := play()
	b, second := play()
	if a != b || first != second {
		t.Errorf("%s\n%s\n%s\n%s", a, b, first, second)
	}
}

// TestALateRetryDoesNotBegin: the time of all retries is over when the instance is resumed.
func TestALateRetryDoesNotBegin(t *testing.T) {
	t.Parallel()
	w := aqueducttest.Text(t, `
document: {dsl: '1.0.3', namespace: t, name: late, version: '1.0.0'}
do:
  - safe:
      try: [{pay: {call: http, with: {method: post, endpoint: 'https://pay.example/'}}}]
      catch:
        retry: {delay: PT1M, limit: {duration: PT90S}}
        do: [{give: {set: {status: '${ $error.status }'}}}]
`)
	w.Attempts(1)
	w.OnCall("POST https://pay.example/").Fail("communication", 503, "busy")
	w.Start(nil)
	w.Operate(engine.Suspend, nil)
	w.Advance(2 * time.Minute)
	w.Operate(engine.Resume, nil)
	w.Completed(`{"status": 503}`)
	if n := len(w.Calls("POST *")); n != 1 {
		t.Errorf("%d calls", n)
	}
}
