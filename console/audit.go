package console

import (
	"net/url"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/api/client"
	h "github.com/aqueduct-engine/aqueduct/console/html"
	"github.com/aqueduct-engine/aqueduct/problem"
)

// audit is who has done what, and was refused what.
func audit(v *visit) (content, error) {
	q := v.URL.Query()
	query := client.AuditQuery{
		User: q.Get("user"), Action: q.Get("action"), Target: q.Get("target"), InstanceID: q.Get("instance"), Result: q.Get("result"),
		List: client.List{After: q.Get("after"), Limit: pageItems},
	}
	var p client.Page[client.AuditEntry]
	err := between(q, &query)
	if err == nil {
		p, err = client.NewAdmin(v.api).Audit(v.Context(), query)
	}
	if err != nil && tell(err).Kind == problem.Denied {
		return content{title: "Audit"}, err
	}
	return content{"Audit", true, auditPage(p).body, findAudit}, err
}

// between reads from when on and before when entries are asked for.
func between(q url.Values, query *client.AuditQuery) error {
	for name, to := range map[string]*time.Time{"from": &query.From, "to": &query.To} {
		written := strings.TrimSpace(q.Get(name))
		if written == "" {
			continue
		}
		var err error
		for _, form := range []string{time.DateOnly, "2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02 15:04:05", time.RFC3339Nano} {
			if *to, err = time.Parse(form, written); err == nil {
				break
			}
		}
		if err != nil {
			p := problem.New(problem.Invalid, "console.time", "%.40q is no moment", written).WithHint("such as 2026-11-25, 2026-11-25 14:30 or 2026-11-25T14:30:00Z, in UTC")
			p.Where = []problem.Place{{Pointer: "query." + name, Detail: p.Detail}}
			return p
		}
	}
	return nil
}

// auditPage is a list of entries.
type auditPage client.Page[client.AuditEntry]

func (p auditPage) body(s *shell) h.Node {
	var list h.Node
	switch {
	case len(p.Items) > 0:
		list = table("When|Who|What|Of|Result|Because", h.Map(p.Items, func(e client.AuditEntry) h.Node { return audited(s, e) }))
	case s.problem == nil:
		list = nothing(text("Nobody has done anything of the kind. Starts, signals and events stand in the timelines of instances, and work on tasks in their histories."))
	}
	says := func(before string) func(string) h.Node {
		return func(v string) h.Node { return h.Group{text(before + " "), code(v)} }
	}
	return h.Group{
		h.P(h.Class("filters"), h.A(s.path("audit"), chosen(len(s.query) == 0), text("all")),
			s.narrowed("user", "any user", says("by")), s.narrowed("action", "any action", code), s.narrowed("target", "any target", says("of")),
			s.narrowed("instance", "any instance", says("instance")), s.narrowed("result", "any result", resulted),
			s.narrowed("from", "from the begin", says("from")), s.narrowed("to", "until now", says("before"))),
		list, s.nextPage("Older", p.Next),
	}
}

// done is the result of what was not refused.
const done = "done"

// resulted says of what result a list is.
func resulted(result string) h.Node {
	if result == done {
		return text("not refused")
	}
	return h.Group{text("refused with "), code(result)}
}

// nameless says who they are that have no name, by how it is known who acts.
var nameless = map[string]string{"nobody": "nobody was asked", "node": "a node itself"}

func audited(s *shell, e client.AuditEntry) h.Node {
	narrow := func(parameter, v string) h.Node {
		return ifText(v, func(v string) h.Node { return h.A(s.filtered(parameter, v), text(v)) })
	}
	result := narrow("result", e.Result)
	return h.Tr(cell(s.moment(e.At)),
		cell(narrow("user", e.User), h.If(e.User == "", text(either(nameless[e.Kind], "unknown"))), after(" for ", e.Claimed), h.Br(), small(text(e.Kind), after(" by ", e.Via))),
		cell(narrow("action", e.Action)), cell(auditTarget(s, e)),
		cell(result, h.If(e.VersionAfter != 0, h.Group{h.Br(), small(text("version "), number(e.VersionBefore), text(" → "), number(e.VersionAfter))})),
		cell(text(e.Reason)))
}

// auditTarget is what something was done to, with a link to its page where it has one.
func auditTarget(s *shell, e client.AuditEntry) h.Node {
	target := text(e.Target)
	switch name, version, of := strings.Cut(e.Target, "@"); {
	case e.Target == e.InstanceID && e.InstanceID != "":
		return s.toInstance(e.InstanceID)
	case e.Action == "publish" && of && !strings.Contains(name, ":"): // else a policy, which has no page
		target = s.version(name, version)
	case e.Action == "reassign" && !strings.HasPrefix(e.Target, "/"):
		target = s.link("get-task", "", s.path("tasks", e.Target), e.Target)
	case e.Action == "reset-target" && e.Result == done:
		target = h.A(s.path("queues"), text(e.Target))
	default:
		// What was refused is known by its path: of what it is stands behind the second
		// slash, by its name in the API, which is that of our pages.
		elements := strings.Split(strings.TrimPrefix(e.Target, "/v1/"), "/")
		if len(elements) > 1 && strings.HasPrefix(e.Target, "/v1/") && (elements[0] == "instances" || elements[0] == "tasks" || elements[0] == "dead-letters") {
			target = h.A(s.path(elements[0], elements[1]), text(e.Target))
		}
	}
	return h.Group{target, ifText(e.InstanceID, func(id string) h.Node { return h.Group{h.Br(), small(text("instance "), s.toInstance(id))} })}
}

func findAudit(s *shell) h.Node {
	return acts("Find", h.Find(s.path("audit"), h.Class("fields"),
		s.find("User", "user", "user", ""), s.find("Action", "action", "action", "publish, retry, discard, create-token"),
		s.find("Target", "target", "target", "what it was done to"), s.find("Instance", "instance", "instance", ""),
		s.find("Refused with", "result", "result", "a problem’s code"),
		s.find("From", "from", "from", "2026-11-25 14:30, UTC"), s.find("Before", "to", "to", ""), button("Find")))
}
