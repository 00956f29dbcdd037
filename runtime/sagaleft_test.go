package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/ack"
	"github.com/aqueduct-engine/aqueduct/activity"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/internal/testdb"
	"github.com/aqueduct-engine/aqueduct/projections"
)

// ledger is an outside that notes what it is asked for.
type ledger struct {
	mu    sync.Mutex
	asked []string
}

// effect answers; the first attempt at what is "lost" or "away" has no answer, or none yet.
func (l *ledger) effect(ctx context.Context, input json.RawMessage) (any, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var with struct{ Said string }
	if err := json.Unmarshal(input, &with); err != nil {
		return nil, activity.Permanent(err)
	}
	said := with.Said
	l.asked = append(l.asked, said)
	switch {
	case activity.Info(ctx).Number > 1:
	case strings.HasPrefix(said, "lost"):
		return nil, activity.RetryAfter(activity.Unknown(errors.New("no answer")), time.Hour)
	case strings.HasPrefix(said, "away"):
		return nil, activity.RetryAfter(errors.New("not now"), time.Hour)
	}
	return map[string]any{}, nil
}

// notes are what it was asked for of something.
func (l *ledger) notes(of string) (list []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, said := range l.asked {
		if strings.HasSuffix(said, of) {
			list = append(list, strings.TrimSuffix(said, of))
		}
	}
	return list
}

const (
	ledgerStep = `
document: {dsl: '1.0.3', namespace: t, name: step, version: '1.0.0'}
do:
  - step: {call: effect, with: {}, metadata: {compensate: {call: effect, with: {}}}}
`
	ledgerParent = `
document: {dsl: '1.0.3', namespace: t, name: left, version: '1.0.0'}
do:
  - a: {call: effect, with: {}, metadata: {compensate: {call: effect, with: {}}}}
  - kid: {run: {workflow: {namespace: t, name: kid, version: '1.0.0', input: '${ $workflow.input }'}}, timeout: {after: PT15S}}
`
	ledgerChild = `
document: {dsl: '1.0.3', namespace: t, name: kid, version: '1.0.0'}
do:
  - k: {call: effect, with: {}, metadata: {compensate: {call: effect, with: {}}}}
  - wait: {wait: PT16S}
`
)

// A parent whose turn cannot be written knows still that its child has ended, and what undoes it: nobody
// tells it again.
func TestAnUnwrittenTurnKeepsTheEndOfItsChild(t *testing.T) {
	t.Parallel()
	const parent = `
document: {dsl: '1.0.3', namespace: t, name: unwritten, version: '1.0.0'}
do:
  - a: {call: effect, with: {}, metadata: {compensate: {call: effect, with: {}}}}
  - kid: {run: {workflow: {namespace: t, name: done, version: '1.0.0', input: '${ $workflow.input }'}}}
  - deep: {run: {workflow: {namespace: t, name: done, version: '1.0.0', input: '${ reduce range(70) as $i (0; [.]) }'}}}
`
	const child = `
document: {dsl: '1.0.3', namespace: t, name: done, version: '1.0.0'}
do:
  - k: {call: effect, with: {}, metadata: {compensate: {call: effect, with: {}}}}
`
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		l := &ledger{}
		n := start(t, fresh(), l.effect, with(parent, "a"), with(child, "k"))
		n.begin(t, "i", "t/unwritten", map[string]string{"of": "!"})
		n.faultedBy(t, "i", "signal.too-deep")
		if _, err := n.rt.Operate(t.Context(), "i", engine.Compensate, nil, "ann"); err != nil {
			t.Fatal(err)
		}
		n.until(t, "i", func(i projections.Instance) bool { return i.Status == "compensated" })
		if got, want := l.notes("!"), []string{"a", "k", "unk", "una"}; !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	})
}

// with has the steps of a document ask for a text and what it is of, and their
// compensations for its reverse.
func with(document string, names ...string) string {
	for _, name := range names {
		document = strings.Replace(document, "with: {}", `with: {said: '${ "`+name+`" + $workflow.input.of }'}`, 1)
		document = strings.Replace(document, "with: {}", `with: {said: '${ "un`+name+`" + $workflow.input.of }'}`, 1)
	}
	return document
}

// TestAWorkersFailureKeepsWhatNobodyKnew: who fails a command says what they have done
// themselves. An attempt before them that had no answer is undone.
func TestAWorkersFailureKeepsWhatNobodyKnew(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		for _, c := range []struct {
			first  string
			claims bool
			status string
			asked  []string
		}{
			{"lost", true, "compensated", []string{"lost", "unlost"}},
			{"lost", false, "compensated", []string{"lost", "unlost"}},
			{"away", true, "faulted", []string{"away"}},
			{"away", false, "faulted", []string{"away"}},
		} {
			l := &ledger{}
			n := start(t, fresh(), l.effect, with(ledgerStep, c.first))
			n.begin(t, "i", "t/step", map[string]string{"of": "!"})
			n.waits(t, "i")
			if c.claims {
				for range 2 { // for longer, too
					if _, err := n.rt.ClaimCommand(t.Context(), "i", 2, "ann", time.Hour); err != nil {
						t.Fatal(err)
					}
				}
			}
			n.settle(t, "i", engine.Applied, ack.Ack{Outcome: ack.Failed, Actor: "ann"})
			n.until(t, "i", func(i projections.Instance) bool { return i.Status == c.status })
			if got := l.notes("!"); !slices.Equal(got, c.asked) {
				t.Errorf("%s, claimed %t: %v, want %v", c.first, c.claims, got, c.asked)
			}
		}
	})
}

// TestAChildThatCompletesAsItsParentLeavesItIsCompensated: the parent's time for the child and
// the child's end come while the parent is suspended, the one before the other; then it is
// resumed, or cancelled.
func TestAChildThatCompletesAsItsParentLeavesItIsCompensated(t *testing.T) {
	t.Parallel()
	testdb.Each(t, func(t *testing.T, fresh func() string) {
		l := &ledger{}
		n := start(t, fresh(), l.effect, with(ledgerParent, "a"), with(ledgerChild, "k"))
		ops := map[string]engine.Operation{"resumed": engine.Resume, "cancelled": engine.Compensate}
		for id := range ops {
			n.begin(t, id, "t/left", map[string]string{"of": id})
		}
		for id := range ops {
			eventually(t, "the child's step", func() bool { return len(l.notes(id)) == 2 })
			if _, err := n.rt.Operate(t.Context(), id, engine.Suspend, nil, "ann"); err != nil {
				t.Fatal(err)
			}
		}
		for id, op := range ops {
			eventually(t, "the child's end", func() bool {
				snap, err := n.store.Writer.Load(t.Context(), id)
				return err == nil && len(snap.Buffer) == 2
			})
			if _, err := n.rt.Operate(t.Context(), id, op, nil, "ann"); err != nil {
				t.Fatal(err)
			}
			n.until(t, id, func(i projections.Instance) bool { return i.Status == "compensated" })
			if got, want := l.notes(id), []string{"a", "k", "unk", "una"}; !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v", id, got, want)
			}
		}
	})
}
