package service

import (
	"context"
	"testing"
	"time"

	"github.com/aqueduct-engine/aqueduct/problem"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/runtime/turn"
	"github.com/aqueduct-engine/aqueduct/store"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// desk is a store with one task, whose commits are too late for a while.
type desk struct {
	backend.TaskStore
	store.Writer
	task  projections.Task
	late  int
	edits []store.TaskEdit
}

func (d *desk) Task(context.Context, string) (projections.Task, error) { return d.task, nil }

func (d *desk) Commit(_ context.Context, c store.Change) error {
	if d.late > 0 {
		d.late--
		d.task.Version++
		return store.ErrStale
	}
	d.edits = append(d.edits, c.Tasks...)
	return nil
}

// TestATaskIsChangedAtTheVersionThatWasChecked: somebody who is faster has the
// guards asked again; when many are, the caller hears so and nothing is written.
func TestATaskIsChangedAtTheVersionThatWasChecked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		late int
		code string
	}{{0, ""}, {2, ""}, {turn.StaleMax, "task.contended"}} {
		d := &desk{task: projections.Task{ID: "t", Status: projections.TaskReady, Version: 1}, late: c.late}
		_, err := (&Tasks{Writer: d, Tasks: d, Now: time.Now}).ClaimTask(t.Context(), "t", "ann", nil)
		if (err == nil) != (c.code == "") || err != nil && problem.CodeOf(err) != c.code {
			t.Errorf("%d too late: %v", c.late, err)
		}
		if c.code == "" && (len(d.edits) != 1 || d.edits[0].Version != int64(1+c.late) || d.edits[0].Assignee != "ann") {
			t.Errorf("%d too late: %+v", c.late, d.edits)
		}
		if c.code != "" && len(d.edits) != 0 {
			t.Errorf("%d too late, and written: %+v", c.late, d.edits)
		}
	}
}
