package scenarios_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cucumber/godog"

	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// answersByQueue are the steps about answers that an application enqueues.
func (w *world) answersByQueue(sc *godog.ScenarioContext) {
	sc.Step(`^"([^"]+)" answers the task of "([^"]+)" through the queue with "([^"]*)" and (.+)$`,
		func(ctx context.Context, user, id, outcome, data string) error {
			return w.hand(ctx, user, id, map[string]any{"output": map[string]any{"outcome": outcome, "data": json.RawMessage(data)}})
		})
	sc.Step(`^an error answers the task of "([^"]+)" through the queue$`, func(ctx context.Context, id string) error {
		return w.hand(ctx, "ann", id, map[string]any{"error": map[string]any{"type": "urn:x", "status": 500}})
	})
	sc.Step(`^the dead letters of "([^"]+)" say "([^"]+)"$`, w.deadLettersSay)
}

func (w *world) hand(ctx context.Context, user, id string, payload any) error {
	t, err := w.task(ctx, id)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(payload)
	if err != nil {
		return err
	}
	return w.enqueue(ctx, signal.Envelope{
		SignalID: fmt.Sprintf("answer-%d", time.Now().UnixNano()), InstanceID: id, Type: signal.TaskCompleted, WaitingToken: t.Token,
		Headers: map[string]string{signal.HeaderActor: user}, Payload: raw,
	}, 1)
}

func (w *world) deadLettersSay(ctx context.Context, id, reasons string) error {
	return eventually(func() error {
		return w.with(ctx, func(n *node) error {
			page, err := n.db.Parts().DeadLetters.DeadLetters(ctx, backend.DeadLetterQuery{InstanceID: id})
			if err != nil {
				return err
			}
			var got []string
			for _, l := range page.Items {
				got = append(got, l.Reason)
			}
			slices.Sort(got)
			if all := strings.Join(got, " "); all != reasons {
				return fmt.Errorf("they say %s", all)
			}
			return nil
		})
	})
}
