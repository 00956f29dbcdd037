package openworkflow

import (
	"time"

	"github.com/aqueduct-engine/aqueduct/duration"
	"github.com/aqueduct-engine/aqueduct/program"
)

// giveUp takes from metadata how long a command may wait for a place; 0 = it
// does not say.
func (c *compiler) giveUp(at string, metadata map[string]any) time.Duration {
	v, ok := metadata["giveUpAfter"]
	if !ok {
		return 0
	}
	at = join(at, "giveUpAfter")
	after, ok := span(c, at, v)
	if ok && after <= 0 {
		c.report(at, codeType, "write PT10M", "a command cannot be given up before it is sent")
	}
	return after
}

// span takes a duration that is known when the document is published; a day has 24 hours.
func span(c *compiler, at string, v any) (time.Duration, bool) {
	text, isText := v.(string)
	if fields, ok := v.(map[string]any); ok {
		text = c.units(at, fields)
	} else if !isText {
		c.wrong(at, "a duration", v)
		return 0, false
	}
	zero := time.Unix(0, 0)
	until, err := duration.After(zero, text)
	if err != nil {
		c.report(at, codeType, "write PT10M", "%s", err)
		return 0, false
	}
	return until.Sub(zero), true
}

// metadata takes what is nobody's business but the author's, and of it
// giveUpAfter, and compensate: how a task is undone once it is completed.
func (c *compiler) metadata(at string, v any, n *program.Node, vars scope) {
	m := c.anyObject(at, v)
	n.GiveUp = c.giveUp(at, m)
	v, ok := m["compensate"]
	if !ok {
		return
	}
	n.Compensate = compensations{c}.by(join(at, "compensate"), v, vars)
}

// compensations compiles what compensates tasks.
type compensations struct{ *compiler }

// ofItem compiles what compensates one item of a fan-out.
func (c compensations) ofItem(at string, m map[string]any, of *program.Call, vars scope) {
	v, ok := m["compensate"]
	if !ok {
		return
	}
	of.Compensate = c.by(join(at, "compensate"), v, vars.with(of.Each))
	if of.Detached {
		c.report(join(at, "compensate"), codeUnsupported, "leave await: false out, or compensate the task", "items that nobody waits for are not compensated")
	}
}

// once checks that a task and its items are not both compensated.
func (c compensations) once(at string, n *program.Node) {
	if n.Compensate != nil && n.Call != nil && n.Call.Compensate != nil {
		c.report(join(at, "with/compensate"), codeUnsupported, "keep one of both", "the task as a whole and each of its items are compensated")
	}
}

// by compiles what compensates a task, or an item of it: {call, with} or {run}; nil
// when there is something wrong with it.
func (c compensations) by(at string, v any, vars scope) *program.Node {
	m := c.object(at, v, shape{fields: []string{"call", "with", "run", "timeout"}})
	if m == nil {
		return nil
	}
	vars = vars.with("output", "key")
	_, calls := m["call"]
	_, runs := m["run"]
	var n *program.Node
	switch {
	case calls == runs:
		c.report(at, codeMissing, "write {call, with}, or {run: {workflow: …}}", "a compensation needs either call or run")
	case runs:
		n = c.byWorkflow(at, m, vars)
	default:
		n = c.byCall(at, m, vars)
	}
	limit, ok := m["timeout"]
	if n == nil || !ok {
		return n
	}
	if n.Timeout = c.timeout(join(at, "timeout"), limit, vars, true); n.Kind == program.KindCall && n.Call.Ack == nil {
		c.report(join(at, "timeout"), codeUnsupported, "leave it out: each attempt has the timeout of the node", "a timeout of a compensation by a mere call is outside the supported profile")
	}
	return n
}

// byCall compiles a compensation by a call, of whatever it calls.
func (c compensations) byCall(at string, m map[string]any, vars scope) *program.Node {
	r := c.call(at, m, vars, c.expanding, true)
	switch {
	case r.kind == program.KindPerson:
		return &program.Node{Kind: r.kind, Person: r.person}
	case r.kind != program.KindCall:
		c.report(join(at, "call"), codeUnsupported, "call http, a function, humanTask or acknowledged, or run a workflow",
			"a compensation by %s is outside the supported profile", quoted(m["call"]))
	case r.args != nil:
		c.report(join(at, "call"), codeUnsupported, "give the function no with here", "arguments of a named function in a compensation are outside the supported profile")
	case r.call != nil && r.call.Detached:
		c.report(join(at, "call"), codeUnsupported, "leave await out", "a compensation that nobody waits for is outside the supported profile")
	case r.call != nil:
		return &program.Node{Kind: r.kind, Call: r.call}
	}
	return nil
}

// byWorkflow compiles a compensation by a sub-workflow.
func (c compensations) byWorkflow(at string, m map[string]any, vars scope) *program.Node {
	if _, ok := m["with"]; ok {
		c.reportKey(join(at, "with"), codeType, "write run: {workflow: {…, input: …}}", "a sub-workflow has no with")
	}
	n := &program.Node{Kind: program.KindRun}
	c.run(at, m, n, vars, nil)
	if n.Run == nil || n.Run.Definition == "" {
		return nil
	}
	if !n.Run.Await {
		c.report(join(at, "run"), codeUnsupported, "leave await out", "a compensation that nobody waits for is outside the supported profile")
	}
	return n
}

// compensation checks a call of compensate: it stands in a catch, and has no arguments.
func (c *compiler) compensation(at string, with any) {
	if c.catches == 0 {
		c.report(join(at, "call"), codeType, "call it in the do of a catch", "compensate undoes what a try has completed, and is in no catch")
	}
	for _, name := range keys(c.anyObject(join(at, "with"), with)) {
		c.reportKey(join(join(at, "with"), name), codeUnknown, "", "compensate has no arguments")
	}
}
