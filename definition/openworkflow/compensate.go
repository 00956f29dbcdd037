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
	text, isText := v.(string)
	if fields, ok := v.(map[string]any); ok {
		text = c.units(at, fields)
	} else if !isText {
		c.wrong(at, "a duration", v)
		return 0
	}
	zero := time.Unix(0, 0)
	until, err := duration.After(zero, text)
	switch {
	case err != nil:
		c.report(at, codeType, "write PT10M", "%s", err)
	case !until.After(zero):
		c.report(at, codeType, "write PT10M", "a command cannot be given up before it is sent")
	}
	return until.Sub(zero)
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
	at = join(at, "compensate")
	m = c.object(at, v, shape{fields: []string{"call", "with"}, required: []string{"call"}})
	if m == nil {
		return
	}
	r := c.call(at, m, vars.with("output", "key"), c.expanding, true)
	switch {
	case r.kind != program.KindCall || r.call != nil && r.call.Ack != nil:
		c.report(join(at, "call"), codeUnsupported, "call http or a function", "a compensation by %s is outside the supported profile", quoted(m["call"]))
	case r.args != nil:
		c.report(join(at, "call"), codeUnsupported, "give the function no with here", "arguments of a named function in a compensation are outside the supported profile")
	default:
		n.Compensate = r.call
	}
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
