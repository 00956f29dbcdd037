package backend

import (
	"context"

	"github.com/aqueduct-engine/aqueduct/projections"
)

// Live says whether instances that have not ended run a version of a definition. One
// that begins or changes meanwhile may be missed.
func Live(instances InstanceReader) func(ctx context.Context, name, version string) (bool, error) {
	return func(ctx context.Context, name, version string) (bool, error) {
		for _, status := range []string{"waiting", "running", "suspended", "faulted", "pending"} {
			q := InstanceQuery{Definition: name, Status: status, Limit: projections.MaxLimit}
			for {
				page, err := instances.Instances(ctx, q)
				if err != nil {
					return false, err
				}
				for i := range page.Items {
					if page.Items[i].DefVersion == version {
						return true, nil
					}
				}
				if q.After = page.Next; q.After == "" {
					break
				}
			}
		}
		return false, nil
	}
}
