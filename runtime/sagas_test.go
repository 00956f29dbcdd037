package runtime_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/workflow"
)

// Sagas by language. Those of means have their steps undone by a sub-workflow, a person,
// an acknowledged command and a call; the steps of items are those of one fan-out.
const (
	byChild = iota
	byPerson
	byConsumer
	byCall
)

func plain(int) int { return byCall }

func means(step int) int { return (step - 1) % 4 }

// sagaDocuments are the sagas that are documents, and the sub-workflow that undoes.
func sagaDocuments() []string {
	return []string{
		sagaDocument("doc", plain), sagaDocument("means", means), `
document: {dsl: '1.0.3', namespace: t, name: saga-undo, version: '1.0.0'}
do:
  - note: {set: '${ . }'}
  - undo: {call: effect, with: {saga: '${ .saga }', step: '${ .step }', back: true, of: '${ .of // "" }'}}
`, `
document: {dsl: '1.0.3', namespace: t, name: saga-items, version: '1.0.0'}
do:
  - all:
      call: forEach
      with:
        in: '${ [range(1; 6)] }'
        call: effect
        with: {saga: '${ $workflow.id }', step: '${ $item }'}
        compensate: {call: effect, with: {saga: '${ $workflow.id }', step: '${ $item }', back: true, of: '${ $key }'}}
  - check: {if: '${ $workflow.id | test("well") | not }', raise: {error: {type: 'urn:lost', status: 409}}}
`, sagaLevels(),
	}
}

// sagaDocument is a saga as a document.
func sagaDocument(name string, by func(step int) int) string {
	b := strings.Builder{}
	fmt.Fprintf(&b, "document: {dsl: '1.0.3', namespace: t, name: saga-%s, version: '1.0.0'}\ndo:\n", name)
	for i := 1; i <= sagaSteps; i++ {
		fmt.Fprintf(&b, "  - s%d: %s\n", i, sagaStep(fmt.Sprint(i), by(i)))
	}
	return b.String()
}

// sagaStep is a step of a document.
func sagaStep(number string, by int) string {
	with := fmt.Sprintf("saga: '${ $workflow.id }', step: %s", number)
	means := map[int]string{
		byChild:    "run: {workflow: {namespace: t, name: saga-undo, version: '1.0.0', input: {%s}}}",
		byPerson:   "call: humanTask, with: {title: Undo, assignee: ann, outcomes: [done, lost], payload: {%s}}",
		byConsumer: "call: acknowledged, with: {call: effect, with: {%s}, within: PT10S}",
		byCall:     "call: effect, with: {%s}",
	}[by]
	return fmt.Sprintf("{call: effect, with: {%s}, metadata: {compensate: {%s}}}", with, fmt.Sprintf(means, with+", back: true, of: '${ $key }'"))
}

// sagaLevels has the steps in a loop and in a try, inside another try: each undoes what it
// has done, and the instance is faulted.
func sagaLevels() string {
	const again = "catch: {do: [{undo: {call: compensate}}, {again: {raise: {error: {type: 'urn:lost', status: 409}}}}]}"
	return fmt.Sprintf(`
document: {dsl: '1.0.3', namespace: t, name: saga-levels, version: '1.0.0'}
do:
  - all:
      try:
        - rounds: {for: {each: n, in: '${ [1, 2] }'}, do: [{step: %s}]}
        - inner:
            try:
              - s3: %s
              - s4: %s
              - s5: %s
            %s
      %s
`, sagaStep("'${ $n }'", byChild), sagaStep("3", byPerson), sagaStep("4", byConsumer), sagaStep("5", byCall), again, again)
}

// sagaCode is a saga in Go.
func sagaCode(name string, by func(step int) int) engine.Definition {
	w := workflow.New[struct{}]("t/saga-"+name, "1.0.0")
	var calls [sagaSteps + 1]workflow.CallStep[booking, any]
	for i := range calls {
		calls[i] = workflow.Call[booking, any](fmt.Sprintf("s%d", i+1), "effect")
	}
	goOn := func(instance string, done int) workflow.Do {
		if done == sagaSteps {
			return workflow.Do{workflow.Complete(nil)}
		}
		b := booking{Saga: instance, Step: done + 1}
		e := calls[done].With(b)
		if b.Back = true; done%2 == 0 { // the others leave it to the header
			b.Of = workflow.CallKey
		}
		switch by(done + 1) {
		case byChild:
			return workflow.Do{e.CompensateBy(workflow.Child[booking, any]("back", "t/saga-undo@1.0.0").With(b))}
		case byPerson:
			return workflow.Do{e.CompensateBy(workflow.Task[any]("back").With(workflow.Person{Title: "Undo", Assignee: "ann", Outcomes: []string{"done", "lost"}, Payload: b}))}
		case byConsumer:
			return workflow.Do{e.CompensateBy(workflow.Call[booking, any]("back", "effect").With(b).Acknowledged(10 * time.Second))}
		}
		return workflow.Do{e.CompensateWith("effect", b)}
	}
	workflow.Start(w, func(s struct{}, in workflow.Input[any]) (struct{}, workflow.Do) { return s, goOn(in.Instance, 0) })
	for i := range sagaSteps {
		workflow.On(w, calls[i], func(s struct{}, in workflow.Input[any]) (struct{}, workflow.Do) { return s, goOn(in.Instance, i+1) })
	}
	def, err := w.Definition()
	if err != nil {
		panic(err)
	}
	return def
}
