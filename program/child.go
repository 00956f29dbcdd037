package program

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/aqueduct-engine/aqueduct/engine"
	"github.com/aqueduct-engine/aqueduct/jq"
	"github.com/aqueduct-engine/aqueduct/signal"
	"github.com/aqueduct-engine/aqueduct/snapshot"
)

// Run is a sub-workflow: a child instance of another definition.
type Run struct {
	Definition string       // namespace/name
	Version    string       // "" = the latest, resolved when the task runs
	Input      *jq.Template // nil = null
	Await      bool         // wait for its end, and give its output
}

// child starts a sub-workflow; it reports whether the branch waits for it.
func (r calls) child(n *Node, in *scope) (waits bool, err error) {
	input := json.RawMessage("null")
	if n.Run.Input != nil {
		v, err := r.evals.eval(n.Run.Input, in)
		if err != nil {
			return false, err
		}
		if input, err = v.Raw(r.t.In.Limits.Expression.Bytes); err != nil {
			return false, err
		}
	}
	if len(input) > engine.MaxChildBytes {
		return false, raise(engine.ErrRuntime, 500, "Limit exceeded",
			fmt.Sprintf("an input of %d bytes exceeds %d; pass a reference to large data", len(input), engine.MaxChildBytes))
	}
	depth := 0
	if n.Run.Await {
		depth = 1
		if p := r.t.Snap.Parent; p != nil {
			depth += p.Depth
		}
	}
	if depth > engine.MaxDepth {
		return false, raise(engine.ErrRuntime, 500, "Limit exceeded", fmt.Sprintf("sub-workflows wait for each other more than %d deep", engine.MaxDepth))
	}
	start := signal.Start{Definition: n.Run.Definition, Version: n.Run.Version, Input: input}
	err = r.t.Spawn(start, n.Run.Await, depth, snapshot.Wait{Branch: r.b.ID, Pointer: n.Pointer})
	if err != nil || n.Run.Await {
		return err == nil, err
	}
	return false, r.complete(n, r.data, n.Then)
}

// Children lists the definitions that p runs and waits for, in order of their
// place in the document.
func (p *Program) Children() []engine.Child {
	var list []engine.Child
	for _, pointer := range slices.Sorted(maps.Keys(p.nodes)) {
		n := p.node(pointer)
		by := []*Node{n, n.Compensate}
		if n.Call != nil {
			by = append(by, n.Call.Compensate)
		}
		for _, n := range by {
			if n != nil && n.Run != nil && n.Run.Await {
				list = append(list, engine.Child{Definition: n.Run.Definition, Version: n.Run.Version, Pointer: pointer})
			}
		}
	}
	return list
}
