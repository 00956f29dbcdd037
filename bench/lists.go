package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// page is how many rows a list is asked for.
const page = 50

// lists: the first page of what people ask for, and the next task, with ever more that is
// there: each instance waits for a person.
func lists(ctx context.Context, o *Options) ([]Row, error) {
	sizes := []int{1_000, 1_000_000}
	if o.Quick {
		sizes = []int{100, 1_000}
	}
	asks := "document: {dsl: '1.0.3', namespace: bench, name: asks, version: '1.0.0'}\n" +
		"do:\n  - ask: {call: humanTask, with: {title: Look, candidateGroups: ['${ \"g\" + (.n % 100 | tostring) }']}}\n"
	var rows []Row
	err := o.fresh(ctx, "lists", []string{asks}, func(n *node, _ string) error {
		parts := n.db.Parts()
		asked := listed(parts)
		few := map[string]float64{}
		have := 0
		for _, size := range sizes {
			for have < size {
				batch := min(size-have, 10_000)
				if _, _, err := n.park(ctx, "asks", batch, map[string]any{"n": have}); err != nil {
					return err
				}
				heapNow(n) // forget the completions nobody waits for
				have += batch
			}
			for _, a := range asked {
				row, err := measured(fmt.Sprintf("lists-%s-%d", a.name, size), o.count(500, 20), 1, ownCPU, func(int) error { return a.ask(ctx) })
				if err != nil {
					return fmt.Errorf("%s: %w", a.name, err)
				}
				row.Note = "one caller"
				if first, ok := few[a.name]; ok {
					row.Note = fmt.Sprintf("%.2f times what it takes with %d", row.P50Ms/first, sizes[0])
				} else {
					few[a.name] = row.P50Ms
				}
				rows = append(rows, row)
			}
		}
		return nil
	})
	return rows, err
}

// list is something that is asked for.
type list struct {
	name string
	ask  func(ctx context.Context) error
}

func listed(parts backend.Parts) []list {
	instances := func(q backend.InstanceQuery) func(context.Context) error {
		q.Limit = page
		return func(ctx context.Context) error {
			p, err := parts.Instances.Instances(ctx, q)
			return filled(len(p.Items), err)
		}
	}
	tasks := func(q backend.TaskQuery) func(context.Context) error {
		q.Limit = page
		return func(ctx context.Context) error {
			p, err := parts.Tasks.Tasks(ctx, q)
			return filled(len(p.Items), err)
		}
	}
	return []list{
		{"instances", instances(backend.InstanceQuery{})},
		{"waiting", instances(backend.InstanceQuery{Status: "waiting"})},
		{"definition", instances(backend.InstanceQuery{Definition: "bench/asks"})},
		{"tasks", tasks(backend.TaskQuery{Status: backend.TaskOpen})},
		{"inbox", tasks(backend.TaskQuery{Status: backend.TaskOpen, User: "ann", Groups: []string{"g0"}})},
		{"claim", func(ctx context.Context) error {
			claimed, err := parts.Tasks.ClaimNext(ctx, backend.NextClaim{User: "ann", Groups: []string{"g0"}, Limit: 1, Event: "claimed", At: time.Now()})
			return filled(len(claimed), err)
		}},
	}
}

// filled refuses a list that has nothing: it would be measured as what it is not.
func filled(n int, err error) error {
	if err == nil && n == 0 {
		return fmt.Errorf("the list is empty")
	}
	return err
}
