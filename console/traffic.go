package console

import (
	"time"

	"github.com/aqueduct-engine/aqueduct/api/client"
	h "github.com/aqueduct-engine/aqueduct/console/html"
)

// silent is how long a node gives no sign of life before the page says so.
const silent = 15 * time.Second

// traffic is what waits, and where commands go.
type traffic struct {
	Queues  []client.Queue
	Nodes   []client.Node
	Targets []client.Target
	Charts  []series
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
	if err == nil {
		t.Charts, err = v.history(t.Queues)
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
				cell(h.If(target.Breaker != "closed" && s.may("reset-target", ""), h.Post(s.path("queues", "reset"), hidden("target", target.Name), button("Close it")))))
		}))
	}
	nodes := table("Node|Version|Started|Last sign of life|With its workers", h.Map(t.Nodes, func(n client.Node) h.Node {
		return h.Tr(cell(text(n.Name)), cell(text(n.Version)), cell(s.moment(n.StartedAt)),
			cell(s.moment(n.SeenAt), h.If(s.Now().Sub(n.SeenAt) > silent, h.Group{text(" "), h.Span(h.Class("status late"), text("silent"))})), cell(number(n.Held)))
	}))
	return h.Group{s.queues(t.Queues), titled("Nodes", nodes), h.Iff(t.Charts != nil, func() h.Node { return titled("What this node does", charts(t.Charts)) }), titled("Targets of this node", list)}
}

func resetTarget(v *visit) (string, h.Address, error) {
	err := v.api.ResetTarget(v.Context(), v.PostForm.Get("target"))
	return "The circuit breaker is closed on this node.", h.Address{}, err
}
