package runtime_test

import (
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/runtime"
	"github.com/aqueduct-engine/aqueduct/workflow"
)

// register has a node know definitions that are Go code, before it begins.
func register(c *runtime.Config, code ...engine.Definition) {
	for _, def := range code {
		if err := c.Definitions.(*definition.Catalogue).Register(def); err != nil {
			panic(err)
		}
	}
}

// crashed is the state of crashWorkflow.
type crashed struct {
	Reserved int            `json:"reserved,omitzero"`
	By       string         `json:"by,omitempty"`
	Charged  []int          `json:"charged,omitempty"`
	Paid     int            `json:"paid,omitzero"`
	All      map[string]int `json:"all"`
	Shipped  int            `json:"shipped,omitzero"`
	Order    string         `json:"order,omitempty"`
}

// did is what the function effect answers.
type did struct {
	N int `json:"n"`
}

// ask is what it is asked.
type ask struct {
	Do string `json:"do"`
	X  int    `json:"x,omitzero"`
}

// crashWorkflow is crashDocument in Go: a call, a task, a timer, calls one after the
// other, an event, a fan-out, an event that leaves, a child, and a call that is
// acknowledged.
func crashWorkflow() []engine.Definition {
	var (
		reserve = workflow.Call[ask, did]("reserve", "effect")
		approve = workflow.Task[any]("approve")
		pause   = workflow.Timer("pause")
		charge  = workflow.Call[ask, did]("charge", "effect")
		paid    = workflow.Event[int]("paid", "paid")
		both    = workflow.Call[ask, did]("all", "effect")
		ship    = workflow.Child[map[string]int, did]("sub", "t/crash-child")
		order   = workflow.Call[ask, string]("order", "effect")
	)
	w := workflow.New[crashed]("t/crash", "1.0.0")
	workflow.Start(w, func(s crashed, _ workflow.Input[any]) (crashed, workflow.Do) {
		return s, workflow.Do{reserve.With(ask{Do: "reserve"}).CompensateWith("effect", ask{Do: "release"})}
	})
	workflow.On(w, reserve, func(s crashed, in workflow.Input[did]) (crashed, workflow.Do) {
		s.Reserved = in.Value.N
		return s, workflow.Do{approve.With(workflow.Person{Title: "Approve", CandidateUsers: []string{"ann"}})}
	})
	workflow.On(w, approve, func(s crashed, in workflow.Input[workflow.Answer[any]]) (crashed, workflow.Do) {
		s.By = in.Value.CompletedBy
		return s, workflow.Do{pause.After(20 * time.Millisecond)}
	})
	workflow.On(w, pause, func(s crashed, _ workflow.Input[workflow.Fired]) (crashed, workflow.Do) {
		return s, workflow.Do{charge.With(ask{"charge", 1})}
	})
	workflow.On(w, charge, func(s crashed, in workflow.Input[did]) (crashed, workflow.Do) {
		if s.Charged = append(s.Charged, in.Value.N); len(s.Charged) < 2 {
			return s, workflow.Do{charge.With(ask{"charge", 2})}
		}
		return s, workflow.Do{paid.Listen()}
	})
	workflow.On(w, paid, func(s crashed, in workflow.Input[int]) (crashed, workflow.Do) {
		s.Paid, s.All = in.Value, map[string]int{}
		return s, workflow.Do{both.With(ask{Do: "a"}), both.With(ask{Do: "b"}).Of(1)}
	})
	workflow.On(w, both, func(s crashed, in workflow.Input[did]) (crashed, workflow.Do) {
		if s.All[string(rune('a'+in.Item))] = in.Value.N; len(s.All) < 2 {
			return s, nil
		}
		return s, workflow.Do{workflow.Emit("told", s.All), ship.With(s.All)}
	})
	workflow.On(w, ship, func(s crashed, in workflow.Input[did]) (crashed, workflow.Do) {
		s.Shipped = in.Value.N
		return s, workflow.Do{order.With(ask{Do: "order"}).Acknowledged(100 * time.Millisecond)}
	})
	workflow.On(w, order, func(s crashed, in workflow.Input[string]) (crashed, workflow.Do) {
		s.Order = in.Value
		return s, workflow.Do{workflow.Complete(s)}
	})
	def, err := w.Definition()
	if err != nil {
		panic(err)
	}
	return []engine.Definition{def}
}

// TestCrashPointsOfGo stops a real process just before and just after each durable
// operation of a workflow in Go, and lets another finish: the end is the undisturbed
// one.
func TestCrashPointsOfGo(t *testing.T) {
	t.Parallel()
	crashPoints(t, testdb.OnFile(t), "go", 1, 1)
}

// TestCrashPointsOfGoOnOracle does the same on the Oracle store: for one operation in
// four, others in every run, and for each with AQUEDUCT_FAULTS=all.
func TestCrashPointsOfGoOnOracle(t *testing.T) {
	t.Parallel()
	first, step := 1+rand.Int64N(4), int64(4)
	if os.Getenv("AQUEDUCT_FAULTS") == "all" {
		first, step = 1, 1
	}
	crashPoints(t, testdb.OnOracle(t), "go", first, step)
}
