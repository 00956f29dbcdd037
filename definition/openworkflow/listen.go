package openworkflow

import (
	"strings"

	"github.com/aqueduct-engine/aqueduct/jq"
	"github.com/aqueduct-engine/aqueduct/program"
)

// listen compiles a listen: what it listens to, how it reads events, and what
// it does with each.
func (c *compiler) listen(at string, m map[string]any, n *program.Node, vars scope, _ []string) {
	p := join(at, "listen")
	n.Listen = &program.Listen{}
	l := c.object(p, m["listen"], shape{fields: []string{"to", "read"}, required: []string{"to"}})
	if v, ok := l["read"]; ok {
		n.Listen.Envelope = c.read(join(p, "read"), v)
	}
	if to, ok := l["to"]; ok {
		c.listenTo(join(p, "to"), to, n.Listen, vars)
	}
	if v, ok := m["foreach"]; ok {
		c.forEachEvent(join(at, "foreach"), v, n, vars)
	}
}

// listenTo compiles the strategy of a listen.
func (c *compiler) listenTo(at string, v any, l *program.Listen, vars scope) {
	m := c.object(at, v, shape{fields: []string{"one", "any", "all", "until"}})
	if m == nil {
		return
	}
	l.Mode, l.Filters = c.strategy(at, m, vars)
	until, ok := m["until"]
	if !ok {
		return
	}
	p := join(at, "until")
	if l.Mode != program.ListenAny {
		c.reportKey(p, codeType, "until belongs to any", "only a listen to any event has an until")
		return
	}
	switch until := until.(type) {
	case string:
		bare := until
		if inner, ok := jq.Wrapped(until); ok {
			bare = inner
		}
		l.Forever = strings.TrimSpace(bare) == "false"
		if t := c.expression(p, until, vars); !l.Forever {
			l.Until = t
		}
	case map[string]any:
		m := c.object(p, until, shape{fields: []string{"one", "any", "all"}})
		l.UntilMode, l.UntilFilters = c.strategy(p, m, vars)
	default:
		c.wrong(p, "an expression or a strategy", until)
	}
}

// strategy compiles one of {one: FILTER}, {any: [FILTER]} and {all: [FILTER]}.
// A list for any without filters takes every event.
func (c *compiler) strategy(at string, m map[string]any, vars scope) (mode program.ListenMode, filters []program.Filter) {
	for _, name := range []string{"one", "any", "all"} {
		v, ok := m[name]
		if !ok {
			continue
		}
		if mode != "" {
			c.reportKey(join(at, name), codeType, "one of one, any, all", "%s stands beside %s", name, mode)
			continue
		}
		mode = program.ListenMode(name)
		p := join(at, name)
		if mode == program.ListenOne {
			filters = append(filters, c.event(p, v, vars))
			continue
		}
		list, ok := v.([]any)
		if !ok {
			c.wrong(p, "a list of filters", v)
		}
		for i, f := range list {
			filters = append(filters, c.event(item(p, i), f, vars))
		}
		if mode == program.ListenAny && len(list) == 0 {
			filters = []program.Filter{{}}
		}
	}
	if mode == "" && m != nil {
		c.report(at, codeMissing, "", "one of one, any, all is missing")
	}
	return mode, filters
}

// forEachEvent compiles what a listen does with each of its events.
func (c *compiler) forEachEvent(at string, v any, n *program.Node, vars scope) {
	m := c.object(at, v, shape{fields: []string{"item", "at", "do", "output", "export"}})
	each := &program.Each{Item: c.variable(join(at, "item"), m["item"], "item"), At: c.variable(join(at, "at"), m["at"], "index")}
	n.Listen.Each = each
	inner := vars.with(each.Item, each.At)
	if v, ok := m["do"]; ok {
		n.Body = c.list(join(at, "do"), v, inner)
	}
	if v, ok := m["output"]; ok {
		each.Output = c.filter(join(at, "output"), v, "as", inner)
		each.Schemas.Output = c.schemaOf(join(at, "output"), v)
	}
	if v, ok := m["export"]; ok {
		each.Export = c.filter(join(at, "export"), v, "as", inner.with("output"))
		each.Schemas.Export = c.schemaOf(join(at, "export"), v)
	}
}

// event compiles the filter of a listen. Its expressions see the event, and no
// variables: they are evaluated before the event has an instance.
func (c *compiler) event(at string, v any, vars scope) (res program.Filter) {
	m := c.object(at, v, shape{fields: []string{"with", "correlate"}, required: []string{"with"}})
	if v, ok := m["with"]; ok {
		c.attributes(join(at, "with"), v, &res)
	}
	correlate, ok := m["correlate"]
	if !ok {
		if strings.HasPrefix(at, "/schedule/") { // it begins instances: none waits there
			return res
		}
		c.warn(at, warnEvent, "add correlate, with from on the event and expect on the instance", "an event that fits is taken by every instance that waits here")
		return res
	}
	at = join(at, "correlate")
	names := keys(c.anyObject(at, correlate))
	if len(names) > program.MaxCorrelations {
		c.report(at, codeType, "", "%d correlations exceed %d", len(names), program.MaxCorrelations)
	}
	for _, name := range names {
		p := join(at, name)
		m := c.object(p, correlate.(map[string]any)[name], shape{fields: []string{"from", "expect"}, required: []string{"from"}})
		k := program.Correlation{Name: name}
		if v, ok := m["from"]; ok {
			if _, isText := v.(string); !isText {
				c.wrong(join(p, "from"), "an expression as a string", v)
				continue
			}
			k.From = c.expression(join(p, "from"), v, nil)
		}
		if v, ok := m["expect"]; ok {
			k.Expect = c.template(join(p, "expect"), v, vars)
		}
		res.Correlate = append(res.Correlate, k)
	}
	return res
}

// attributes compiles what an event must have. A type that is an expression is
// a condition like any other: such a wait is asked about events of every type.
func (c *compiler) attributes(at string, v any, f *program.Filter) {
	with := c.anyObject(at, v)
	if with == nil {
		return
	}
	if len(with) == 0 {
		c.report(at, codeMissing, "name the event's type", "filter has no attributes")
	}
	for _, name := range keys(with) {
		v, p := with[name], join(at, name)
		if name == "type" {
			s, ok := v.(string)
			if !ok {
				c.wrong(p, "a string", v)
				continue
			}
			if _, ok := jq.Wrapped(s); !ok {
				bounded(c, p, "the type", s, maxName)
				f.Type = s
				continue
			}
		}
		if f.With == nil {
			f.With = map[string]*jq.Template{}
		}
		if inner, ok := dataFilter(name, v); ok {
			if c.expression(p, v, nil) != nil {
				f.With[name] = c.expression(p, inner, nil)
			}
			continue
		}
		f.With[name] = c.template(p, v, nil)
	}
}

// dataFilter makes the expression of the attribute data one on the event: the
// language shows it the data alone.
func dataFilter(name string, v any) (string, bool) {
	s, ok := v.(string)
	if name != "data" || !ok {
		return "", false
	}
	inner, ok := jq.Wrapped(s)
	return "${ .data | (" + inner + "\n) }", ok
}
