package openworkflow

import (
	"github.com/aqueduct-engine/aqueduct/jq"
	"github.com/aqueduct-engine/aqueduct/program"
	"github.com/aqueduct-engine/aqueduct/schedule"
)

// scheduleKinds are the ways to say when instances begin.
var scheduleKinds = []string{"after", "cron", "every", "on"}

// schedule compiles when instances begin without being asked for.
func (c *compiler) schedule(at string, v any) *schedule.Schedule {
	m := c.object(at, v, shape{fields: append([]string{"read"}, scheduleKinds...)})
	if m == nil {
		return nil
	}
	var s schedule.Schedule
	var kind string
	before := len(c.findings) + c.dropped
	for _, k := range scheduleKinds {
		v, ok := m[k]
		if !ok {
			continue
		}
		p := join(at, k)
		if kind != "" {
			c.reportKey(p, codeUnsupported, "publish a definition for each, which runs this one", "schedules of two kinds, %s and %s, are outside the supported profile", kind, k)
			return nil
		}
		kind = k
		switch k {
		case "cron":
			s.Cron = c.text(p, v)
		case "every":
			s.Every = c.interval(p, v)
		case "after":
			s.After = c.interval(p, v)
		case "on":
			s.On = c.subscriptions(p, v)
		}
	}
	if kind == "" {
		c.reportKey(at, codeMissing, "one of after, cron, every, on", "schedule does not say when")
		return nil
	}
	s.Envelope = true
	if v, ok := m["read"]; ok {
		s.Envelope = c.read(join(at, "read"), v)
		if kind != "on" {
			c.reportKey(join(at, "read"), codeType, "", "only a schedule on events reads them")
		}
	}
	if len(c.findings)+c.dropped > before {
		return nil
	}
	compiled, err := schedule.New(s)
	if err != nil {
		c.report(join(at, kind), codeType, scheduleHints[kind], "%s", err)
	}
	return compiled
}

var scheduleHints = map[string]string{
	"cron": "minute hour day-of-month month day-of-week, such as '30 6 * * MON-FRI'", "every": "write PT15M or {minutes: 15}", "after": "write PT15M or {minutes: 15}",
}

// read takes what of an event is given on; it reports whether it is all.
func (c *compiler) read(at string, v any) bool {
	if v == "raw" {
		c.report(at, codeUnsupported, "read data or envelope", "raw events are outside the supported profile")
		return false
	}
	return c.oneOf(at, v, "data", "envelope") == "envelope"
}

// interval takes a duration that is known when the document is published.
func (c *compiler) interval(at string, v any) string {
	switch v := v.(type) {
	case string:
		if _, ok := jq.Wrapped(v); ok {
			c.report(at, codeUnsupported, "write the duration", "schedules by expression are outside the supported profile")
			return ""
		}
		c.iso(at, v)
		return v
	case map[string]any:
		return c.units(at, v)
	}
	c.wrong(at, "a duration", v)
	return ""
}

// subscriptions compiles the events that begin instances.
func (c *compiler) subscriptions(at string, v any) *program.Node {
	m := c.object(at, v, shape{fields: []string{"one", "any"}, unsupported: map[string]string{
		"all": "starts on all of several events", "until": "conditions to stop listening",
	}})
	n := &program.Node{Pointer: at, Name: "on", Kind: program.KindListen, Listen: &program.Listen{}}
	if list, ok := m["any"].([]any); ok && len(list) == 0 {
		c.report(join(at, "any"), codeMissing, "", "list has no events")
	}
	if m["all"] == nil {
		n.Listen.Mode, n.Listen.Filters = c.strategy(at, m, nil)
	}
	return n
}
