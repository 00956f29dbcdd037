package scenarios_test

import (
	"context"
	"fmt"

	"github.com/cucumber/godog"

	"github.com/aqueduct-engine/aqueduct/engine"
)

// withdrawals are the steps about commands under way that nobody waits for any
// more.
func (w *world) withdrawals(sc *godog.ScenarioContext) {
	sc.Step(`^the call of "([^"]+)" is aborted$`, func(name string) error {
		return eventually(func() error {
			f := w.function(name)
			f.mu.Lock()
			defer f.mu.Unlock()
			if f.aborted != 1 || len(f.calls) != 1 {
				return fmt.Errorf("%d of %d calls were aborted", f.aborted, len(f.calls))
			}
			return nil
		})
	})
	sc.Step(`^the second node cancels "([^"]+)"$`, func(ctx context.Context, id string) error {
		_, err := w.more[0].rt.Operate(ctx, id, engine.Cancel, nil, "operator")
		return err
	})
}
