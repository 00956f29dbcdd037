package api

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/memory"
	"github.com/aqueduct-engine/aqueduct/projections"
	"github.com/aqueduct-engine/aqueduct/snapshot"
	"github.com/aqueduct-engine/aqueduct/store/backend"
)

// turning is a node that brings an instance on, and counts what is read of it.
type turning struct {
	Starter
	backend.InstanceReader
	backend.StreamReader
	told  func(*snapshot.Snapshot, *projections.Rows)
	reads chan string
}

func (n *turning) Follow(_ string, told func(*snapshot.Snapshot, *projections.Rows)) func() {
	n.told = told
	return func() {}
}

func (n *turning) Instance(context.Context, string) (projections.Instance, error) {
	n.reads <- "row"
	return projections.Instance{Status: string(snapshot.Completed)}, nil
}

func (n *turning) Pending(context.Context, string, int) ([]projections.Entry, error) {
	n.reads <- "pending"
	return nil, nil
}

func (n *turning) turn(version int64, status snapshot.Status, rows projections.Rows) {
	n.told(&snapshot.Snapshot{InstanceID: "i", Version: version, Status: status}, &rows)
}

// Who waits for an instance that this node brings on asks the database nothing: not while
// turns come, and not for commands that these have all settled. What another node does is
// looked at, and what may be left open is asked for.
func TestAWaiterAsksOnlyForWhatItIsNotTold(t *testing.T) {
	t.Parallel()
	no := false
	call := []projections.Entry{{Position: 2, Processed: &no}}
	for name, x := range map[string]struct {
		turns func(n *turning)
		want  []string
	}{
		"all told": {func(n *turning) {
			n.turn(1, snapshot.Waiting, projections.Rows{Instance: &projections.Instance{}, Stream: call})
			for v := range int64(80) {
				<-time.After(lookFirst / 2)
				n.turn(2+v, snapshot.Waiting, projections.Rows{Settled: []engine.Settled{{Position: 2}}})
			}
			n.turn(82, snapshot.Completed, projections.Rows{})
		}, nil},
		"one is open": {func(n *turning) {
			n.turn(1, snapshot.Waiting, projections.Rows{Instance: &projections.Instance{}, Stream: call})
			n.turn(2, snapshot.Completed, projections.Rows{})
		}, []string{"pending"}},
		"one was missed": {func(n *turning) {
			n.turn(1, snapshot.Waiting, projections.Rows{Instance: &projections.Instance{}})
			n.turn(3, snapshot.Completed, projections.Rows{})
		}, []string{"pending"}},
		"another node": {func(n *turning) {
			n.turn(1, snapshot.Waiting, projections.Rows{Instance: &projections.Instance{}})
		}, []string{"row"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := &turning{reads: make(chan string, 10)}
				s := instanceAPI{&service{Config: Config{Starter: n, Reader: Reader{Instances: n, Streams: n}, Memory: &memory.Budget{}}}}
				f := s.follow("i", true)
				go x.turns(n)
				s.await(t.Context(), f, false, time.Minute)
				if name != "another node" {
					s.started(t.Context(), f)
				}
				close(n.reads)
				var got []string
				for r := range n.reads {
					got = append(got, r)
				}
				if len(got) != len(x.want) || len(got) > 0 && got[0] != x.want[0] {
					t.Errorf("it reads %q, want %q", got, x.want)
				}
			})
		})
	}
}
