package bench

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// pairs is how often two are measured, one after the other and the other way round.
const pairs = 10

// variant is one of two that are compared.
type variant struct {
	name string
	run  func() error // one workflow
}

func (n *node) variant(ctx context.Context, name string) variant {
	return variant{name, func() error {
		_, err := n.complete(ctx, name)
		return err
	}}
}

// paired measures n workflows, or as many as are asked for, of each of two variants in
// pairs, so that what else the machine does is in both. The rate is of the steps that
// each workflow has.
func (o *Options) paired(n, steps int, a, b variant) ([]Row, error) {
	rows := []Row{{Workload: a.name}, {Workload: b.name}}
	var ratios []float64
	each := max(1, o.count(n, 200)/pairs)
	for i := range pairs {
		var cpu [2]float64
		order := []int{0, 1}
		if i%2 == 1 {
			slices.Reverse(order)
		}
		for _, j := range order {
			v := []variant{a, b}[j]
			row, err := measured(v.name, each, callers, ownCPU, func(int) error { return v.run() })
			if err != nil {
				return rows, err
			}
			all := &rows[j]
			all.N, all.Completed, all.Seconds, all.CPUMicros = all.N+row.N, all.Completed+row.Completed, all.Seconds+row.Seconds, all.CPUMicros+row.CPUMicros/pairs
			all.RatePerSecond = float64(steps) * float64(all.Completed) / all.Seconds
			cpu[j] = row.CPUMicros
		}
		ratios = append(ratios, cpu[1]/cpu[0])
	}
	slices.Sort(ratios)
	rows[1].Note = fmt.Sprintf("of %d pairs: %.2f times the CPU of %s, %.2f to %.2f", len(ratios), ratios[len(ratios)/2], a.name, ratios[0], ratios[len(ratios)-1])
	return rows, nil
}

// attributes: workflows of five calls, each of which changes a number, in pairs: by one
// of them instances are found, or by none.
func attributes(ctx context.Context, o *Options) (rows []Row, err error) {
	const plain, found = "changes-5", "changes-5-found"
	tasks := ""
	for i := range 5 {
		tasks += fmt.Sprintf("  - step%d: {call: noop, with: {n: %d}, output: {as: {amount: %d.5}}}\n", i+1, i+1, 100*i)
	}
	declared := "document:\n  {dsl: '1.0.3', namespace: bench, name: " + found + ", version: '1.0.0', " +
		"metadata: {searchAttributes: {amount: {path: .amount, type: decimal}}}}\ndo:\n" + tasks
	err = o.fresh(ctx, "attributes", []string{document(plain, tasks), declared}, func(n *node, _ string) error {
		rows, err = o.paired(8_000, 5, n.variant(ctx, plain), n.variant(ctx, found))
		return err
	})
	return rows, err
}

// kept: workflows that listen and get their event, in pairs, on a node that keeps no
// events for those who come later, and on one that does, which nodes do by default.
func kept(ctx context.Context, o *Options) (rows []Row, err error) {
	resumed := func(n *node, name string) variant {
		return variant{name, func() error {
			id := newID()
			done, err := n.launch(ctx, "park", id, map[string]any{"n": 1})
			if err == nil {
				err = n.direct(ctx, id)
			}
			if err == nil {
				_, err = within(ctx, done)
			}
			return err
		}}
	}
	keeping := *o
	keeping.eventTTL = time.Hour
	documents := []string{document("park", parkTasks)}
	err = o.fresh(ctx, "kept-0", documents, func(without *node, _ string) error {
		return keeping.fresh(ctx, "kept-1", documents, func(with *node, _ string) error {
			rows, err = o.paired(8_000, 1, resumed(without, "listen"), resumed(with, "listen-kept"))
			return err
		})
	})
	return rows, err
}
