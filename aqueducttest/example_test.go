package aqueducttest_test

import (
	"fmt"
	"time"

	"github.com/aqueduct-engine/aqueduct/aqueducttest"
)

// console is a test that prints: in a real one this is *testing.T.
type console struct{}

func (console) Helper()                           {}
func (console) Failed() bool                      { return false }
func (console) Cleanup(func())                    {}
func (console) Logf(format string, args ...any)   { fmt.Printf(format+"\n", args...) }
func (console) Errorf(format string, args ...any) { fmt.Printf("ERROR "+format+"\n", args...) }
func (console) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

var t console

const reminder = `
document: {dsl: '1.0.3', namespace: shop, name: reminder, version: 1.0.0}
do:
  - remind:
      call: http
      with:
        method: post
        endpoint: https://mail.example/send
        body: { to: '${ .email }' }
      output: { as: '${ $input }' }
  - paid:
      try:
        - awaitPayment:
            listen:
              to:
                one:
                  with: { type: org.example.paid }
                  correlate:
                    order: { from: .data.order, expect: '${ .order }' }
            timeout: { after: P14D }
            output: { as: '${ { paid: .[0].amount } }' }
      catch:
        errors: { with: { type: https://open-workflow-specification.org/spec/1.0.0/errors/timeout } }
        do:
          - giveUp: { set: { paid: 0 } }
`

// A workflow is started, its call answered by a stub, and an event ends it.
func ExampleText() {
	w := aqueducttest.Text(t, reminder)
	w.OnCall("POST https://mail.example/send").Return(`{"queued": true}`)
	w.Start(`{"email": "ann@example.org", "order": "o-1"}`)
	w.Waits("awaitPayment")
	w.Event("org.example.paid", map[string]any{"order": "o-1", "amount": 30})
	w.Completed(`{"paid": 30}`)
	fmt.Println(w.Status())
	// Output: completed
}

// Two weeks pass in no time, and the timeline says what happened when.
func ExampleWorkflow_Advance() {
	w := aqueducttest.Text(t, reminder)
	w.OnCall("POST https://mail.example/send").After(3 * time.Second).Return(`{"queued": true}`)
	w.Start(`{"email": "ann@example.org", "order": "o-1"}`)
	w.Advance(15 * 24 * time.Hour)
	w.Completed(`{"paid": 0}`)
	fmt.Print(w.Timeline())
	// Output:
	// +0s      <- InstanceStarted {"email":"ann@example.org","order":"o-1"}
	// +0s      -> Call http at /do/0/remind {"body":{"to":"ann@example.org"},"method":"POST","output":"content","redirect":false,"uri":"https://mail.example/send"}
	// +3s      <- TaskCompleted at /do/0/remind {"output":{"queued":true}}
	// +336h0m3s <- TimerDue at /do/1/paid/try/0/awaitPayment {}
	// +336h0m3s -> ErrorCaught at /do/1/paid/try/0/awaitPayment {"type":"https://open-workflow-specification.org/spec/1.0.0/errors/timeout","status":408,"title":"Timeout","detail":"/do/1/paid/try/0/awaitPayment was not done in time","instance":"/do/1/paid/try/0/awaitPayment"}
	// +336h0m3s -> InstanceCompleted {"paid":0}
}

// A stub answers call after call; the last answer stays.
func ExampleStub() {
	w := aqueducttest.Text(t, `
document: {dsl: '1.0.3', namespace: shop, name: prices, version: 1.0.0}
do:
  - ask:
      call: forEach
      with: { in: '${ .items }', each: item, call: price, with: { of: '${ $item }' } }
      output: { as: '${ map(.output // .error.status) }' }
`)
	w.OnCall("price").Return(10).Fail("communication", 503, "busy").Do(func(c aqueducttest.Call) (any, error) {
		return string(c.Input), nil
	})
	w.Start(`{"items": ["a", "b", "c"]}`)
	w.Completed(`[10, 503, {"of": "c"}]`)
	fmt.Println(len(w.Calls("price")), "calls")
	// Output: 3 calls
}
