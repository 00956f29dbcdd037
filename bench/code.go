package bench

import (
	"context"
	"fmt"

	"github.com/aqueduct-engine/aqueduct/workflow"
)

// code: workflows of five calls as a document and in Go, in pairs.
func code(ctx context.Context, o *Options) (rows []Row, err error) {
	const document, coded = "steps-5", "steps-5-go"
	err = o.fresh(ctx, "code", []string{callDocument(document, 5)}, func(n *node, _ string) error {
		def, err := callWorkflow(coded, 5)
		if err == nil {
			_, err = n.catalogue.PublishCode(ctx, def)
		}
		if err == nil {
			rows, err = o.paired(8_000, 5, n.variant(ctx, document), n.variant(ctx, coded))
		}
		return err
	})
	return rows, err
}

// callWorkflow is callDocument in Go.
func callWorkflow(name string, calls int) (*workflow.Definition, error) {
	type argument struct {
		N int `json:"n"`
	}
	type answer struct {
		OK bool `json:"ok"`
	}
	w := workflow.New[answer]("bench/"+name, "1.0.0")
	steps := make([]workflow.CallStep[argument, answer], calls)
	for i := range steps {
		steps[i] = workflow.Call[argument, answer](fmt.Sprintf("step%d", i+1), "noop")
	}
	workflow.Start(w, func(s answer, _ workflow.Input[argument]) (answer, workflow.Do) {
		return s, workflow.Do{steps[0].With(argument{1})}
	}, workflow.To(steps[0]))
	for i, s := range steps[:calls-1] {
		next := steps[i+1]
		workflow.On(w, s, func(_ answer, in workflow.Input[answer]) (answer, workflow.Do) {
			return in.Value, workflow.Do{next.With(argument{i + 2})}
		}, workflow.To(next))
	}
	workflow.On(w, steps[calls-1], func(_ answer, in workflow.Input[answer]) (answer, workflow.Do) {
		return in.Value, workflow.Do{workflow.Complete(in.Value)}
	}, workflow.To())
	return w.Definition()
}
