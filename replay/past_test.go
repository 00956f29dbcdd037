package replay_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/replay"
	"github.com/aqueduct-engine/aqueduct/signal"
)

// Secret, IDs and History make an instance of a test a database of one.
func (i *instance) Secret(context.Context) ([]byte, error) { return []byte("key"), nil }
func (i *instance) IDs(context.Context, string, int) ([]string, error) {
	return []string{"i"}, nil
}
func (i *instance) History(ctx context.Context, id string, read func([]byte, replay.Stream) error) error {
	if id == "slow" {
		<-ctx.Done()
		return ctx.Err()
	}
	if id != "i" {
		return problem.New(problem.NotFound, "instance.unknown", "instance %s does not exist", id)
	}
	stored, err := i.snap.Encode()
	if err != nil {
		return err
	}
	return read(stored, i.entries)
}

// Who asks a node what an instance was is answered within bounds: of length, of time, of
// how many ask at once.
func TestThePastIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := newInstance(t).begin(signal.Start{}).answer(`{"output": {"score": 7}}`)
		past := replay.NewPast(i, i)
		s, err := past.At(t.Context(), "i", 1)
		if err != nil || s.Version != 1 || s.Position != 2 {
			t.Errorf("%+v, %v", s, err)
		}
		refused := func(id string, position int64, code string, kind problem.Kind) {
			t.Helper()
			if _, err := past.At(t.Context(), id, position); problem.CodeOf(err) != code || problem.KindOf(err) != kind {
				t.Errorf("%s at %d: %v", id, position, err)
			}
		}
		refused("nobody", 1, "instance.unknown", problem.NotFound)
		refused("i", replay.MaxAt, "stream.position", problem.NotFound)
		refused("i", replay.MaxAt+1, "replay.too-long", problem.TooLarge)
		done := make(chan error)
		for range 5 { // more than may at once: all have an answer in the time of one
			go func() {
				_, err := past.At(t.Context(), "slow", 1)
				done <- err
			}()
		}
		for range 5 {
			if err := <-done; problem.CodeOf(err) != "replay.busy" || problem.KindOf(err) != problem.Unavailable {
				t.Error(err)
			}
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := past.At(gone, "slow", 1); err != context.Canceled {
			t.Error(err)
		}
		i.stream[1].Type = "another"
		refused("i", 1, "replay.different", problem.Conflict)
		i.stream[1].Metadata = []byte(`{}`)
		i.stream = append([]projections.Entry(nil), i.stream[1:]...)
		refused("i", 2, "replay.unverifiable", problem.Conflict)
	})
}
