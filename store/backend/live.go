package backend

import (
	"context"
	"maps"
	"slices"

	"github.com/aqueduct-engine/aqueduct/projections"
)

// open are the statuses of instances that have not ended.
var open = []string{"waiting", "running", "suspended", "faulted", "pending"}

// Live says whether instances that have not ended run a version of a definition. One
// that begins or changes meanwhile may be missed.
func Live(instances InstanceReader) func(ctx context.Context, name, version string) (bool, error) {
	return func(ctx context.Context, name, version string) (bool, error) {
		for _, status := range open {
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

// LiveVersions says which versions of a definition instances run that have not ended.
func LiveVersions(instances InstanceReader) func(ctx context.Context, name string) ([]string, error) {
	return func(ctx context.Context, name string) ([]string, error) {
		found := map[string]bool{}
		for _, status := range open {
			q := InstanceQuery{Definition: name, Status: status, Limit: projections.MaxLimit}
			for {
				page, err := instances.Instances(ctx, q)
				if err != nil {
					return nil, err
				}
				for i := range page.Items {
					found[page.Items[i].DefVersion] = true
				}
				if q.After = page.Next; q.After == "" {
					break
				}
			}
		}
		return slices.Sorted(maps.Keys(found)), nil
	}
}
