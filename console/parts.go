package console

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/aqueduct-engine/aqueduct/api/client"
	h "github.com/aqueduct-engine/aqueduct/console/html"
)

// Parts that several pages have.

func text(s string) h.Node { return h.Text(s) }

func number[N int | int64](n N) h.Node { return h.Text(strconv.FormatInt(int64(n), 10)) }

//go:noinline
func code(s string) h.Node { return h.Code(h.Text(s)) }

//go:noinline
func small(inside ...h.Node) h.Node { return h.Small(inside...) }

// ifText is f of a text, where there is one.
//
//go:noinline
func ifText(s string, f func(string) h.Node) h.Node {
	if s == "" {
		return nil
	}
	return f(s)
}

// after is a text behind another one, where there is one.
//
//go:noinline
func after(before, s string) h.Node { return h.If(s != "", h.Text(before+s)) }

//go:noinline
func titled(title string, inside ...h.Node) h.Node {
	return h.Section(h.H2(text(title)), h.Group(inside))
}

// acts is what can be done at a page.
//
//go:noinline
func acts(title string, inside ...h.Node) h.Node {
	return h.Section(h.Class("acts"), h.H2(text(title)), h.Group(inside))
}

//go:noinline
func facts(inside ...h.Node) h.Node { return h.Dl(h.Class("facts"), h.Group(inside)) }

//go:noinline
func fact(name string, inside ...h.Node) h.Node {
	return h.Group{h.Dt(text(name)), h.Dd(inside...)}
}

// factIf is a fact that something may not have.
//
//go:noinline
func factIf(has bool, name string, inside ...h.Node) h.Node { return h.If(has, fact(name, inside...)) }

// nothing says that a list has no entry, and why.
//
//go:noinline
func nothing(inside ...h.Node) h.Node { return h.P(h.Class("empty"), h.Group(inside)) }

//go:noinline
func note(inside ...h.Node) h.Node { return h.P(h.Class("note"), h.Group(inside)) }

//go:noinline
func paragraph(inside ...h.Node) h.Node { return h.P(inside...) }

// unfold is a part that its reader opens.
//
//go:noinline
func unfold(summary h.Node, inside ...h.Node) h.Node {
	return h.Details(h.Summary(summary), h.Group(inside))
}

func source(v any) h.Node { return h.Pre(text(pretty(v))) }

// shown is JSON that its reader may fold; nothing is not shown.
//
//go:noinline
func shown(summary h.Node, json []byte, attributes ...h.Node) h.Node {
	if len(json) == 0 {
		return nil
	}
	return unfold(summary, append(attributes, source(json))...)
}

//go:noinline
func status(s string) h.Node { return h.Span(h.Class("status "+s), text(s)) }

//go:noinline
func chosen(is bool) h.Node { return h.If(is, h.Aria("current", "true")) }

// label is a field with what it is called.
//
//go:noinline
func label(name string, field ...h.Node) h.Node { return h.Label(text(name+" "), h.Group(field)) }

// jsonLabel is a field for JSON.
//
//go:noinline
func jsonLabel(name string, field h.Node) h.Node {
	return h.Label(text(name+" "), small(text("JSON, or nothing")), field)
}

//go:noinline
func input(name, value string, more ...h.Node) h.Node {
	return h.Input(h.Name(name), h.Value(value), h.Group(more))
}

//go:noinline
func hidden(name, value string) h.Node {
	return h.Input(h.Type("hidden"), h.Name(name), h.Value(value))
}

//go:noinline
func area(name, value string, rows int, more ...h.Node) h.Node {
	return h.Textarea(h.Name(name), h.Rows(rows), h.Group(more), text("\n"+value)) // a browser leaves out a first line that is empty
}

//go:noinline
func button(says string, attributes ...h.Node) h.Node {
	return h.Button(h.Group(attributes), text(says))
}

// check is a field that says yes or nothing.
//
//go:noinline
func check(says string, attributes ...h.Node) h.Node {
	return h.Label(h.Class("check"), h.Input(h.Type("checkbox"), h.Group(attributes)), text(" "+says))
}

// offered are what a field may be filled with.
func offered(id string, choices []string) h.Node {
	return h.DataList(h.ID(id), h.Map(choices, func(c string) h.Node { return h.Option(text(c)) }))
}

// table is a list with the names of its columns.
func table(columns string, rows h.Group, attributes ...h.Node) h.Node {
	return h.Div(h.Class("scroll"), h.Table(h.Group(attributes),
		h.THead(h.Tr(h.Map(strings.Split(columns, "|"), func(c string) h.Node { return h.Th(text(c)) }))),
		h.TBody(rows),
	))
}

//go:noinline
func cell(inside ...h.Node) h.Node { return h.Td(inside...) }

// nextPage leads on in a list that goes on.
//
//go:noinline
func (s *shell) nextPage(says, next string) h.Node {
	return ifText(next, func(string) h.Node { return paragraph(h.A(s.at("after", next), text(says))) })
}

// version is a definition with one of its versions.
//
//go:noinline
func (s *shell) version(definition, version string) h.Node {
	return h.Group{s.link("get-definition", definition, s.ofVersion(definition, version), definition), text(" "), small(text(version))}
}

// link leads to what an operation reads of a definition, "" = which is not known, for who may do it.
//
//go:noinline
func (r rights) link(operation, definition string, to h.Address, says string) h.Node {
	if !r.look(operation, definition) {
		return text(says)
	}
	return h.A(to, text(says))
}

func (s *shell) toInstance(id string) h.Node { return named(s, "", id, id) }

// named is an instance of a definition, by another name.
func named(s *shell, definition, id, says string) h.Node {
	return s.link("get-instance", definition, s.path("instances", id), says)
}

func (s *shell) instances(items []client.Instance) h.Node {
	return table("Instance|Definition|Key|Status|Where|Started|Changed", h.Map(items, func(i client.Instance) h.Node {
		return h.Tr(cell(s.toInstance(i.ID)), cell(s.version(i.Definition, i.Version)), cell(text(i.BusinessKey)), cell(status(i.Status)),
			cell(text(i.State), h.Iff(i.Status == "faulted" && i.Error != nil, func() h.Node { return h.Group{h.Br(), small(text(i.Error.Detail))} })),
			cell(s.moment(i.StartedAt)), cell(s.moment(i.UpdatedAt)))
	}))
}

func (s *shell) tasks(items []client.Task) h.Node {
	return table("Task|For|Status|Due|Of|Since", h.Map(items, func(t client.Task) h.Node {
		candidates := strings.Join(t.CandidateGroups, ", ") + " " + strings.Join(t.CandidateUsers, ", ")
		return h.Tr(
			cell(s.link("get-task", t.Definition, s.path("tasks", t.ID), either(t.Title, t.Name)), h.If(t.Priority != 0, h.Group{text(" "), small(text("priority "), number(t.Priority))})),
			cell(text(either(t.Assignee, candidates))),
			cell(status(t.Status), h.If(!t.EscalatedAt.IsZero(), h.Group{text(" "), h.Span(h.Class("status late"), text("escalated"))})),
			cell(s.moment(t.DueAt)), cell(named(s, t.Definition, t.InstanceID, either(t.BusinessKey, t.InstanceID))),
			cell(s.moment(t.CreatedAt)))
	}))
}

// ofList are the filters of a list, where the page is that list: what leads from it brings them along, and so back.
func ofList(s *shell, section string) url.Values {
	if s.section != section {
		return nil
	}
	return s.query
}

func either(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func (s *shell) dead(items []client.DeadLetter) h.Node {
	return table("Dead letter|Reason|Instance|Queue|Attempts|When", h.Map(items, func(l client.DeadLetter) h.Node {
		return h.Tr(cell(s.link("get-dead-letter", "", s.path("dead-letters", l.ID).Asking(ofList(s, "dead-letters")), l.ID)), cell(code(l.Reason), h.Br(), small(text(l.Detail))),
			cell(ifText(l.InstanceID, s.toInstance)), cell(text(l.Queue)), cell(number(l.Attempts)), cell(s.moment(l.DiedAt)))
	}))
}

func (s *shell) queues(items []client.Queue) h.Node {
	return table("Queue|Ready|With workers|Delayed|Oldest ready", h.Map(items, func(q client.Queue) h.Node {
		return h.Tr(cell(text(q.Name)), cell(number(q.Ready)), cell(number(q.Leased)), cell(number(q.Delayed)), cell(s.moment(q.OldestAt)))
	}))
}

// moment shows a time: how far it is, with the time itself.
func (c *console) moment(t time.Time) h.Node {
	if t.IsZero() {
		return nil
	}
	return h.Time(t, distance(t, c.Now()))
}

// distance says in words how far a time is.
func distance(t, now time.Time) string {
	d := now.Sub(t)
	form := "%s ago"
	if d < 0 {
		d, form = -d, "in %s"
	}
	if d < time.Second {
		return "now"
	}
	return fmt.Sprintf(form, lasts(d))
}

// lasts says in words how long a time is.
func lasts(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}
