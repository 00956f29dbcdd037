package bench

import (
	"context"
	"fmt"
	"slices"

	"github.com/aqueduct-engine/aqueduct/definition"
	"github.com/aqueduct-engine/aqueduct/workflow"
)

// pairs is how often both are measured, one after the other and the other way round.
const pairs = 10

// code: workflows of five calls as a document and in Go, in pairs, so that what else
// the machine does is in both.
func code(ctx context.Context, o *Options) ([]Row, error) {
	const document, coded = "steps-5", "steps-5-go"
	rows := map[string]*Row{document: {Workload: document}, coded: {Workload: coded}}
	var ratios []float64
	err := o.fresh(ctx, "code", []string{callDocument(document, 5)}, func(n *node, _ string) error {
		def, err := callWorkflow(coded, 5)
		if err == nil {
			_, err = n.catalogue.PublishCode(ctx, def, definition.Code{})
		}
		if err != nil {
			return err
		}
		each := o.count(8_000, 200) / pairs
		for i := range pairs {
			order := []string{document, coded}
			if i%2 == 1 {
				slices.Reverse(order)
			}
			cpu := map[string]float64{}
			for _, name := range order {
				row, err := measured(name, each, callers, ownCPU, func(int) error {
					_, err := n.complete(ctx, name)
					return err
				})
				if err != nil {
					return err
				}
				all := rows[name]
				all.N, all.Completed, all.Seconds, all.CPUMicros = all.N+row.N, all.Completed+row.Completed, all.Seconds+row.Seconds, all.CPUMicros+row.CPUMicros/pairs
				all.RatePerSecond = 5 * float64(all.Completed) / all.Seconds
				cpu[name] = row.CPUMicros
			}
			ratios = append(ratios, cpu[coded]/cpu[document])
		}
		return nil
	})
	slices.Sort(ratios)
	if len(ratios) > 0 {
		rows[coded].Note = fmt.Sprintf("of %d pairs: %.2f times the CPU of the document, %.2f to %.2f", len(ratios), ratios[len(ratios)/2], ratios[0], ratios[len(ratios)-1])
	}
	return []Row{*rows[document], *rows[coded]}, err
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
