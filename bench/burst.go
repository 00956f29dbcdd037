package bench

import (
	"context"
	"fmt"

	"github.com/aqueduct-engine/aqueduct/signal"
)

// burst: workflows of five calls with ever more callers at once, which have ever more
// commands under way: far more than the node has slots.
func burst(ctx context.Context, o *Options) ([]Row, error) {
	sizes := []int{callers, 256, 1_024, 4_096}
	if o.Quick {
		sizes = []int{callers, 300}
	}
	var rows []Row
	err := o.fresh(ctx, "burst", []string{callDocument("steps-5", 5)}, func(n *node, _ string) error {
		for _, size := range sizes {
			count := max(o.count(8_000, 300), 2*size)
			spent := o.spending(n.db)
			row, err := measured(fmt.Sprintf("burst-%d", size), count, size, ownCPU, func(int) error {
				_, err := n.complete(ctx, "steps-5")
				return err
			})
			if err != nil {
				return err
			}
			spent(&row)
			if rows = append(rows, row); len(rows) > 1 {
				rows[len(rows)-1].Note += fmt.Sprintf("; %.2f of the rate with %d", row.RatePerSecond/rows[0].RatePerSecond, sizes[0])
			}
		}
		return nil
	})
	return rows, err
}

// versions: starts that name no version, of a definition with one and with many.
func versions(ctx context.Context, o *Options) ([]Row, error) {
	sizes := []int{1, 1_000}
	if o.Quick {
		sizes = []int{1, 20}
	}
	var rows []Row
	for _, size := range sizes {
		documents := make([]string, size)
		for i := range documents {
			documents[i] = fmt.Sprintf("document: {dsl: '1.0.3', namespace: bench, name: many, version: '1.%d.0'}\ndo:\n%s", i, parkTasks)
		}
		err := o.fresh(ctx, "versions", documents, func(n *node, _ string) error {
			spent := o.spending(n.db)
			row, err := measured(fmt.Sprintf("versions-%d", size), o.count(4_000, 50), callers, ownCPU, func(int) error {
				_, _, err := n.rt.Start(ctx, newID(), signal.Start{Definition: "bench/many"}, nil)
				return err
			})
			if err != nil {
				return err
			}
			spent(&row)
			if rows = append(rows, row); len(rows) > 1 {
				rows[len(rows)-1].Note += fmt.Sprintf("; %.2f of the rate with one", row.RatePerSecond/rows[0].RatePerSecond)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return rows, nil
}
