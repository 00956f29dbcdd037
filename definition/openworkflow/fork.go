package openworkflow

import (
	"github.com/aqueduct-engine/aqueduct/program"
)

// fork compiles the branches of a fork: a list whose tasks run side by side. A
// task of it can go to itself, never to another branch.
func (c *compiler) fork(at string, m map[string]any, n *program.Node, vars scope, _ []string) {
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
	n.Body.Kind = program.KindArms
	for _, arm := range n.Body.List {
		c.staysInBranch(arm)
		c.exportsInBranch(arm)
	}
}

// exportsInBranch warns of exports whose order nobody knows before.
func (c *compiler) exportsInBranch(n *program.Node) {
	if n == nil {
		return
	}
	if n.Export != nil {
		c.warn(join(n.Pointer, "export"), warnExport, "export from the fork", "branches run side by side: the context is that of the branch that exports last")
	}
	for _, child := range n.List {
		c.exportsInBranch(child)
	}
	c.exportsInBranch(n.Body)
	if n.Catch != nil {
		c.exportsInBranch(n.Catch.Body)
	}
}

// staysInBranch reports the flow directives of an arm that lead out of it.
func (c *compiler) staysInBranch(arm *program.Node) {
	flows := map[string]program.Flow{"then": arm.Then}
	for i, k := range arm.Cases {
		flows[join(join(item("switch", i), k.Name), "then")] = k.Then
	}
	if arm.Catch != nil && arm.Catch.Then != nil {
		flows["catch/then"] = *arm.Catch.Then
	}
	for _, field := range keys(flows) {
		if f := flows[field]; f.Directive == program.FlowTo && f.Target != arm.Name {
			c.report(join(arm.Pointer, "")+field, codeTarget, "continue, exit or end", "branch %s cannot go to branch %s", clip(arm.Name), clip(f.Target))
		}
	}
}
