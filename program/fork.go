package program

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/aqueduct-engine/aqueduct/ack"
	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// fork begins a branch for each arm of the task on top. The branch that forks
// rests at the task until they are done.
func (r forks) fork(n *Node) (rests bool, err error) {
	arms := len(n.Body.List)
	if open := len(r.t.Snap.Branches) + arms - 1; open > r.t.In.Limits.FanOut {
		return false, raise(engine.ErrRuntime, 500, "Limit exceeded", fmt.Sprintf("%d branches at once exceed %d", open, r.t.In.Limits.FanOut))
	}
	f := r.top()
	f.Open, f.Results = arms, make([]json.RawMessage, arms)
	for arm := range arms {
		r.t.Snap.LastBranch++
		b := &snapshot.Branch{
			ID: r.t.Snap.LastBranch, Parent: r.b.ID, Arm: arm,
			Frames: []snapshot.Frame{{Pointer: n.Body.Pointer, Next: arm}},
		}
		r.t.Snap.Branches = append(r.t.Snap.Branches, b)
		r.w.goOn(newRun(r.p, r.t, r.w, b, r.data))
	}
	return true, nil
}

// join ends a branch that has run its arm of the fork n. The fork is done with
// its last arm, or its first when the arms compete.
func (r forks) join(n *Node) error {
	up, err := r.up(n)
	if err != nil {
		return err
	}
	raw, err := r.data.Raw(snapshot.MaxBytes)
	if err != nil {
		return err
	}
	f, arm := up.top(), r.b.Arm
	if n.Compete {
		if err := up.forks.superseded(n, arm); err != nil {
			return err
		}
		up.forks.prune(engine.TaskCancelled)
		return up.rest(n, false, up.complete(n, rawValue(raw), n.Then))
	}
	r.remove()
	f.Results[arm] = raw
	if f.Open--; f.Open > 0 {
		return nil
	}
	all, err := json.Marshal(f.Results)
	if err != nil {
		return err
	}
	return up.rest(n, false, up.complete(n, rawValue(all), n.Then))
}

// superseded records which consumers the fork n, one of which was enough, stops
// telling: the one of arm was first.
func (r forks) superseded(n *Node, arm int) error {
	if !n.Any {
		return nil
	}
	for _, w := range slices.Clone(r.t.Snap.Waits) {
		if b := r.t.Snap.Branch(w.Branch); w.Command == 0 || b == nil || b.ID == 0 || b.Parent != r.b.ID || b.Arm == arm {
			continue
		}
		if slices.ContainsFunc(r.t.Kept, func(k snapshot.Buffered) bool { return k.Token == w.Token }) {
			continue // its consumer has spoken while the instance was suspended
		}
		if err := ack.Supersede(r.t, r.p, w, n.Body.List[arm].Name); err != nil {
			return err
		}
	}
	return nil
}

// outlived ends a branch whose arm of the fork n has failed, when one of the others may
// yet be what the fork waits for; else it says false.
func (r forks) outlived(n *Node, e snapshot.Error) (bool, error) {
	up, err := r.up(n)
	if err != nil {
		return false, err
	}
	f := up.top()
	if f.Open <= 1 {
		return false, nil
	}
	f.Open--
	raw, err := json.Marshal(e)
	r.t.Append(engine.Entry{Kind: engine.KindEvent, Dir: engine.Out, Type: entryCaught, Data: raw, Meta: engine.Meta{Pointer: e.Instance}})
	r.waits.unwind(0, engine.TaskCancelled)
	r.remove()
	return true, err
}

// up prepares work on the branch that forked this one at n.
func (r forks) up(n *Node) (*run, error) {
	up := r.w.branch(r.b.Parent)
	if up == nil || up.gone() || up.top().Pointer != n.Pointer || r.b.Arm >= len(up.top().Results) {
		return nil, fmt.Errorf("program: %s: no fork waits at %s for branch %d", r.t.Snap.InstanceID, n.Pointer, r.b.ID)
	}
	return up, nil
}

// forked returns the fork whose arm the branch is, nil for the root branch.
func (r forks) forked() *Node {
	if r.b.ID == 0 {
		return nil
	}
	if arms := r.p.node(r.b.Frames[0].Pointer); arms != nil {
		return arms.parent
	}
	return nil
}

// ended takes the root branch to the end of its list, from where an operator's retry makes
// the workflow's output again: the tasks around the last are done, those beside it cancelled.
func (r forks) ended() (*run, error) {
	root := r.run
	for fork := r.forks.forked(); fork != nil; fork = root.forks.forked() {
		up, err := root.forks.up(fork)
		if err != nil {
			return root, err
		}
		root = up
	}
	root.data = r.data
	r.progress.left()
	for _, b := range r.t.Snap.Branches[1:] {
		b.Frames = nil
	}
	root.told = 1
	root.waits.unwind(0, engine.TaskCancelled)
	f := root.top()
	f.Next, f.Epoch = len(r.p.node(f.Pointer).List), 0
	return root, nil
}

// prune ends the branches that this one has forked, with all that they and
// theirs wait for.
func (r forks) prune(how engine.TaskEvent) {
	s := r.t.Snap
	gone := map[int]bool{}
	for _, b := range s.Branches { // a branch stands behind the one that made it
		if b.ID != 0 && (b.Parent == r.b.ID || gone[b.Parent]) {
			gone[b.ID] = true
		}
	}
	if len(gone) == 0 {
		return
	}
	r.w.cancelled(func(b *snapshot.Branch) bool { return gone[b.ID] })
	for _, b := range s.Branches {
		if gone[b.ID] {
			b.Frames = nil
		}
	}
	s.Branches = slices.DeleteFunc(s.Branches, func(b *snapshot.Branch) bool { return gone[b.ID] })
	r.t.Withdraw(how, func(w snapshot.Wait) bool { return gone[w.Branch] })
}

// remove takes the branch, which waits for nothing, out of the snapshot.
func (r forks) remove() {
	r.b.Frames = nil
	r.t.Snap.Branches = slices.DeleteFunc(r.t.Snap.Branches, func(b *snapshot.Branch) bool { return b == r.b })
}
