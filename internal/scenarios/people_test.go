package scenarios_test

import (
	"context"
	"fmt"

	"github.com/cucumber/godog"

	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// thenPeople are the steps that look at tasks and children.
func (w *world) thenPeople(sc *godog.ScenarioContext) {
	sc.Step(`^the task of "([^"]+)" has (\d+) "([^"]+)" event$`, func(ctx context.Context, id string, n int, event string) error {
		return eventually(func() error {
			t, err := w.task(ctx, id)
			if err != nil {
				return err
			}
			return w.with(ctx, func(x *node) error {
				events, err := x.db.Parts().Tasks.TaskEvents(ctx, t.ID)
				count := 0
				for _, e := range events {
					if e.Event == event {
						count++
					}
				}
				if err == nil && count != n {
					err = fmt.Errorf("%d of them: %+v", count, events)
				}
				return err
			})
		})
	})
	sc.Step(`^the child of "([^"]+)" is (waiting|cancelled)$`, func(ctx context.Context, id, status string) error {
		return eventually(func() error {
			return w.with(ctx, func(x *node) error {
				p, err := x.db.Parts().Instances.Instances(ctx, backend.InstanceQuery{ParentID: id})
				if err == nil && (len(p.Items) != 1 || p.Items[0].Status != status) {
					err = fmt.Errorf("children %+v", p.Items)
				}
				return err
			})
		})
	})
}
