package openworkflow

import (
	"slices"
	"strconv"
	"time"

	"github.com/aqueduct-engine/aqueduct/jq"
	"github.com/aqueduct-engine/aqueduct/program"
)

// consumer is an application that is told of transitions (D4).
type consumer struct {
	endpoint any // as the author wrote it
	within   any // nil = the default of acknowledged calls
	wrong    bool
}

// consumers takes the applications that policies name.
func (c *compiler) consumers(v any) map[string]consumer {
	all := map[string]consumer{}
	if v == nil {
		return all
	}
	named := c.anyObject("/consumers", v)
	for _, name := range keys(named) {
		at := join("/consumers", name)
		if !stateName.MatchString(name) {
			c.reportKey(at, codeType, "", "%s is not %s", clip(name), nameForm)
		}
		before := len(c.findings) + c.dropped
		fields := c.object(at, named[name], shape{fields: []string{"endpoint", "within"}, required: []string{"endpoint"}})
		if v, ok := fields["endpoint"]; ok {
			c.http(at, map[string]any{"method": "post", "endpoint": v}, hookScope)
		}
		if v, ok := fields["within"]; ok {
			ackTime(c, join(at, "within"), v, hookScope)
		}
		all[name] = consumer{fields["endpoint"], fields["within"], len(c.findings)+c.dropped > before}
	}
	return all
}

// deliveries puts the calls to consumers before the hooks of the states
// that they are for.
func (c *compiler) deliveries(m *machine, where string, consumers map[string]consumer, v any) {
	if v == nil {
		return
	}
	list, ok := v.([]any)
	if !ok {
		c.wrong(where, "a list", v)
		return
	}
	for i, x := range slices.Backward(list) {
		c.policy(m, item(where, i), consumers, i, x)
	}
}

func (c *compiler) policy(m *machine, at string, consumers map[string]consumer, i int, v any) {
	fields := c.object(at, v, shape{
		fields: []string{"states", "event", "consumers", "route", "data", "await", "ackRequired", "retry"}, required: []string{"states", "consumers"},
	})
	before := len(c.findings) + c.dropped
	var only *jq.Template
	if v, ok := fields["event"]; ok {
		if name := c.known(join(at, "event"), v, "event", keys(m.events)); name != "" {
			only, _ = jq.Expression("$"+program.VarTransition+".event == "+literal(name), hookScope) // a string always compiles
		}
	}
	if v, ok := fields["route"]; ok {
		c.matching(join(at, "route"), v, stateName, nameForm)
	}
	if v, ok := fields["data"]; ok {
		c.template(join(at, "data"), v, hookScope)
	}
	v, says := fields["await"]
	await, anyOf := awaits(c, join(at, "await"), v, says)
	if v, ok := fields["ackRequired"]; ok {
		if _, isBool := v.(bool); !isBool {
			c.wrong(join(at, "ackRequired"), "a boolean", v)
		}
	}
	var again redelivery
	if v, ok := fields["retry"]; ok {
		again = redeliveries(c, join(at, "retry"), v)
	}
	var states, names []string
	if v, ok := fields["states"]; ok {
		states = c.several(join(at, "states"), v, "state", m.order)
	}
	if v, ok := fields["consumers"]; ok {
		names = c.several(join(at, "consumers"), v, "consumer", keys(consumers))
	}
	if len(c.findings)+c.dropped > before || slices.ContainsFunc(names, func(name string) bool { return consumers[name].wrong }) {
		return
	}
	for _, state := range states {
		n := m.states[state]
		if n.State.Enter == nil {
			n.State.Enter = &program.Node{Pointer: join(n.Pointer, "onEnter"), Kind: program.KindList}
		}
		group := n.Pointer + "/policies/" + strconv.Itoa(i)
		var deliveries []*program.Node
		for _, name := range names {
			d := c.delivery(state, consumers[name], fields, await)
			if d.Call != nil {
				d.Call.Retries.Delay, d.Call.Retries.DelayMax, d.Call.Retries.For = again.delay, again.delayMax, again.age
			}
			d.Pointer, d.Name, d.If = join(group, name), name, only
			deliveries = append(deliveries, d)
		}
		if await && len(deliveries) > 1 {
			arms := &program.Node{Pointer: group + "/consumers", Kind: program.KindArms, List: deliveries}
			deliveries = []*program.Node{keepsData(&program.Node{Pointer: group, Name: "policy " + strconv.Itoa(i), Kind: program.KindFork, Compete: anyOf, Any: anyOf, Body: arms})}
		}
		n.State.Enter.List = append(deliveries, n.State.Enter.List...)
	}
}

// redelivery is how often a rule has consumers told again; 0 = as the node says.
type redelivery struct{ delay, delayMax, age time.Duration }

// Bounds of what a rule says of deliveries: those of the settings ack.pause and ack.age.
const (
	minRedelivery    = time.Millisecond
	maxRedelivery    = 24 * time.Hour
	minRedeliveryAge = time.Second
	maxRedeliveryAge = 365 * 24 * time.Hour
)

// redeliveries takes how often consumers are told again, and for how long.
func redeliveries(c *compiler, at string, v any) redelivery {
	m := c.object(at, v, shape{fields: []string{"delay", "delayMax", "limit"}})
	if m != nil && len(m) == 0 {
		c.report(at, codeMissing, "delay, delayMax, limit", "the retry says nothing")
	}
	var r redelivery
	between := func(at string, v any, low, high time.Duration) time.Duration {
		d, ok := span(c, at, v)
		if ok && (d < low || d > high) {
			c.report(at, codeType, "", "want a duration between %s and %s, not %s", low, high, quoted(v))
			return 0
		}
		return d
	}
	if v, ok := m["delay"]; ok {
		r.delay = between(join(at, "delay"), v, minRedelivery, maxRedelivery)
	}
	if v, ok := m["delayMax"]; ok {
		r.delayMax = between(join(at, "delayMax"), v, minRedelivery, maxRedelivery)
	}
	if v, ok := m["limit"]; ok {
		limit := c.object(join(at, "limit"), v, shape{fields: []string{"duration"}, required: []string{"duration"}})
		if v, ok := limit["duration"]; ok {
			r.age = between(join(join(at, "limit"), "duration"), v, minRedeliveryAge, maxRedeliveryAge)
		}
	}
	for _, p := range []struct {
		name  string
		pause time.Duration
		than  string
		limit time.Duration
	}{
		{"delay", r.delay, "delayMax", r.delayMax}, {"delay", r.delay, "the limit", r.age}, {"delayMax", r.delayMax, "the limit", r.age},
	} {
		if p.limit > 0 && p.pause > p.limit {
			c.report(join(at, p.name), codeType, "make it shorter, or "+p.than+" longer", "%s is %s, longer than %s, %s", p.name, p.pause, p.than, p.limit)
		}
	}
	return r
}

// awaits says whether consumers are waited for, and whether one of them is enough.
func awaits(c *compiler, at string, v any, says bool) (await, anyOf bool) {
	switch v {
	case nil:
		if !says {
			return false, false
		}
	case false:
		return false, false
	case true, "all":
		return true, false
	case "any":
		return true, true
	}
	c.report(at, codeType, "all (or true) waits for all consumers, any for the first that has processed it", "want all, any, or a boolean, not %s", quoted(v))
	return false, false
}

// delivery is the acknowledged call that tells a consumer.
func (c *compiler) delivery(state string, to consumer, policy map[string]any, await bool) *program.Node {
	with := map[string]any{
		"call": callHTTP, "await": await,
		"with": map[string]any{"method": "post", "endpoint": to.endpoint, "body": map[string]any{
			"kind":       "transition",
			"definition": c.id.Name, "version": c.id.Version,
			"instanceId": "${ $workflow.id }", "reference": "${ $workflow.businessKey }",
			"from": "${ $" + program.VarTransition + ".from }", "to": state, "event": "${ $" + program.VarTransition + ".event }",
			"actor":      "${ $" + program.VarEvent + ".actor }",
			"occurredAt": "${ if $" + program.VarTransition + " then $" + program.VarTransition + ".occurredAt else $workflow.startedAt.iso8601 end }",
			"route":      policy["route"], "data": policy["data"],
		}},
	}
	if to.within != nil {
		with["within"] = to.within
	}
	r := c.call("", map[string]any{"call": callAck, "with": with}, hookScope, nil, false)
	switch {
	case r.call == nil:
	case policy["ackRequired"] == false:
		r.call.AckIf = jq.Constant(false)
	default: // unless the event says that nobody need acknowledge it
		r.call.AckIf, _ = jq.Expression("$"+program.VarEvent+".ackRequired != false", hookScope) // it compiles
	}
	return keepsData(&program.Node{Kind: r.kind, Call: r.call})
}

// keepsData has a task that the document does not show give on what it got.
func keepsData(n *program.Node) *program.Node {
	n.Output, _ = jq.Expression("$input", hookScope) // it compiles
	return n
}

// several takes one name, a list of names, or '*' for all.
func (c *compiler) several(at string, v any, what string, all []string) []string {
	if v == everywhere {
		return all
	}
	list, ok := v.([]any)
	if !ok {
		return []string{c.known(at, v, what, all)}
	}
	if len(list) == 0 {
		c.report(at, codeMissing, "a "+what+", a list of them, or '*' for all", "list is empty")
	}
	var names []string
	for i, x := range list {
		name := c.known(item(at, i), x, what, all)
		if slices.Contains(names, name) && name != "" {
			c.report(item(at, i), codeType, "", "%s %s is there twice", what, clip(name))
		}
		names = append(names, name)
	}
	return names
}

// notices takes which notices of a state leave as CloudEvents.
func notices(c *compiler, at string, v any) map[string]bool {
	said := map[string]bool{}
	all := c.anyObject(at, v)
	for _, name := range keys(all) {
		leaves, isBool := all[name].(bool)
		switch {
		case !slices.Contains(program.Notices, name):
			c.reportKey(join(at, name), codeReference, one(name, program.Notices), "no notice is named %s", clip(name))
		case !isBool:
			c.wrong(join(at, name), "a boolean: whether it leaves as a CloudEvent", all[name])
		default:
			said[name] = leaves
		}
	}
	return said
}
