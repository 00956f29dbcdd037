package console

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/api/client"
	h "github.com/aqueduct-engine/aqueduct/console/html"
)

// silent is how long a node gives no sign of life before the page says so.
const silent = 15 * time.Second

// pace is what a node has done since a page was loaded: its counters then stand in
// the address at which the page looks again.
type pace struct {
	counts [len(counters)]int64
	from   [len(counters)]int64
	since  time.Duration // 0 = this is the begin
}

// counters are those of a node's metrics that are shown, and what of.
var counters = [...]struct{ metric, says string }{
	{"aqueduct_turns_total", "turns"}, {"aqueduct_instances_started_total", "instances begun"}, {"aqueduct_instances_ended_total", "instances ended"},
}

func (p *pace) measure(v *visit) error {
	metrics, err := v.api.Metrics(v.Context())
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(metrics)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, _, _ = strings.Cut(name, "{")
		for i, c := range counters {
			if n, err := strconv.ParseFloat(value, 64); err == nil && name == c.metric {
				p.counts[i] += int64(n)
			}
		}
	}
	now := v.Now().UnixMilli()
	var at int64
	n, _ := fmt.Sscanf(v.URL.Query().Get("measure"), "%d.%d.%d.%d", &at, &p.from[0], &p.from[1], &p.from[2])
	if n == 1+len(counters) && at < now && p.from[0] <= p.counts[0] && p.from[1] <= p.counts[1] && p.from[2] <= p.counts[2] {
		p.since = time.Duration(now-at) * time.Millisecond
		return nil
	}
	q := v.URL.Query() // of a node that has begun anew, too
	q.Set("measure", fmt.Sprintf("%d.%d.%d.%d", now, p.counts[0], p.counts[1], p.counts[2]))
	v.again = h.Here(v.URL).Asking(q)
	return nil
}

func (p *pace) shown(s *shell) h.Node {
	start := func(says string) h.Node { return paragraph(h.A(s.at("measure", "0"), text(says))) }
	switch {
	case s.q("measure") == "":
		return start("Measure it from now on")
	case p.since == 0:
		return h.Group{note(text("It is measured from now on.")), paragraph(h.A(s.again, text("What it is by now")))}
	}
	rows := h.Group{}
	for i, c := range counters {
		n := p.counts[i] - p.from[i]
		rows = append(rows, h.Tr(cell(text(c.says)), cell(number(n)), cell(text(fmt.Sprintf("%.1f", float64(n)/p.since.Seconds())))))
	}
	return h.Group{table(fmt.Sprintf("In %.0f s||Per second", p.since.Seconds()), rows), start("From now on")}
}

// traffic is what waits, and where commands go.
type traffic struct {
	Queues  []client.Queue
	Nodes   []client.Node
	Targets []client.Target
	Pace    pace
}

func queues(v *visit) (content, error) {
	var t traffic
	var err error
	if t.Queues, err = v.api.Queues(v.Context()); err == nil {
		t.Nodes, err = v.api.Nodes(v.Context())
	}
	if err == nil {
		t.Targets, err = v.api.Targets(v.Context())
	}
	if err == nil && v.URL.Query().Has("measure") {
		err = t.Pace.measure(v)
	}
	return content{"Queues and nodes", true, t.body, nil}, err
}

func (t traffic) body(s *shell) h.Node {
	if s.problem != nil && t.Queues == nil {
		return nil
	}
	list := nothing(text("This node has called nothing lately."))
	if len(t.Targets) > 0 {
		list = table("Target|Breaker|Failures in a row|Running|Waiting|For|", h.Map(t.Targets, func(target client.Target) h.Node {
			return h.Tr(cell(text(target.Name)), cell(status(target.Breaker), h.If(!target.OpenUntil.IsZero(), h.Group{text(" "), s.moment(target.OpenUntil)})),
				cell(number(target.Failures)), cell(number(target.Running)), cell(number(target.Waiting)), cell(text(target.WaitsFor)),
				cell(h.If(target.Breaker != "closed" && s.may("reset-target"), h.Post(s.path("queues", "reset"), hidden("target", target.Name), button("Close it")))))
		}))
	}
	nodes := table("Node|Version|Started|Last sign of life|With its workers", h.Map(t.Nodes, func(n client.Node) h.Node {
		return h.Tr(cell(text(n.Name)), cell(text(n.Version)), cell(s.moment(n.StartedAt)),
			cell(s.moment(n.SeenAt), h.If(s.Now().Sub(n.SeenAt) > silent, h.Group{text(" "), h.Span(h.Class("status late"), text("silent"))})), cell(number(n.Held)))
	}))
	return h.Group{s.queues(t.Queues), titled("Nodes", nodes), titled("Throughput of this node", t.Pace.shown(s)), titled("Targets of this node", list)}
}

func resetTarget(v *visit) (string, h.Address, error) {
	err := v.api.ResetTarget(v.Context(), v.PostForm.Get("target"))
	return "The circuit breaker is closed on this node.", h.Address{}, err
}
