package openworkflow

import (
	"slices"

	"github.com/aqueduct-engine/aqueduct/engine"
)

// fork compiles the branches of a fork: a list whose tasks run side by side. A
// task of it can go to itself, never to another branch.
func (c *compiler) fork(at string, m map[string]any, n *engine.Node, vars scope, _ []string) {
	at = join(at, "fork")
	f := c.object(at, m["fork"], shape{fields: []string{"branches", "compete"}, required: []string{"branches"}})
	if v, ok := f["compete"]; ok {
		if n.Compete, ok = v.(bool); !ok {
			c.wrong(join(at, "compete"), "a boolean", v)
		}
	}
	v, ok := f["branches"]
	if !ok {
		return
	}
	at = join(at, "branches")
	n.Body = c.list(at, v, vars)
	n.Body.Kind = engine.KindArms
	exports := 0
	for _, arm := range n.Body.List {
		c.staysInBranch(arm)
		if exportsWithin(arm) {
			exports++
		}
	}
	if exports > 1 && !n.Compete {
		c.warn(at, warnExports, "export after the fork", "%d branches export: what is exported last holds, whichever that is", exports)
	}
}

// warnExports warns of branches that export side by side.
const warnExports = "warning.exports-in-branches"

// exportsWithin reports whether a task, or one inside it, exports.
func exportsWithin(n *engine.Node) bool {
	if n.Export != nil || n.Listen != nil && n.Listen.Each != nil && n.Listen.Each.Export != nil {
		return true
	}
	within := slices.Clone(n.List)
	if n.Body != nil {
		within = append(within, n.Body)
	}
	if n.Catch != nil && n.Catch.Body != nil {
		within = append(within, n.Catch.Body)
	}
	return slices.ContainsFunc(within, exportsWithin)
}

// staysInBranch reports the flow directives of an arm that lead out of it.
func (c *compiler) staysInBranch(arm *engine.Node) {
	flows := map[string]engine.Flow{"then": arm.Then}
	for i, k := range arm.Cases {
		flows[join(join(item("switch", i), k.Name), "then")] = k.Then
	}
	if arm.Catch != nil {
		flows["catch/then"] = arm.Catch.Then
	}
	for _, field := range keys(flows) {
		if f := flows[field]; f.Directive == engine.FlowTo && f.Target != arm.Name {
			c.report(join(arm.Pointer, "")+field, codeTarget, "continue, exit or end", "branch %s cannot go to branch %s", clip(arm.Name), clip(f.Target))
		}
	}
}
