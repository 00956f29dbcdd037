package backend

import (
	"context"

	"github.com/aqueduct-engine/aqueduct/problem"
)

// MaxLiveVersions is how many versions of a definition may run at once for what is asked
// of all of them: each is read and compiled.
const MaxLiveVersions = 1_000

// LiveVersions says which versions of a definition instances run that have not ended:
// one look-up for each version, however many instances there are. Problem:
// definition.versions.
func LiveVersions(instances InstanceReader) func(ctx context.Context, name string) ([]string, error) {
	return func(ctx context.Context, name string) (versions []string, err error) {
		for last := ""; ; versions = append(versions, last) {
			if last, err = instances.NextLive(ctx, name, last); err != nil || last == "" {
				return versions, err
			}
			if len(versions) == MaxLiveVersions {
				return nil, problem.New(problem.Conflict, "definition.versions", "instances run more than %d versions of %s", MaxLiveVersions, name).
					WithHint("migrate instances of old versions, or let them end")
			}
		}
	}
}
