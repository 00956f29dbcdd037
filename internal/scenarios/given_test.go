package scenarios_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cucumber/godog"

	"github.com/aqueduct-engine/aqueduct/activity"
)

// given are the steps that prepare a scenario.
func (w *world) given(sc *godog.ScenarioContext) {
	sc.Step(`^the definition:$`, w.defines)
	sc.Step(`^the function "([^"]+)"$`, func(name string) { w.function(name) })
	sc.Step(`^the function "([^"]+)" answers (.+)$`, func(name, output string) error {
		return w.answers(name, 1, answer{output: json.RawMessage(output)})
	})
	sc.Step(`^the function "([^"]+)" raises (\d+) "([^"]*)"$`, func(name string, status int, title string) error {
		return w.answers(name, 1, raised(status, title))
	})
	sc.Step(`^the function "([^"]+)" raises (\d+) "([^"]*)" (\d+) times, then answers (.+)$`,
		func(name string, status int, title string, times int, output string) error {
			return errors.Join(w.answers(name, times, raised(status, title)), w.answers(name, 1, answer{output: json.RawMessage(output)}))
		})
	sc.Step(`^the function "([^"]+)" is held$`, func(name string) {
		f := w.function(name)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.hold = make(chan struct{})
	})
	sc.Step(`^the function "([^"]+)" kills the node when it is first called$`, w.kills)
	sc.Step(`^turns of at most (\d+) steps$`, func(n int) { w.limits.Steps = n })
	sc.Step(`^the nodes' clocks are fast by (\S+)$`, func(text string) (err error) {
		w.clock, err = duration(text)
		return err
	})
	sc.Step(`^the node dies after every commit$`, func(ctx context.Context) error { return w.start(ctx, everyCommit) })
}

func raised(status int, title string) answer {
	return answer{err: activity.Permanent(&activity.Error{Status: status, Title: title})}
}

// defines publishes a document, on this node and on every one to come.
func (w *world) defines(ctx context.Context, doc *godog.DocString) error {
	content := strings.ReplaceAll(doc.Content, "URL", w.notes["URL"])
	w.mu.Lock()
	w.documents = append(w.documents, content)
	booted := w.node != nil
	w.mu.Unlock()
	if !booted {
		return nil
	}
	return w.with(ctx, func(n *node) error {
		_, _, err := n.cat.Publish(ctx, "workflow.yaml", []byte(content))
		return err
	})
}

func (w *world) answers(name string, times int, a answer) error {
	if a.err == nil && !json.Valid(a.output) {
		return fmt.Errorf("%s is not JSON", a.output)
	}
	f := w.function(name)
	f.mu.Lock()
	defer f.mu.Unlock()
	for range times {
		f.answers = append(f.answers, a)
	}
	return nil
}

// kills has a function end its node while it is performed, before the result
// can be committed.
func (w *world) kills(ctx context.Context, name string) {
	f := w.function(name)
	f.onCall = func(number int) {
		if number != 1 {
			return
		}
		w.mu.Lock()
		n := w.node
		w.mu.Unlock()
		n.life.end()
		time.Sleep(10 * time.Millisecond) // its result comes when it is dead
	}
}
