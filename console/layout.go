package console

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	h "github.com/aqueduct-engine/aqueduct/console/html"
	"github.com/aqueduct-engine/aqueduct/problem"
)

// shell is what is around a page's own part, and what that part knows of it.
type shell struct {
	*console
	content // the page's own part
	rights
	section  string     // of the menu
	here     h.Address  // the page, as it is
	query    url.Values // of it
	form     url.Values // of an action that was refused
	who      who
	signedIn bool   // by a token
	loggedIn bool   // by the identity provider
	speaks   bool   // they may say who they are, or nobody asks
	did      string // what an action has done
	problem  *told  // of an action, or of the page
	mayLook  bool   // again, while the page is open
	looks    bool   // so it does
}

// entry is one of the menu, for who may do an operation.
type entry struct{ path, title, operation string }

var menu = []entry{
	{"tasks", "Tasks", "list-tasks"}, {"instances", "Instances", "list-instances"}, {"dead-letters", "Dead letters", "list-dead-letters"},
	{"bulk", "Plans", "list-bulk"}, {"definitions", "Definitions", "list-definitions"}, {"lifecycles", "Lifecycles", "list-definitions"},
	{"schedules", "Schedules", "list-schedules"}, {"queues", "Queues and nodes", "list-queues"}, {"audit", "Audit", "list-audit"},
}

// rights are what who looks may do. What they may not do the pages do not offer.
type rights struct {
	all  bool                // nobody has said, and the API will
	of   map[string][]string // operations of the API, each with the namespaces that it is limited to; nil = none
	none bool                // the console only shows
}

// look says whether they may read what is of a definition, "" = of any; may whether they may do something to it.
func (r rights) look(operation, definition string) bool {
	only, ok := r.of[operation]
	namespace, _, _ := strings.Cut(definition, "/")
	return r.all || ok && (only == nil || definition == "" || slices.Contains(only, namespace))
}

func (r rights) may(operation, definition string) bool {
	return !r.none && r.look(operation, definition)
}

// everywhere says whether they may do something in all namespaces.
func (r rights) everywhere(operation string) bool {
	return r.may(operation, "") && r.of[operation] == nil
}

// at is the address of the page with another value of a parameter; "" = without
// it, and without others. Filters stay in the address, so that back, forward and
// reload keep them.
//
//go:noinline
func (s *shell) at(name, value string, without ...string) h.Address {
	q := maps.Clone(s.query)
	for _, k := range append(without, name) {
		q.Del(k)
	}
	if value != "" {
		q.Set(name, value)
	}
	return s.here.Asking(q)
}

// filtered is the first page of the list with another filter.
func (s *shell) filtered(name, value string) h.Address { return s.at(name, value, "after") }

// q is a parameter of the page.
func (s *shell) q(name string) string { return s.query.Get(name) }

// asked is what a form that was refused had in a field.
func (s *shell) asked(name string) string { return s.form.Get(name) }

// filter narrows a list, or says that it does.
//
//go:noinline
func (s *shell) filter(name, value string, is bool, says ...h.Node) h.Node {
	return h.A(s.filtered(name, value), chosen(is), h.Group(says))
}

// widen takes a filter away.
//
//go:noinline
func (s *shell) widen(name, says string) h.Node {
	return h.A(s.filtered(name, ""), h.Aria("label", says), text("×"))
}

// narrowed says to what a list is narrowed, and takes it away.
func (s *shell) narrowed(name, widen string, says func(string) h.Node) h.Node {
	return ifText(s.q(name), func(v string) h.Node {
		return h.Group{text(" · "), says(v), text(" "), s.widen(name, widen)}
	})
}

// find is a field of a form that narrows a list, with what the API refuses of it;
// asked is what the API calls it.
func (s *shell) find(name, parameter, asked, example string) h.Node {
	var wrong h.Node
	attributes := h.Group{h.If(example != "", h.Placeholder(example))}
	if detail := s.refuses(asked); detail != "" {
		id := "wrong-" + parameter
		attributes = append(attributes, h.Aria("invalid", "true"), h.Aria("describedby", id))
		wrong = h.Span(h.Class("wrong"), h.ID(id), text(detail+" "), code(s.problem.Code))
	}
	return label(name, input(parameter, s.q(parameter), attributes), wrong)
}

// refuses is what the API says of a parameter of a list; "" = nothing.
func (s *shell) refuses(asked string) string {
	if s.problem == nil {
		return ""
	}
	for _, w := range s.problem.Where {
		if w.Pointer == "query."+asked {
			return either(w.Detail, s.problem.Detail)
		}
	}
	if strings.HasPrefix(s.problem.Code, asked+".") { // what it names is not there
		return s.problem.Detail
	}
	return ""
}

// keeps are filters of the page that the fields of a form do not have.
func (s *shell) keeps(names ...string) h.Node {
	return h.Map(names, func(name string) h.Node {
		return ifText(s.q(name), func(v string) h.Node { return hidden(name, v) })
	})
}

// page is all of it.
func (s *shell) page() h.Node {
	return h.Page("en",
		h.Group{
			h.Meta(h.Charset("utf-8")),
			h.Meta(h.Name("viewport"), h.Content("width=device-width, initial-scale=1")),
			h.Meta(h.Name("color-scheme"), h.Content("light dark")),
			h.Meta(h.Name("htmx-config"), h.Content(`{"includeIndicatorCSS": false, "morphIgnore": ["data-htmx-powered", "open"]}`)), // what a reader has opened stays so
			h.Title(text(s.title + " · Aqueduct")),
			h.Icon(s.path("static", "icon.svg")), h.Stylesheet(s.path("static", "console.css")), h.Script(s.path("static", "htmx.min.js")),
		},
		h.Group{s.header(), h.Main(h.ID("page"),
			h.Div(h.Class("head"), h.H1(text(s.title)), h.If(s.mayLook, s.looking())),
			ifText(s.did, func(did string) h.Node { return h.P(h.Class("did"), h.Role("status"), text(did)) }),
			h.Iff(s.problem != nil, s.told),
			h.Div(h.Class("cols"),
				h.Div(h.ID("live"), h.If(s.looks, h.LookingAgain(s.here, "live", refresh)), h.If(s.looks, stale(s.Now())), s.body(s)),
				h.Aside(h.Iff(s.acts != nil, func() h.Node { return s.acts(s) })),
			),
		)},
	)
}

func (s *shell) header() h.Node {
	return h.Header(
		h.A(s.path(""), h.Class("brand"), text("Aqueduct")),
		h.Nav(h.Aria("label", "Pages"), h.Map(menu, func(e entry) h.Node {
			if !s.look(e.operation, "") {
				return nil
			}
			return h.Group{h.A(s.path(e.path), h.If(s.section == e.path, h.Aria("current", "page")), text(e.title)), text("\n")}
		})),
		h.Details(h.Class("who"), h.Summary(text(either(s.who.User, "who are you?"))), s.whoYouAre()),
	)
}

// whoYouAre says who looks, or lets them say it where nobody else does.
func (s *shell) whoYouAre() h.Node {
	if s.loggedIn {
		return h.Group{
			note(text("You have logged in as "), h.Strong(text(s.who.User)), ifText(strings.Join(s.who.Groups, ", "), func(groups string) h.Node { return text(", of " + groups) }), text(".")),
			h.Post(s.path("logout"), h.Class("out"), button("Log out")),
		}
	}
	if s.signedIn && !s.speaks {
		return h.Group{
			note(text("You have signed in as "), h.Strong(text(s.who.User)), ifText(strings.Join(s.who.Groups, ", "), func(groups string) h.Node { return text(", of " + groups) }), text(".")),
			h.Post(s.path("sign-in"), h.Class("out"), button("Sign out")),
		}
	}
	return h.Group{
		h.If(s.Logins != nil, paragraph(h.A(s.path("login").With("next", s.here.String()), text("Log in")))),
		h.Post(s.path("who"),
			hidden("back", s.here.String()),
			label("Name", input("user", s.who.User, h.AutoComplete("username"))),
			label("Groups", input("groups", strings.Join(s.who.Groups, ", "), h.Placeholder("loan-officers, shipping"))),
			button("That is me"),
			note(text("What you say here is used for tasks, and stands in their history. A node that asks who you are takes your own name only.")),
		),
		h.If(s.signedIn, h.Post(s.path("sign-in"), h.Class("out"), button("Sign out"))),
	}
}

// looking says whether the page is looked at again, and changes it.
func (s *shell) looking() h.Node {
	if s.looks {
		return h.A(s.at("live", "off"), h.Class("live"), text("live · pause"))
	}
	return h.A(s.at("live", ""), h.Class("live off"), text("paused · resume"))
}

// stale is seen when the page has not looked again for long: each look puts another element
// in its place, by its name, whose style waits anew.
func stale(now time.Time) h.Node {
	return h.P(h.ID("seen-"+strconv.FormatInt(now.UnixMilli(), 10)), h.Class("stale"), text("Nothing new for ten seconds: the node does not answer, or the browser runs no script."))
}

// told shows a problem: what, where, and what to do.
func (s *shell) told() h.Node {
	p := s.problem
	return h.Div(h.Class("problem"), h.Role("alert"),
		paragraph(h.Strong(text(p.Detail)), text(" "), code(p.Code)),
		ifText(p.Hint, func(hint string) h.Node { return paragraph(text(hint)) }),
		h.If(len(p.Where) > 0, h.Ul(h.Map(p.Where, func(w problem.Place) h.Node {
			return h.Li(
				h.If(w.Line != 0, h.Group{text("line "), number(w.Line), text(": ")}),
				ifText(w.Pointer, func(p string) h.Node { return h.Group{code(p), text(" ")} }),
				text(w.Detail), ifText(w.Hint, func(hint string) h.Node { return text(" (" + hint + ")") }))
		}))),
		h.If(len(s.form) > 0, unfold(text("What was sent"), h.Map(slices.Sorted(maps.Keys(s.form)), func(name string) h.Node {
			return ifText(strings.Join(s.form[name], "\n"), func(value string) h.Node { return h.Group{paragraph(code(name)), h.Pre(text(value))} })
		}))), // its form may be gone, with who had it
	)
}

// noPage is there when a page's own part could not be read.
func noPage(s *shell) h.Node { return paragraph(h.A(s.path(""), text("Overview"))) }

// signIn asks for a token, or leads to the identity provider.
func signIn(s *shell) h.Node {
	token := h.Post(s.path("sign-in"), h.Class("fields"), hidden("back", s.here.String()),
		label("Token", h.Input(h.Name("token"), h.Type("password"), h.AutoComplete("current-password"), h.Required())), button("Sign in"),
		note(text("An administrator makes one with "), code("engine-node tokens create"), text(".")))
	if s.Logins == nil {
		return token
	}
	return h.Group{paragraph(h.A(s.path("login").With("next", s.here.String()), h.Class("login"), text("Log in"))), token}
}
